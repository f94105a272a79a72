"""Cards as ints and as text.

A card is ``4 * rank + suit``: rank 0 = deuce .. 12 = ace, suits c d h s.  Its text is rank and suit: ``As``, ``Td``, ``2c``.
Other forms in use are read too: ``10d``, ``A♠`` and letters of either case.

>>> parse_cards("As 2d")
(51, 1)
>>> format_cards((51, 1))
'As2d'
>>> format_cards(parse_cards("a♥ 10H, kC"), " ")
'Ah Th Kc'
"""

from __future__ import annotations

import operator
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from archie_env.errors import CardError

RANKS: Final = "23456789TJQKA"
SUITS: Final = "cdhs"
DECK: Final = tuple(range(52))
_CARDS = {rank + suit: 4 * r + s for r, rank in enumerate(RANKS) for s, suit in enumerate(SUITS)}
_NAMES = tuple(_CARDS)
_SYMBOLS: Final = dict(zip("♣♦♥♠♧♢♡♤", SUITS * 2, strict=True))
_WRITTEN: Final = re.compile(rf"(10|[2-9TJQKAtjqka])([CDHScdhs{''.join(_SYMBOLS)}])\ufe0f?")
"""A card as people write it; some keyboards add a variation selector to a symbol."""


def format_card(card: int) -> str:
    """The text of one card; the inverse of `parse_card`."""
    if isinstance(card, str) or not 0 <= card < 52:
        raise CardError(f"card {card}: a card is an int 0..51")
    return _NAMES[card]


def parse_card(text: str) -> int:
    """The card of a string such as ``As``."""
    found = _WRITTEN.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise CardError(f"card {text!r}: expected a rank of {RANKS} and a suit of {SUITS}, such as 'As'")
    return _card(found)


def _card(found: re.Match[str]) -> int:
    rank, suit = found.groups()
    return _CARDS[("T" if rank == "10" else rank.upper()) + _SYMBOLS.get(suit, suit.lower())]


def format_cards(cards: Iterable[int], separator: str = "") -> str:
    """The texts of several cards in the order given; the inverse of `parse_cards`."""
    return separator.join(format_card(c) for c in cards)


def parse_cards(text: str) -> tuple[int, ...]:
    """The cards of a string such as ``As2d`` or ``As, 2d``, in the order given."""
    if not isinstance(text, str):
        raise CardError(f"cards {text!r}: expected text such as 'As2d'")
    letters = "".join(text.replace(",", " ").split())
    cards: list[int] = []
    at = 0
    while at < len(letters):
        found = _WRITTEN.match(letters, at)
        if found is None:
            rest = letters[at : at + 3 if letters.startswith("10", at) else at + 2]
            raise CardError(f"card {rest!r}: expected a rank of {RANKS} and a suit of {SUITS}, such as 'As'")
        cards.append(_card(found))
        at = found.end()
    return tuple(cards)


def check_cards(value: str | Sequence[Any], allowed: Collection[int] = DECK, what: str = "cards") -> tuple[int, ...]:
    """Cards given as text, card ids or card texts, all different and all in ``allowed``; raises `CardError`."""
    if isinstance(value, str):
        cards = parse_cards(value)
    else:
        try:
            cards = tuple(parse_card(c) if isinstance(c, str) else operator.index(c) for c in value)
        except TypeError:
            raise CardError(f"{what} {value!r}: expected text such as 'As2d' or a sequence of card ids 0..51") from None
    seen: set[int] = set()
    for i, card in enumerate(cards):
        if card not in allowed:
            name = _NAMES[card] if 0 <= card < 52 else card
            raise CardError(f"{what}: card {name} at index {i} is not one of the {len(allowed)} cards in play")
        if card in seen:
            raise CardError(f"{what}: card {_NAMES[card]} is named twice, the second time at index {i}")
        seen.add(card)
    return cards
