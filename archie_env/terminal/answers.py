"""What a person types for an action, read; and what may be typed, said."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from archie_env.actions import CALL, FOLD, RAISE, STAND_PAT, discard
from archie_env.cards import format_card, parse_card
from archie_env.errors import IllegalActionError
from archie_env.game import Game
from archie_env.rendering import wording

_BETTING: Final = {
    **dict.fromkeys(("fold", "f"), FOLD),
    **dict.fromkeys(("call", "c", "check", "k"), CALL),
    **dict.fromkeys(("raise", "r", "bet", "b"), RAISE),
}
_PAT: Final = ("pat", "p", "stand pat", "stand")
_DISCARD: Final = ("discard", "d", "draw")
_CARD: Final = re.compile("(10|[2-9tjqka])([cdhs])")
HELP: Final = """\
  fold, call, check, bet, raise   or the first letter (k for check)
  pat                             keep all cards
  discard 9h Js                   replace these cards; d 9h Js is enough
  d 3 4                           the same by place: the third and fourth card
  help                            this; `archie rules` explains the game
  quit                            leave the table; a hand in progress does not count"""


def menu(game: Game) -> str:
    """What the player to act may type."""
    seat = game.to_act or 0
    if not game.drawing:
        return ", ".join(words for _, words in wording.choices(game.view(seat), game.rules)[::-1])
    hand, most = game.hands[seat], game.rules.max_discard
    if not most:
        return "only stand pat: type pat"
    shown = hand[-min(2, most) :]
    cards = " ".join(map(format_card, shown))
    places = " ".join(str(hand.index(card) + 1) for card in shown)
    limit = f" (at most {_cards(most)})" if most < len(hand) else ""
    return f"pat, or discard{limit} such as: d {cards} (by place: d {places})"


def _cards(n: int) -> str:
    return f"{wording.NUMBERS[n]} card{'s' * (n != 1)}"


def read_action(text: str, game: Game) -> int:
    """The legal action that the player to act typed, in lower case.

    Raises:
        IllegalActionError: saying what is wrong.
    """
    seat = game.to_act or 0
    if not text:
        raise IllegalActionError("Nothing typed")
    word, *cards = text.replace(",", " ").split() or [""]
    drawn = text in _PAT or word in _DISCARD
    if not drawn and text not in _BETTING:
        raise IllegalActionError(f"{text!r} is no action (help lists them)")
    if drawn != game.drawing:
        raise IllegalActionError(
            "This is a draw, not a betting round" if game.drawing else "This is a betting round, not a draw"
        )
    if text in _PAT:
        return STAND_PAT
    return _read_discard(cards, game, game.hands[seat]) if drawn else _read_wager(text, game, game.owes(seat))


def _read_wager(text: str, game: Game, owed: int) -> int:
    if text in ("check", "k") and owed:
        raise IllegalActionError(f"You can't check: there is a wager to call, {owed} more")
    if text == "call" and not owed:
        raise IllegalActionError("There is nothing to call")
    action = _BETTING[text]
    if action not in game.legal_actions():
        capped = f"No more raises: a round has at most {game.rules.raise_cap} wagers"
        raise IllegalActionError("There is no wager to fold to" if action == FOLD else capped)
    return action


def _read_discard(words: Iterable[str], game: Game, hand: tuple[int, ...]) -> int:
    thrown = [card for word in words for card in _read_cards(word, hand)]
    if not thrown:
        raise IllegalActionError("Say which cards, or pat to keep them all")
    if len(set(thrown)) < len(thrown):
        raise IllegalActionError("A card stands there twice")
    action = discard(hand, thrown)
    if action not in game.legal_actions():
        raise IllegalActionError(f"At most {_cards(game.rules.max_discard)} can be replaced")
    return action


def _read_cards(word: str, hand: tuple[int, ...]) -> list[int]:
    """Cards of a word: ``9h``, ``9hjs``, ``10h``, or their places as ``34``."""
    if word.isascii() and word.isdigit():
        beyond = [place for place in word if not 1 <= int(place) <= len(hand)]
        if beyond:
            raise IllegalActionError(f"There is no card {beyond[0]}: places are 1 to {len(hand)}")
        return [hand[int(place) - 1] for place in word]
    found = _CARD.findall(word)
    if "".join(rank + suit for rank, suit in found) != word:
        raise IllegalActionError(f"{word!r} is no card: cards are such as 9h or Js")
    cards = [parse_card(("T" if rank == "10" else rank.upper()) + suit) for rank, suit in found]
    for card in cards:
        if card not in hand:
            raise IllegalActionError(f"You don't hold {format_card(card)}")
    return cards
