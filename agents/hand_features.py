"""What a poker player sees at once in a hand, as numbers: made values, draws, and the four discards worth a name.

Everything is computed from rows of the information state, so that a network can be given it as part of its own first layer.

>>> [keep for keep in KEEPS]
['low cards', 'groups', 'longest suit', 'best straight draw']
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agents._kernels import low_cards, spread_of_groups, throw_not_low, throw_unpaired
from agents.rows import count_ranks
from archie_env._core.jit import kernel
from archie_env._core.showdown import high_value, low_value
from archie_env._core.state import MAX_HAND, NO_CARD
from archie_env._core.tables import ACE, CATEGORIES, high_classes, low_classes
from archie_env.cards import RANKS, SUITS
from archie_env.observation import fields
from archie_env.rulebook import highest_low_rank, rulebook
from archie_env.rules import Rules

KEEPS: Final = ("low cards", "groups", "longest suit", "best straight draw")
"""Named discards: what each keeps.  Their bits are the slots of the discard head."""

_RANKS = 13
_BLOCKS: Final = {
    "category": CATEGORIES,  # of the high hand, one-hot
    "main rank": _RANKS,  # of the largest group, one-hot
    "second rank": _RANKS,  # highest rank outside it, one-hot
    "low ranks held": _RANKS,  # by ace-low rank up to the low limit
    "low cards": MAX_HAND + 1,  # different ranks a low may hold, one-hot
    "longest suit": MAX_HAND,  # its cards less one, one-hot
    "straight draw": MAX_HAND,  # most cards of one straight less one, one-hot
    "open": 1,  # four to a straight that two ranks complete
    "qualifies": 2,  # for high, for low
    "value": 2,  # of the high and of the low, 0 to 1 among all hands, better higher
}
FEATURES: Final = sum(_BLOCKS.values())
"""Numbers for each hand, all in [0, 1]."""
_AT = dict(zip(_BLOCKS, np.cumsum([0, *_BLOCKS.values()]).tolist(), strict=False))
_CATEGORY, _MAIN, _SECOND, _HELD, _LOWS, _SUIT, _STRAIGHT, _OPEN, _QUALIFIES, _VALUE = _AT.values()
MADE_LOW: Final = _QUALIFIES + 1
"""The feature that is 1 for a hand that qualifies for low."""


@kernel
def read_slots(rows: Any, slots_at: Any, size: Any, ranks: Any, suits: Any, hands: Any) -> None:
    """Write the cards that the discard bits refer to into ``hands`` ``(n, 5)``, lowest first, empty places last.

    A row's slots begin at ``slots_at``; each has a column for each of ``ranks`` and then of ``suits``.
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
    """Write the cards whose columns ``(n, 52)`` are set into ``hands`` ``(n, 5)``, ascending, empty places last."""
    for i in range(len(rows)):
        n = 0
        for card in range(NO_CARD):
            if rows[i, card]:
                hands[i, n] = card
                n += 1
        for k in range(n, MAX_HAND):
            hands[i, k] = NO_CARD


@kernel
def longest_suit(hand: Any) -> Any:
    """``(cards, discard bits that keep them)`` of the suit with most cards."""
    most, bits = 0, 0
    for suit in range(4):
        cards, others = 0, 0
        for k in range(MAX_HAND):
            if hand[k] < NO_CARD:
                if hand[k] & 3 == suit:
                    cards += 1
                else:
                    others |= 1 << k
        if cards > most:
            most, bits = cards, others
    return most, bits


@kernel
def straight_draw(hand: Any, counts: Any) -> Any:
    """``(cards, discard bits that keep them, straights they fit)`` of the straight with most ranks held, the highest first."""
    most, best, fits = 0, 0, 0
    for top in range(ACE, 2, -1):  # the straight up to ``top``; 3 is the wheel's five
        held = 0
        for k in range(5):
            held += counts[(top - k) % _RANKS] > 0
        if held > most:
            most, best, fits = held, top, 1
        elif held == most and top == best - fits and counts[best] == 0:
            fits += 1
    bits, used = 0, 0
    for k in range(MAX_HAND):
        if hand[k] < NO_CARD:
            rank = hand[k] >> 2
            if (best - rank) % _RANKS < 5 and not used >> rank & 1:
                used |= 1 << rank
            else:
                bits |= 1 << k
    return most, bits, fits


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
        keeps[i, 0], keeps[i, 1] = throw_not_low(hand, low_limit), throw_unpaired(hand, counts)
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
        if hand[book["hand_size"] - 1] < NO_CARD:  # between a discard and its replacements there is no whole hand
            high, low = high_value(book, hand), low_value(book, hand)
            x[_CATEGORY + highs[high]] = 1
            x[_QUALIFIES] = high >= book["high_qualifier"]
            x[_QUALIFIES + 1] = low > 0
            x[_VALUE] = high / (len(highs) - 1)
            x[_VALUE + 1] = low / max(1, lows)


class HandReader:
    """Reads hands under given rules."""

    def __init__(self, rules: Rules) -> None:
        self._books = rulebook(rules)
        self._size = rules.hand_size
        self._slots_at = next(f.start for f in fields(rules) if f.name == "slots")
        self._ranks = np.array([RANKS.index(rank) for rank in rules.ranks], np.int8)
        self._suits = np.array([SUITS.index(suit) for suit in rules.suits], np.int8)
        limit = highest_low_rank(rules)
        self._low_limit = -1 if limit is None else limit
        categories = [category for category, _ in high_classes(rules.hand_size, rules.flushes)]
        self._highs = np.array([0, *categories], np.int8)
        self._lows = len(low_classes(rules.hand_size, limit))

    def __call__(self, rows: NDArray[np.int8]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """``(n, d)`` rows -> ``(n, FEATURES)`` features and ``(n, 4)`` discard bits of `KEEPS`, of the hand held."""
        hands = np.empty((len(rows), MAX_HAND), np.int64)
        read_slots(rows, self._slots_at, self._size, self._ranks, self._suits, hands)
        return self._describe(hands)

    def other(self, cards: NDArray[np.generic]) -> NDArray[np.float32]:
        """``(n, 52)``, 1 for each card of a hand -> ``(n, FEATURES)``."""
        hands = np.empty((len(cards), MAX_HAND), np.int64)
        read_cards(cards, hands)
        return self._describe(hands)[0]

    def _describe(self, hands: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        features, keeps = np.empty((len(hands), FEATURES), np.float32), np.empty((len(hands), len(KEEPS)), np.int64)
        describe_hands(self._books, self._low_limit, self._highs, self._lows, hands, features, keeps)
        return features, keeps
