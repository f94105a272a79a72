"""Actions as ints and as text: ``Discrete(3 + 2 ** hand_size)``.

0 fold, 1 check/call, 2 bet/raise, ``3 + m`` discard the cards of the ascending hand whose bits are set in m (bit 0 the lowest).

>>> hand = parse_cards("2c 7d 9h Js As")
>>> format_action(discard(hand, parse_cards("9h Js")), hand)
'discard 9h Js'
>>> parse_action("discard 9h Js", hand)
15
>>> format_action(STAND_PAT, hand)
'stand pat'
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from archie_env._core.state import CALL, DISCARD, FOLD, RAISE
from archie_env.cards import format_cards, parse_cards
from archie_env.errors import IllegalActionError, NotationError

__all__ = ["CALL", "DISCARD", "FOLD", "RAISE", "STAND_PAT", "discard", "discards", "format_action", "parse_action"]

STAND_PAT: Final = DISCARD
"""Discard nothing."""
_BETTING = {FOLD: ("fold", "fold"), CALL: ("check", "call"), RAISE: ("bet", "raise")}


def discard(hand: Sequence[int], cards: Iterable[int]) -> int:
    """The action that discards these cards of an ascending hand."""
    bits = []
    for card in cards:
        if card not in hand:
            raise IllegalActionError(f"discard {format_cards([card])}: the hand is {format_cards(hand, ' ')}")
        bits.append(hand.index(card))
    if len(set(bits)) < len(bits):
        raise IllegalActionError("discard: a card is named twice")
    return DISCARD + sum(1 << i for i in bits)


def discards(action: int, hand: Sequence[int]) -> tuple[int, ...]:
    """The cards of an ascending hand that an action discards; the inverse of `discard`."""
    return tuple(card for i, card in enumerate(hand) if action - DISCARD >> i & 1)


def format_action(action: int, hand: Sequence[int] = (), owes: bool = False) -> str:
    """An action in words: ``check`` or ``call`` by whether the player owes chips, ``discard 9h Js`` by the hand."""
    if action in _BETTING:
        return _BETTING[action][owes]
    if not DISCARD <= action < DISCARD + 2 ** len(hand):
        raise IllegalActionError(f"action {action}: expected 0 to {DISCARD + 2 ** len(hand) - 1} with {len(hand)} cards")
    cards = discards(action, hand)
    return f"discard {format_cards(cards, ' ')}" if cards else "stand pat"


def parse_action(text: str, hand: Sequence[int] = ()) -> int:
    """The action of a string that `format_action` wrote; cards in any form that `parse_cards` reads."""
    words = text.split() if isinstance(text, str) else []
    for action, names in _BETTING.items():
        if len(words) == 1 and words[0] in names:
            return action
    if words == ["stand", "pat"]:
        return STAND_PAT
    if len(words) > 1 and words[0] == "discard":
        return discard(hand, parse_cards("".join(words[1:])))
    raise NotationError(f"action {text!r}: expected fold, check, call, bet, raise, 'stand pat' or 'discard' and cards")


def describe_legal(mask: NDArray[np.int8] | Sequence[Any]) -> str:
    """The legal actions of a mask in one line: betting by name, discards as a range of numbers."""
    legal = [int(a) for a in np.flatnonzero(np.asarray(mask))]
    words = [f"{a} ({'/'.join(dict.fromkeys(_BETTING[a]))})" for a in legal if a < DISCARD]
    draws = [a for a in legal if a >= DISCARD]
    if draws and draws == list(range(draws[0], draws[-1] + 1)):
        words.append(f"{draws[0]}..{draws[-1]} (discards)")
    elif draws:
        words.append(f"{', '.join(map(str, draws))} (discards)")
    return ", ".join(words) or "none"
