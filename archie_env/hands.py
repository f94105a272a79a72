"""Hand values in words: ``pair of nines``, ``seven-five low``, and whether they qualify.

The engine compares values, which are ints; higher is better.  The full text of a value names every rank that is compared, so it
has an exact inverse.

>>> values = HandValues("archie")
>>> high, low = values.of(parse_cards("9c 9h 7d 7s 2c"))
>>> values.high_name(high), values.high_text(high)
('nines and sevens', 'nines and sevens, 2')
>>> values.parse_high("nines and sevens, 2") == high
True
>>> values.low_name(values.of(parse_cards("As 2d 3c 5h 7s"))[1])
'seven-five low'
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Final

import numpy as np

from archie_env._core.showdown import high_value, low_value
from archie_env._core.state import MAX_HAND, NO_CARD
from archie_env._core.tables import (
    FLUSH,
    FULL_HOUSE,
    HIGH_CARD,
    PAIR,
    QUADS,
    STRAIGHT,
    STRAIGHT_FLUSH,
    TRIPS,
    TWO_PAIR,
    Key,
    high_classes,
    low_classes,
)
from archie_env.cards import RANKS, check_cards, parse_cards
from archie_env.errors import CardError, NotationError
from archie_env.events import Award
from archie_env.rulebook import highest_low_rank, lowest_qualifying_high, rulebook
from archie_env.rules import Rules, as_rules

__all__ = ["CATEGORY_NAMES", "HandValues", "parse_cards"]

_SINGULAR = ("deuce", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "jack", "queen", "king", "ace")
_PLURAL = tuple(f"{word}es" if word == "six" else f"{word}s" for word in _SINGULAR)
_ACE_LOW = (_SINGULAR[-1], *_SINGULAR[:-1])
_ACE_LOW_RANKS: Final = RANKS[-1] + RANKS[:-1]

CATEGORY_NAMES: Final = {
    HIGH_CARD: "high card",
    PAIR: "pair",
    TWO_PAIR: "two pair",
    TRIPS: "three of a kind",
    STRAIGHT: "straight",
    FLUSH: "flush",
    FULL_HOUSE: "full house",
    QUADS: "four of a kind",
    STRAIGHT_FLUSH: "straight flush",
}


def _high_name(key: Key) -> str:
    category, order = key
    top = order[0]
    if category in (STRAIGHT, FLUSH, STRAIGHT_FLUSH):
        return f"{_SINGULAR[top]}-high {CATEGORY_NAMES[category]}"
    if category == FULL_HOUSE:
        return f"{_PLURAL[top]} full of {_PLURAL[order[1]]}"
    if category == TWO_PAIR:
        return f"{_PLURAL[top]} and {_PLURAL[order[1]]}"
    counted = {PAIR: "pair of", TRIPS: "three", QUADS: "four"}
    return f"{counted[category]} {_PLURAL[top]}" if category in counted else f"{_SINGULAR[top]} high"


def _high_text(key: Key) -> str:
    """Return the name, and the ranks by which two hands of that name differ."""
    category, order = key
    named = {TWO_PAIR: 2, FULL_HOUSE: 2}.get(category, 1)
    rest = "-".join(RANKS[r] for r in order[named:])
    return f"{_high_name(key)}, {rest}" if rest else _high_name(key)


def _low_name(key: tuple[int, ...]) -> str:
    ranks = [-r for r in key]
    if ranks == [4, 3, 2, 1, 0]:
        return "wheel"
    return f"{'-'.join(_ACE_LOW[r] for r in ranks[:2])} low"


def _low_text(key: tuple[int, ...]) -> str:
    return f"{_low_name(key)}, {'-'.join(_ACE_LOW_RANKS[-r] for r in key)}"


@functools.lru_cache(maxsize=64)
class HandValues:
    """Hand values under given rules."""

    def __init__(self, rules: Rules | str = "archie") -> None:
        self.rules = as_rules(rules)
        self._books = rulebook(self.rules)
        self._highs = high_classes(self.rules.hand_size, self.rules.flushes)
        self._lows = low_classes(self.rules.hand_size, highest_low_rank(self.rules))
        self.high_qualifier = lowest_qualifying_high(self.rules)
        """The least high value that qualifies."""

    def of(self, cards: Sequence[int] | str) -> tuple[int, int]:
        """Return the high and low value of a hand; higher is better, and a low of 0 does not qualify."""
        hand = sorted(check_cards(cards, self.rules.deck, "hand"))
        if len(hand) != self.rules.hand_size:
            raise CardError(f"hand of {len(hand)} cards: expected {self.rules.hand_size}")
        padded = np.array([*hand, *[NO_CARD] * (MAX_HAND - len(hand))], np.int8)
        book = self._books[0]
        return int(high_value(book, padded)), int(low_value(book, padded))

    def qualifies_high(self, high: int) -> bool:
        """Return whether a high value reaches the qualifier (R3.2)."""
        return high >= self.high_qualifier

    def high_name(self, high: int) -> str:
        """Return the common name of a high value: ``pair of nines``."""
        return _high_name(self._highs[self._check(high, self._highs, "high") - 1])

    def high_text(self, high: int) -> str:
        """Return the name and every other rank that is compared: ``pair of nines, A-K-2``."""
        return _high_text(self._highs[self._check(high, self._highs, "high") - 1])

    def low_name(self, low: int) -> str:
        """Return the common name of a low value: ``seven-five low``, ``no low`` for 0."""
        return "no low" if low == 0 else _low_name(self._lows[self._check(low, self._lows, "low") - 1])

    def low_text(self, low: int) -> str:
        """Return the name and every rank: ``seven-five low, 7-5-3-2-A``."""
        return "no low" if low == 0 else _low_text(self._lows[self._check(low, self._lows, "low") - 1])

    def parse_high(self, text: str) -> int:
        """Parse a `high_text`; raises `NotationError`."""
        return self._find(text, {_high_text(key): v for v, key in enumerate(self._highs, 1)}, "high hand")

    def parse_low(self, text: str) -> int:
        """Parse a `low_text`; raises `NotationError`."""
        return self._find(text, {"no low": 0} | {_low_text(key): v for v, key in enumerate(self._lows, 1)}, "low hand")

    def describe(self, cards: Sequence[int] | str) -> str:
        """Describe a hand with every rank: ``pair of nines, A-7-2 (qualifies); no low``."""
        high, low = self.of(cards)
        reached = "qualifies" if self.qualifies_high(high) else "does not qualify"
        return f"{self.high_text(high)} ({reached}); {self.low_name(low)}"

    def summary(self, cards: Sequence[int] | str) -> str:
        """Describe a hand briefly: ``pair of nines, no low`` or ``pair of deuces (does not qualify), no low``."""
        high, low = self.of(cards)
        reached = "" if self.qualifies_high(high) else " (does not qualify)"
        return f"{self.high_name(high)}{reached}, {self.low_name(low)}"

    def value_text(self, award: Award, seat: int) -> str:
        """Return the `low_text` or `high_text` of a seat's hand, whichever the award compared."""
        if award.values is None:
            raise CardError(f"award for {award.reason}: no hands were compared")
        is_low = award.half == "low" or award.reason == "only_low"
        return self.low_text(award.values[seat]) if is_low else self.high_text(award.values[seat])

    @staticmethod
    def _check(value: int, classes: Sequence[object], what: str) -> int:
        if not 1 <= value <= len(classes):
            raise CardError(f"{what} value {value}: expected 1 to {len(classes)}")
        return value

    @staticmethod
    def _find(text: str, table: dict[str, int], what: str) -> int:
        if text not in table:
            raise NotationError(f"{what} {text!r}: expected a string such as {next(reversed(table))!r}")
        return table[text]
