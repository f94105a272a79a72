"""Hand values in words: ``pair of nines``, ``seven-five low``, and whether they qualify.

The engine compares values, which are ints; higher is better.  The full text of a value names every rank that is compared, so it
has an exact inverse.

>>> values = HandValues("archie")
>>> high, low = values.of(parse_cards("9c 9h 7d 7s 2c"))
>>> values.high_name(high), values.high_text(high)
('nines and sevens', 'nines and sevens, 2')
>>> values.high(high)
HandParts(direction='high', category='two_pair', ranks='972', qualifies=True)
>>> values.parse_high("nines and sevens, 2") == high
True
>>> values.low_name(values.of(parse_cards("As 2d 3c 5h 7s"))[1])
'seven-five low'
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

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
    high_classes,
    low_classes,
)
from archie_env.cards import RANKS, check_cards, parse_cards
from archie_env.errors import CardError, NotationError
from archie_env.events import Award
from archie_env.rulebook import highest_low_rank, lowest_qualifying_high, rulebook
from archie_env.rules import Rules, as_rules
from archie_env.words import ENGLISH, Words

__all__ = ["CATEGORIES", "HandParts", "HandValues", "parse_cards"]

_ACE_LOW_RANKS: Final = RANKS[-1] + RANKS[:-1]

CATEGORIES: Final = {
    HIGH_CARD: "high_card",
    PAIR: "pair",
    TWO_PAIR: "two_pair",
    TRIPS: "trips",
    STRAIGHT: "straight",
    FLUSH: "flush",
    FULL_HOUSE: "full_house",
    QUADS: "quads",
    STRAIGHT_FLUSH: "straight_flush",
}
"""The categories of high hands, worst first, as the catalogues of `archie_env.words` name them."""


@dataclass(frozen=True, slots=True)
class HandParts:
    """A hand value as data."""

    direction: Literal["high", "low"]
    category: str
    """One of `CATEGORIES`; ``low`` or ``no_low`` for a low value."""
    ranks: str
    """The ranks that are compared, the first first: ``9A72`` of a pair of nines."""
    qualifies: bool

    def name(self, words: Words = ENGLISH) -> str:
        """Return the common name: ``pair of nines``, ``seven-five low``."""
        return _name(self.category, self.ranks, words)

    def text(self, words: Words = ENGLISH) -> str:
        """Return the name and the ranks by which two hands of that name differ: ``pair of nines, A-7-2``."""
        named = {"two_pair": 2, "full_house": 2, "low": 0}.get(self.category, 1)
        rest = "-".join(self.ranks[named:])
        return f"{self.name(words)}, {rest}" if rest else self.name(words)


@functools.cache
def _name(category: str, ranks: str, words: Words) -> str:
    if category == "low":
        if ranks == "5432A":
            return words.say("hand.wheel")
        return words.say("hand.low", rank="-".join(words.say(f"hand.rank.{rank}") for rank in ranks[:2]))
    values = {form: words.say(f"hand.{form}.{ranks[0]}") for form in ("rank", "ranks", "top")} if ranks else {}
    if len(ranks) > 1:
        values["second"] = words.say(f"hand.ranks.{ranks[1]}")
    return words.say(f"hand.{category}", **values)


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

    def high(self, value: int) -> HandParts:
        """Return a high value as data."""
        category, order = self._highs[self._check(value, self._highs, "high") - 1]
        return HandParts("high", CATEGORIES[category], "".join(RANKS[r] for r in order), self.qualifies_high(value))

    def low(self, value: int) -> HandParts:
        """Return a low value as data; 0 is ``no_low``."""
        if value == 0:
            return HandParts("low", "no_low", "", False)
        key = self._lows[self._check(value, self._lows, "low") - 1]
        return HandParts("low", "low", "".join(_ACE_LOW_RANKS[-r] for r in key), True)

    def compared(self, award: Award, seat: int) -> HandParts:
        """Return the value of a seat's hand that an award compared."""
        if award.values is None:
            raise CardError(f"award for {award.reason}: no hands were compared")
        is_low = award.half == "low" or award.reason == "only_low"
        return self.low(award.values[seat]) if is_low else self.high(award.values[seat])

    def high_name(self, high: int, words: Words = ENGLISH) -> str:
        """Return the common name of a high value: ``pair of nines``."""
        return self.high(high).name(words)

    def high_text(self, high: int, words: Words = ENGLISH) -> str:
        """Return the name and every other rank that is compared: ``pair of nines, A-K-2``."""
        return self.high(high).text(words)

    def low_name(self, low: int, words: Words = ENGLISH) -> str:
        """Return the common name of a low value: ``seven-five low``, ``no low`` for 0."""
        return self.low(low).name(words)

    def low_text(self, low: int, words: Words = ENGLISH) -> str:
        """Return the name and every rank: ``seven-five low, 7-5-3-2-A``."""
        return self.low(low).text(words)

    def parse_high(self, text: str) -> int:
        """Parse a `high_text`; raises `NotationError`."""
        return self._find(text, {self.high_text(v): v for v in range(1, len(self._highs) + 1)}, "high hand")

    def parse_low(self, text: str) -> int:
        """Parse a `low_text`; raises `NotationError`."""
        return self._find(text, {self.low_text(v): v for v in range(len(self._lows) + 1)}, "low hand")

    def describe(self, cards: Sequence[int] | str, words: Words = ENGLISH) -> str:
        """Describe a hand with every rank: ``pair of nines, A-7-2 (qualifies); no low``."""
        high, low = self.of(cards)
        reached = words.say("hand.qualifies" if self.qualifies_high(high) else "hand.does_not_qualify")
        return f"{self.high_text(high, words)} ({reached}); {self.low_name(low, words)}"

    def summary(self, cards: Sequence[int] | str, words: Words = ENGLISH) -> str:
        """Describe a hand briefly: ``pair of nines, no low`` or ``pair of deuces (does not qualify), no low``."""
        high, low = self.of(cards)
        reached = "" if self.qualifies_high(high) else f" ({words.say('hand.does_not_qualify')})"
        return f"{self.high_name(high, words)}{reached}, {self.low_name(low, words)}"

    def value_text(self, award: Award, seat: int, words: Words = ENGLISH) -> str:
        """Return the `low_text` or `high_text` of a seat's hand, whichever the award compared."""
        return self.compared(award, seat).text(words)

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
