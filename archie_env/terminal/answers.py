"""The answers that a person may type for an action: the prompt that lists them, and the reader."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from archie_env.actions import CALL, FOLD, RAISE, STAND_PAT, discard
from archie_env.cards import format_card, parse_cards
from archie_env.errors import CardError, IllegalActionError
from archie_env.events import View
from archie_env.rendering import wording
from archie_env.rules import Rules
from archie_env.words import ENGLISH, Words

_BETTING: Final = {
    **dict.fromkeys(("fold", "f", "desistir", "retirarse"), FOLD),
    **dict.fromkeys(("call", "c", "check", "k", "igualar", "passar", "pasar"), CALL),
    **dict.fromkeys(("raise", "r", "bet", "b", "aumentar", "apostar", "subir"), RAISE),
}
"""The answers of every language are taken in every language: they don't collide, and the English letters always work."""
_CHECK: Final = ("check", "k", "passar", "pasar")
_CALL: Final = ("call", "igualar")
_PAT: Final = ("pat", "p", "stand pat", "stand", "conservar", "conservar todas")
_DISCARD: Final = ("discard", "d", "draw", "descartar", "trocar", "cambiar")


def prompt(view: View, rules: Rules, words: Words = ENGLISH) -> str:
    """The answers that the seat to act may type."""
    if not view.drawing:
        return ", ".join(text for _, text in wording.choices(view, words)[::-1])
    hand, most = _hand(view), rules.max_discard
    if not most:
        return words.say("terminal.only_pat")
    shown = hand[-min(2, most) :]
    cards = " ".join(map(format_card, shown))
    positions = " ".join(str(hand.index(card) + 1) for card in shown)
    if most == len(hand):
        return words.say("terminal.discards", cards=cards, positions=positions)
    return words.say("terminal.discards_most", most=words.count("count.card", most), cards=cards, positions=positions)


def _hand(view: View) -> tuple[int, ...]:
    return view.hands[view.to_act or 0] or ()


def read_action(text: str, view: View, rules: Rules, words: Words = ENGLISH) -> int:
    """Read a legal action of the seat to act, typed in lower case.

    Raises:
        IllegalActionError: naming the fault of the text.
    """
    if not text:
        raise IllegalActionError(words.say("error.nothing"))
    word, *cards = text.replace(",", " ").split() or [""]
    drawn = text in _PAT or word in _DISCARD
    if not drawn and text not in _BETTING:
        raise IllegalActionError(words.say("error.no_action", text=repr(text)))
    if drawn != view.drawing:
        raise IllegalActionError(words.say("error.is_draw" if view.drawing else "error.is_betting"))
    if text in _PAT:
        return STAND_PAT
    return _read_discard(cards, view, rules, words) if drawn else _read_wager(text, view, rules, words)


def _read_wager(text: str, view: View, rules: Rules, words: Words) -> int:
    owed = view.choices[0].owed
    if text in _CHECK and owed:
        raise IllegalActionError(words.say("error.no_check", owed=owed))
    if text in _CALL and not owed:
        raise IllegalActionError(words.say("error.no_call"))
    action = _BETTING[text]
    if action not in view.legal:
        key = "error.no_fold" if action == FOLD else "error.capped"
        raise IllegalActionError(words.say(key, cap=rules.raise_cap))
    return action


def _read_discard(typed: Iterable[str], view: View, rules: Rules, words: Words) -> int:
    hand = _hand(view)
    discarded = [card for word in typed for card in _read_cards(word, hand, words)]
    if not discarded:
        raise IllegalActionError(words.say("error.name_cards"))
    if len(set(discarded)) < len(discarded):
        raise IllegalActionError(words.say("error.twice"))
    action = discard(hand, discarded)
    if action not in view.legal:
        raise IllegalActionError(words.say("error.most", cards=words.count("count.card", rules.max_discard)))
    return action


def _read_cards(word: str, hand: tuple[int, ...], words: Words) -> tuple[int, ...]:
    """Cards of a word: ``9h``, ``9hjs``, ``10h``, or their positions as ``34``."""
    if word.isascii() and word.isdigit():
        beyond = [position for position in word if not 1 <= int(position) <= len(hand)]
        if beyond:
            raise IllegalActionError(words.say("error.no_position", position=beyond[0], last=len(hand)))
        return tuple(hand[int(position) - 1] for position in word)
    try:
        cards = parse_cards(word)
    except CardError:
        raise IllegalActionError(words.say("error.no_card", text=repr(word))) from None
    for card in cards:
        if card not in hand:
            raise IllegalActionError(words.say("error.not_held", card=format_card(card)))
    return cards
