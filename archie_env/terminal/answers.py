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

_BETTING: Final = {
    **dict.fromkeys(("fold", "f"), FOLD),
    **dict.fromkeys(("call", "c", "check", "k"), CALL),
    **dict.fromkeys(("raise", "r", "bet", "b"), RAISE),
}
_PAT: Final = ("pat", "p", "stand pat", "stand")
_DISCARD: Final = ("discard", "d", "draw")
HELP: Final = """\
  fold, call, check, bet, raise   or the first letter (k for check)
  pat                             keep all cards
  discard 9h Js                   replace these cards; d 9h Js is enough
  d 3 4                           the same by position: the third and fourth card
  help                            this; `archie rules` explains the game
  quit                            leave the table; this gives up a hand in progress"""


def prompt(view: View, rules: Rules) -> str:
    """The answers that the seat to act may type."""
    if not view.drawing:
        return ", ".join(words for _, words in wording.choices(view)[::-1])
    hand, most = _hand(view), rules.max_discard
    if not most:
        return "only stand pat: type pat"
    shown = hand[-min(2, most) :]
    cards = " ".join(map(format_card, shown))
    positions = " ".join(str(hand.index(card) + 1) for card in shown)
    limit = f" (at most {wording.counted(most, 'card')})" if most < len(hand) else ""
    return f"pat, or discard{limit} such as: d {cards} (by position: d {positions})"


def _hand(view: View) -> tuple[int, ...]:
    return view.hands[view.to_act or 0] or ()


def read_action(text: str, view: View, rules: Rules) -> int:
    """Read a legal action of the seat to act, typed in lower case.

    Raises:
        IllegalActionError: naming the fault of the text.
    """
    if not text:
        raise IllegalActionError("Nothing typed")
    word, *cards = text.replace(",", " ").split() or [""]
    drawn = text in _PAT or word in _DISCARD
    if not drawn and text not in _BETTING:
        raise IllegalActionError(f"{text!r} is no action (help lists them)")
    if drawn != view.drawing:
        raise IllegalActionError(
            "This is a draw, not a betting round" if view.drawing else "This is a betting round, not a draw"
        )
    if text in _PAT:
        return STAND_PAT
    return _read_discard(cards, view, rules) if drawn else _read_wager(text, view, rules)


def _read_wager(text: str, view: View, rules: Rules) -> int:
    owed = view.choices[0].owed
    if text in ("check", "k") and owed:
        raise IllegalActionError(f"You can't check: there is a wager to call, {owed} more")
    if text == "call" and not owed:
        raise IllegalActionError("There is nothing to call")
    action = _BETTING[text]
    if action not in view.legal:
        capped = f"No more raises: a round has at most {rules.raise_cap} wagers"
        raise IllegalActionError("There is no wager to fold to" if action == FOLD else capped)
    return action


def _read_discard(words: Iterable[str], view: View, rules: Rules) -> int:
    hand = _hand(view)
    discarded = [card for word in words for card in _read_cards(word, hand)]
    if not discarded:
        raise IllegalActionError("Name the cards, or type pat to keep them all")
    if len(set(discarded)) < len(discarded):
        raise IllegalActionError("A card is named twice")
    action = discard(hand, discarded)
    if action not in view.legal:
        raise IllegalActionError(f"At most {wording.counted(rules.max_discard, 'card')} can be replaced")
    return action


def _read_cards(word: str, hand: tuple[int, ...]) -> tuple[int, ...]:
    """Cards of a word: ``9h``, ``9hjs``, ``10h``, or their positions as ``34``."""
    if word.isascii() and word.isdigit():
        beyond = [position for position in word if not 1 <= int(position) <= len(hand)]
        if beyond:
            raise IllegalActionError(f"There is no card {beyond[0]}: positions are 1 to {len(hand)}")
        return tuple(hand[int(position) - 1] for position in word)
    try:
        cards = parse_cards(word)
    except CardError:
        raise IllegalActionError(f"{word!r} is no card: cards are such as 9h or Js") from None
    for card in cards:
        if card not in hand:
            raise IllegalActionError(f"You don't hold {format_card(card)}")
    return cards
