"""Hand values as tables: built once in plain Python, then five additions and one look-up per hand.

The ranks of an ascending hand are a multiset, and ``sum(CHOOSE[i, rank_i])`` numbers the multisets of k ranks without gaps
(the combinatorial number system).  ``rank`` 13 stands for an empty place and adds 0, so hands of fewer than five cards use
the same sum.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from itertools import combinations, combinations_with_replacement
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archie_env._core.state import MAX_HAND, MULTISETS

HIGH_CARD, PAIR, TWO_PAIR, TRIPS, STRAIGHT, FLUSH, FULL_HOUSE, QUADS, STRAIGHT_FLUSH = range(9)
CATEGORIES = 9
ACE = 12
WHEEL = (0, 1, 2, 3, ACE)
_SHAPES = {
    (4, 1): QUADS,
    (3, 2): FULL_HOUSE,
    (3, 1, 1): TRIPS,
    (2, 2, 1): TWO_PAIR,
    (2, 1, 1, 1): PAIR,
    (4,): QUADS,
    (3, 1): TRIPS,
    (2, 2): TWO_PAIR,
    (2, 1, 1): PAIR,
    (3,): TRIPS,
    (2, 1): PAIR,
    (2,): PAIR,
}

CHOOSE = np.array([[comb(r + i, i + 1) for r in range(13)] + [0] for i in range(MAX_HAND)], np.int16)
"""``(5, 14)``: what the card in place i adds to a hand's number, by rank; 0 for no card."""

Key = tuple[int, tuple[int, ...]]
"""A high hand: its category, then what is compared within it, most important first."""


def multiset_number(ranks: tuple[int, ...]) -> int:
    """The number of an ascending multiset of ranks."""
    return sum(comb(r + i, i + 1) for i, r in enumerate(ranks))


def high_key(ranks: tuple[int, ...], suited: bool = False) -> Key:
    """The sortable value of ascending ranks (R3.1); ``suited``: all of one suit, and suits count."""
    groups = sorted(((ranks.count(r), r) for r in set(ranks)), reverse=True)
    order = tuple(r for _, r in groups)
    if len(groups) < len(ranks):
        return _SHAPES[tuple(n for n, _ in groups)], order
    straight = len(ranks) == MAX_HAND and (ranks == WHEEL or ranks[-1] - ranks[0] == MAX_HAND - 1)
    if straight:  # only its top card decides, and the wheel's top is the five
        order = (3,) if ranks == WHEEL else order[:1]
    flush = suited and len(ranks) == MAX_HAND
    return ((STRAIGHT_FLUSH if flush else STRAIGHT) if straight else FLUSH if flush else HIGH_CARD), order


def ace_low(rank: int) -> int:
    """0 for an ace, 1 for a deuce, ... 12 for a king."""
    return (rank + 1) % 13


def low_key(ranks: tuple[int, ...], highest: int) -> tuple[int, ...] | None:
    """Ace-low ranks from the highest down, negated so that better sorts higher; None when it does not qualify (R3.3)."""
    order = sorted((ace_low(r) for r in ranks), reverse=True)
    if len(set(order)) < len(order) or order[0] > highest:
        return None
    return tuple(-r for r in order)


@functools.cache
def _highs(hand_size: int, flushes: bool) -> tuple[dict[tuple[int, ...], Key], dict[tuple[int, ...], Key]]:
    """The value of every ascending multiset of ranks, and of those that can be all of one suit the value it then has."""
    hands = [h for h in combinations_with_replacement(range(13), hand_size) if hand_size < MAX_HAND or h[0] != h[-1]]
    distinct = combinations(range(13), hand_size) if flushes and hand_size == MAX_HAND else ()
    return {hand: high_key(hand) for hand in hands}, {hand: high_key(hand, True) for hand in distinct}


@functools.cache
def _lows(hand_size: int, highest: int | None) -> dict[tuple[int, ...], tuple[int, ...]]:
    """The value of every qualifying low by its ascending ranks; ``highest`` None: no hand qualifies."""
    hands = () if highest is None else combinations(range(13), hand_size)
    return {hand: key for hand in hands if (key := low_key(hand, 0 if highest is None else highest)) is not None}


@functools.cache
def high_classes(hand_size: int, flushes: bool) -> tuple[Key, ...]:
    """Every distinct high hand of that size, worst first: value v is entry v - 1."""
    plain, suited = _highs(hand_size, flushes)
    return tuple(sorted({*plain.values(), *suited.values()}))


@functools.cache
def low_classes(hand_size: int, highest: int | None) -> tuple[tuple[int, ...], ...]:
    """Every qualifying low of that size as ascending ace-low ranks, worst first; ``highest`` None: no hand qualifies."""
    return tuple(sorted(_lows(hand_size, highest).values()))


def _table(keys: Mapping[tuple[int, ...], Any], classes: Sequence[Any]) -> NDArray[np.int16]:
    """``(6188,)``: multiset number -> value from 1 by the hand's place among ``classes``; 0 for a hand without a key."""
    table, value = np.zeros(MULTISETS, np.int16), {key: v for v, key in enumerate(classes, 1)}
    if keys:
        hands = np.array([*keys])
        table[CHOOSE[np.arange(hands.shape[1]), hands].sum(axis=1)] = [value[key] for key in keys.values()]
    return table


@functools.cache
def high_table(hand_size: int, flushes: bool) -> NDArray[np.int16]:
    """``(2, 6188)``: [suited, multiset number] -> high value from 1."""
    (plain, suited), classes = _highs(hand_size, flushes), high_classes(hand_size, flushes)
    return np.stack([_table(plain, classes), _table(plain | suited, classes)])


@functools.cache
def low_table(hand_size: int, highest: int | None) -> NDArray[np.int16]:
    """``(6188,)``: multiset number -> low value from 1, 0 = does not qualify.  ``highest``: ace-low rank allowed."""
    return _table(_lows(hand_size, highest), low_classes(hand_size, highest))
