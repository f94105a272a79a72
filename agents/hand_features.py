"""Features of a hand: made values, draws, and the four natural discards.

They are computed from rows of the information state, so they can be part of a network's input layer.

>>> [keep for keep in KEEPS]
['low cards', 'groups', 'longest suit', 'best straight draw']
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agents._kernels import (
    discard_not_low,
    discard_outside_run,
    discard_unpaired,
    longest_suit,
    low_cards,
    spread_of_groups,
)
from agents.rows import count_ranks
from archie_env._core.jit import kernel
from archie_env._core.showdown import high_value, low_value
from archie_env._core.state import MAX_HAND, NO_CARD
from archie_env._core.tables import ACE, CATEGORIES, high_classes, low_classes
from archie_env.cards import RANKS, SUITS
from archie_env.observation import field
from archie_env.rulebook import highest_low_rank, rulebook
from archie_env.rules import Rules

KEEPS: Final = ("low cards", "groups", "longest suit", "best straight draw")
"""Natural discards, named after the cards they keep; the network's head has an output (a slot) for each."""

_RANKS = 13
_BLOCKS: Final = {
    "category": CATEGORIES,  # of the high hand, one-hot
    "main rank": _RANKS,  # of the largest group, one-hot
    "second rank": _RANKS,  # highest rank outside it, one-hot
    "low ranks held": _RANKS,  # by ace-low rank up to the low limit
    "low cards": MAX_HAND + 1,  # distinct ranks a low may hold, one-hot
    "longest suit": MAX_HAND,  # number of its cards minus one, one-hot
    "straight draw": MAX_HAND,  # most ranks of one straight minus one, one-hot
    "open": 1,  # four ranks of a straight that two ranks complete
    "qualifies": 2,  # for high, for low
    "value": 2,  # of high and low: rank among all hands, from 0 to 1, the best 1
}
FEATURES: Final = sum(_BLOCKS.values())
"""Features of each hand, all in [0, 1]."""
_AT = dict(zip(_BLOCKS, np.cumsum([0, *_BLOCKS.values()]).tolist(), strict=False))
_CATEGORY, _MAIN, _SECOND, _HELD, _LOWS, _SUIT, _STRAIGHT, _OPEN, _QUALIFIES, _VALUE = _AT.values()
LONGEST_SUIT: Final = slice(_SUIT, _STRAIGHT)
"""Features that the suits determine; the ranks and whether the hand is of one suit determine all others."""
MADE_LOW: Final = _QUALIFIES + 1
"""Index of the feature that is 1 if the hand qualifies for low."""


@kernel
def read_slots(rows: Any, slots_at: Any, size: Any, ranks: Any, suits: Any, hands: Any) -> None:
    """Write the cards of the block ``slots`` into ``hands`` ``(n, 5)``, ascending, padded with ``NO_CARD``.

    The block begins at ``slots_at`` and has a column for each of ``ranks`` and then ``suits`` for each card.
    """
    for i in range(len(rows)):
        row, hand, at = rows[i], hands[i], slots_at
        for k in range(MAX_HAND):
            hand[k] = NO_CARD
        for k in range(size):
            for column in range(len(ranks)):
                if row[at + column]:
                    hand[k] = 4 * ranks[column]
            at += len(ranks)
            for column in range(len(suits)):
                if row[at + column]:
                    hand[k] += suits[column]
            at += len(suits)


@kernel
def read_cards(rows: Any, hands: Any) -> None:
    """Write the cards set in ``rows`` ``(n, 52)`` into ``hands`` ``(n, 5)``, ascending, padded with ``NO_CARD``."""
    for i in range(len(rows)):
        n = 0
        for card in range(NO_CARD):
            if rows[i, card]:
                hands[i, n] = card
                n += 1
        for k in range(n, MAX_HAND):
            hands[i, k] = NO_CARD


@kernel
def straight_draw(hand: Any, counts: Any) -> Any:
    """Return ``(ranks held, discard bits that keep them, straights they fit)`` of the best, then highest, straight draw."""
    most, best, fits = 0, 0, 0
    for top in range(ACE, 2, -1):  # the straight up to ``top``; 3 is the wheel's five
        held = 0
        for k in range(5):
            held += counts[(top - k) % _RANKS] > 0
        if held > most:
            most, best, fits = held, top, 1
        elif held == most and top == best - fits and counts[best] == 0:
            fits += 1
    return most, discard_outside_run(hand, best, 5), fits


@kernel
def describe_hands(books: Any, low_limit: Any, highs: Any, lows: Any, hands: Any, features: Any, keeps: Any) -> None:
    """Write `FEATURES` numbers and the discard bits of each of `KEEPS` for every hand of ``(n, 5)``.

    ``highs`` ``(values + 1,)`` gives the category of a high value; ``lows`` is the number of low values.
    """
    book = books[0]
    counts = np.zeros(_RANKS, np.int64)
    for i in range(len(hands)):
        x, hand = features[i], hands[i]
        for k in range(FEATURES):
            x[k] = 0
        count_ranks(hand, counts)
        suited, keeps_suit = longest_suit(hand)
        run, keeps_run, fits = straight_draw(hand, counts)
        keeps[i, 0], keeps[i, 1] = discard_not_low(hand, low_limit), discard_unpaired(hand, counts)
        keeps[i, 2], keeps[i, 3] = keeps_suit, keeps_run
        _, _, main = spread_of_groups(counts)
        second = -1
        for rank in range(_RANKS):
            if counts[rank]:
                if rank != main:
                    second = rank
                if (rank + 1) % _RANKS <= low_limit:
                    x[_HELD + (rank + 1) % _RANKS] = 1
        if main >= 0:
            x[_MAIN + main] = 1
        if second >= 0:
            x[_SECOND + second] = 1
        x[_LOWS + low_cards(counts, low_limit)] = 1
        if suited:
            x[_SUIT + suited - 1] = x[_STRAIGHT + run - 1] = 1
        x[_OPEN] = run == 4 and fits > 1
        if hand[book["hand_size"] - 1] < NO_CARD:  # not between a discard and its replacement cards
            high, low = high_value(book, hand), low_value(book, hand)
            x[_CATEGORY + highs[high]] = 1
            x[_QUALIFIES] = high >= book["high_qualifier"]
            x[_QUALIFIES + 1] = low > 0
            x[_VALUE] = high / (len(highs) - 1)
            x[_VALUE + 1] = low / max(1, lows)


class HandReader:
    """Computes features of hands under given rules."""

    def __init__(self, rules: Rules) -> None:
        self._books = rulebook(rules)
        self._size = rules.hand_size
        self._slots_at = field(rules, "slots").start
        self._ranks = np.array([RANKS.index(rank) for rank in rules.ranks], np.int8)
        self._suits = np.array([SUITS.index(suit) for suit in rules.suits], np.int8)
        limit = highest_low_rank(rules)
        self._low_limit = -1 if limit is None else limit
        categories = [category for category, _ in high_classes(rules.hand_size, rules.flushes)]
        self._highs = np.array([0, *categories], np.int8)
        self._lows = len(low_classes(rules.hand_size, limit))

    def __call__(self, rows: NDArray[np.int8]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """``(n, d)`` rows -> ``(n, FEATURES)`` features and ``(n, 4)`` discard bits of `KEEPS`, for the hand in each row."""
        hands = np.empty((len(rows), MAX_HAND), np.int64)
        read_slots(rows, self._slots_at, self._size, self._ranks, self._suits, hands)
        return self._describe(hands)

    def other(self, cards: NDArray[np.generic]) -> NDArray[np.float32]:
        """``(n, 52)`` card indicators -> ``(n, FEATURES)``."""
        hands = np.empty((len(cards), MAX_HAND), np.int64)
        read_cards(cards, hands)
        return self._describe(hands)[0]

    def _describe(self, hands: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        features, keeps = np.empty((len(hands), FEATURES), np.float32), np.empty((len(hands), len(KEEPS)), np.int64)
        describe_hands(self._books, self._low_limit, self._highs, self._lows, hands, features, keeps)
        return features, keeps
