"""Build abstractions: buckets of hands, the discards that a hand can choose from, and classes of the public past.

A coarser abstraction is faster and learns sooner; a finer one plays better once it has been trained for long enough.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Annotated, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field

from agents._cfr_kernels import CLASSES, NO_OPTION, OPTIONS, PATTERNS, POT_LEVELS, RAISER_HISTORIES
from agents.abstraction import Abstraction
from archie_env._core.state import MAX_HAND
from archie_env._core.tables import (
    ACE,
    FLUSH,
    FULL_HOUSE,
    HIGH_CARD,
    PAIR,
    QUADS,
    STRAIGHT,
    TRIPS,
    TWO_PAIR,
    ace_low,
    high_key,
    low_classes,
    multiset_number,
)
from archie_env.cards import RANKS
from archie_env.errors import ConfigError
from archie_env.rulebook import highest_low_rank
from archie_env.rules import Rules
from training.settings import Settings, Several

Key = tuple[Hashable, ...]
_NEVER: Final = 99  # stands for the rank of a missing low card


def _rising(numbers: tuple[int, ...]) -> tuple[int, ...]:
    if list(numbers) != sorted({n for n in numbers if 1 <= n < POT_LEVELS}):
        raise ValueError(f"expected rising whole numbers 1 to {POT_LEVELS - 1}")
    return numbers


class AbstractionConfig(Settings):
    """How finely an abstraction distinguishes decisions."""

    cards: Literal["coarse", "medium", "fine", "exact"] = "coarse"
    """Hands by their kind; by rank too; by kicker too; a bucket for each class of hands."""
    pots: Several[Annotated[Several[Annotated[int, Field(ge=1, le=POT_LEVELS - 1)]], AfterValidator(_rising)]] = (
        (2, 3),
        (2, 4),
        (4, 8),
    )
    """For each betting round after the first, the bets paid by each player at which a class of pots begins."""
    raisers: int = Field(default=1, ge=0, le=3)
    """Number of rounds before whose last raisers are distinguished."""
    own_draws: int = Field(default=0, ge=0, le=3)
    """Levels of the player's own draw counts.

    * 0: the last count, up to 2 (after a single draw up to 3).
    * 1: the last count, up to 3.  After standing pat, also for how many draws, and whether the last count above 0 was one or
      more.  After drawing one, also whether the count before was two or more.
    * 2: the same, with those counts up to 3.
    * 3: all counts.
    """
    other_draws: int = Field(default=0, ge=0, le=3)
    """The same levels for the other player's draw counts."""


def config_meta(config: AbstractionConfig) -> dict[str, Any]:
    """The part of a run's configuration that names an abstraction, for the ``meta`` of a strategy."""
    return {"stages": [{"abstraction": config.model_dump()}]}


@dataclass(frozen=True, slots=True)
class Hand:
    """A class of hands, as the keys below read it."""

    ranks: tuple[int, ...]
    """Ascending, 0 a deuce .. 12 an ace."""
    odd: int | None
    """Index of the card that is not of the suit of the other four; None if no four are of one suit."""
    category: int
    order: tuple[int, ...]
    """Ranks that order hands of a category, most important first."""
    lows: tuple[int, ...]
    """Different ace-low ranks that a low may hold, ascending."""
    low: int
    """Low value from 1, 0 = no low."""

    @property
    def top(self) -> int:
        """Its highest rank."""
        return self.ranks[-1]

    def bits(self, ranks: set[int]) -> int:
        """Bits of the first card of each of these ranks."""
        return sum(1 << self.ranks.index(rank) for rank in ranks)

    def straight_draw(self) -> int | None:
        """Bits of the highest four ranks in a row that a rank on either side would fill."""
        for first in range(ACE - 4, -1, -1):
            run = set(range(first, first + 4))
            if run <= set(self.ranks):
                return self.bits(run)
        return None


def _keeps(hand: Hand) -> Iterator[tuple[int, int]]:
    """``(option, bits kept)`` of the discards that a good player considers, the most usual first."""
    size, n = len(hand.ranks), len(hand.lows)
    everything = (1 << size) - 1
    made = hand.category >= STRAIGHT
    paired = sum(1 << i for i, rank in enumerate(hand.ranks) if hand.ranks.count(rank) > 1)

    def lowest(k: int) -> int:
        return hand.bits({(low - 1) % 13 for low in hand.lows[:k]})

    yield 0, everything
    if hand.category in (PAIR, TWO_PAIR, TRIPS, QUADS):
        yield 1, paired
    if n >= size - 1 and hand.category <= FLUSH:
        yield 2, lowest(size - 1)
    if n >= size - 2 and not made:
        yield 3, lowest(size - 2)
    if size - 3 <= n <= size - 2 and hand.category <= PAIR:
        yield 4, lowest(size - 3)
    if size == MAX_HAND and not made:
        if hand.odd is not None:
            yield 5, everything ^ 1 << hand.odd
        elif hand.category <= PAIR and (run := hand.straight_draw()) is not None:
            yield 5, run
    single = max((i for i in range(size) if not paired >> i & 1), default=0)
    if hand.category == TRIPS or (hand.category == PAIR and size > 2 and hand.ranks[single] == ACE):
        yield 6, paired | 1 << single
    elif hand.category == TWO_PAIR:
        yield 6, sum(1 << i for i, rank in enumerate(hand.ranks) if rank == hand.order[0])
    elif hand.category == HIGH_CARD and n <= size - 2 and hand.top >= ACE - 1:
        yield 6, 1 << size - 1
    if hand.category == HIGH_CARD and n <= size - 3:
        yield 7, 0


def discards(hand: Hand, most: int, whole: bool) -> list[int]:
    """``OPTIONS`` discards as bits, ``NO_OPTION`` for none; ``whole``: every subset of the cards, if there is room."""
    size = len(hand.ranks)
    everything = (1 << size) - 1
    options = [NO_OPTION] * OPTIONS
    if whole and everything < OPTIONS:
        keeps: list[tuple[int, int]] = [(bits, everything ^ bits) for bits in range(everything + 1)]
    else:
        keeps = list(_keeps(hand))
    for option, kept in keeps:
        discarded = everything ^ kept
        if discarded.bit_count() <= most and discarded not in options:
            options[option] = discarded
    return options


def _four_lows(lows: tuple[int, ...], level: int) -> Key:
    a, b, c, d = lows[:4]
    fills = (2 if a else 1) if d - a == 3 else int(d - a == 4)  # ranks that make a straight of it
    return ((d,), (d, min(max(c, 3), 5), fills), (d, c, b, fills))[level]


def draw_key(hand: Hand, level: int) -> Key:
    """The features that matter in a hand with draws to come."""
    category, order, lows = hand.category, hand.order, hand.lows
    suited, straight = hand.odd is not None, hand.straight_draw() is not None
    if category >= FULL_HOUSE:
        return (order[0],) if level == 2 else ()
    if category == FLUSH:
        return hand.top if level else hand.top == ACE, hand.low > 0
    if category == STRAIGHT:
        return order[0] if level else order[0] // 3, hand.low > 0
    if category == TRIPS:
        return (order[0] if level else order[0] // 4,)
    if category == TWO_PAIR:
        return ((order[0] // 3,), (order[0], order[1] // 4), order[:2])[level]
    size = len(hand.ranks)
    if size < MAX_HAND:  # small games have few classes
        return (category, *order[: level + 1], *lows[: level + 1])
    if category == PAIR:
        pair = order[0] if level else max(order[0], 3) // 3
        fourth: Key = ()
        if len(lows) == 4:
            fourth = _four_lows(lows, level)
        elif len(lows) == 3:
            fourth = ((), (max(lows[2], 4),), (lows[2], lows[1]))[level]
        kicker = -1 if level < 2 or order[0] == hand.top else max(hand.top, 8)
        return pair, fourth, suited, kicker
    if hand.low:
        return (hand.low, suited) if level else (max(lows[-1], 5),)
    if len(lows) >= 4:
        return _four_lows(lows, level), suited, level == 2 and hand.top == ACE
    if len(lows) == 3:
        third: Key = ((max(lows[2], 4),), (lows[2], min(max(lows[1], 1), 4)), (lows[2], lows[1], hand.top))[level]
        return third, suited, straight
    top = hand.top if level else hand.top == ACE
    return len(lows), suited, straight, top, lows if level == 2 else ()


def showdown_key(hand: Hand, level: int) -> Key:
    """The features that matter in a hand at the showdown."""
    category, order = hand.category, hand.order
    if hand.low:
        step = 1 if level == 2 else (5 if level else 12) if hand.lows[-1] == 7 else (1 if level else 7)
        return hand.lows[-1], hand.low // step, category if category >= STRAIGHT else 0
    if category == HIGH_CARD:
        second = order[1] if len(order) > 1 else 0
        return (order[0],) if level == 0 else (order[0], second // (2 if level == 2 else 4))
    if category == PAIR:
        kickers = (*order[1:], 0, 0)
        return (order[0], *((), (kickers[0] // 4,), (kickers[0], kickers[1] // 4))[level])
    if category == TWO_PAIR:
        return (order[0], *((), (order[1] // 4,), (order[1],))[level])
    if category == TRIPS:
        return (order[0] if level else order[0] // 4,)
    if category == STRAIGHT:
        return (order[0] if level else order[0] // 5,)
    if category == FLUSH:
        return (order[0] if level else order[0] // 11,)
    return ((), (order[0] // 4,), (order[0],))[level] if category == FULL_HOUSE else ()


@functools.cache
def hands(rules: Rules) -> dict[int, Hand]:
    """All classes of hands that can be dealt, by number."""
    size, limit = rules.hand_size, highest_low_rank(rules)
    suited = rules.flushes and size == MAX_HAND
    low_of = {key: value for value, key in enumerate(low_classes(size, limit), 1)}
    found = {}
    for ranks in combinations_with_replacement([RANKS.index(rank) for rank in rules.ranks], size):
        if max(map(ranks.count, ranks)) > len(rules.suits):
            continue
        ace_lows = sorted({ace_low(rank) for rank in ranks})
        lows = tuple(low for low in ace_lows if limit is not None and low <= limit)
        low = low_of.get(tuple(-low for low in reversed(ace_lows)), 0) if len(ace_lows) == size else 0
        for pattern in range(PATTERNS if suited else 1):
            odd = None if pattern in (0, PATTERNS - 1) else pattern - 1
            four = ranks if odd is None else ranks[:odd] + ranks[odd + 1 :]
            if pattern and len(set(four)) < len(four):
                continue  # cards of one suit have different ranks
            category, order = high_key(ranks, pattern == PATTERNS - 1)
            number = multiset_number(ranks) * PATTERNS + pattern
            found[number] = Hand(ranks, odd, category, order, lows, low)
    return found


def _numbered(keys: dict[int, Key]) -> NDArray[np.int64]:
    """Number the keys of classes as buckets ``(CLASSES,)``, in the order of first classes; other classes are in bucket 0."""
    buckets: dict[Key, int] = {}
    table = np.zeros(CLASSES, np.int64)
    for number, key in keys.items():
        table[number] = buckets.setdefault(key, len(buckets))
    return table


def _draw_class(draws: tuple[int, ...], level: int) -> Key:
    """A class of the discard counts so far, oldest first; each level refines the one below."""
    if not draws or level == 3:
        return draws
    last, fine = draws[-1], level == 2
    if len(draws) == 1:
        return (min(last, 3 + fine),)
    if level == 0:
        return (min(last, 2),)
    if last == 0:
        drew = max((i for i, n in enumerate(draws) if n), default=None)  # the last draw of any card
        return (0, 0, 0) if drew is None else (0, len(draws) - drew, min(draws[drew], 2 + fine))
    before = draws[-2]
    if last == 1:
        return 1, min(before, 3) if fine else before >= 2
    return min(last, 3), fine and last == 2 and before >= 3


def _past(rules: Rules, digits: int, base: int, key: Callable[[int, tuple[int, ...]], Key]) -> NDArray[np.int64]:
    """``(4, base ** digits)``: classes by round of a code with a digit for each round or draw before."""
    table = np.zeros((4, base**digits), np.int64)
    for r in range(rules.rounds):
        classes: dict[Key, int] = {}
        for code in range(base**r):
            past = tuple(code // base**i % base for i in range(r))
            table[r, code] = classes.setdefault(key(r, past), len(classes))
    return table


def build(rules: Rules, config: AbstractionConfig) -> Abstraction:
    """Build an abstraction.

    Raises:
        ArchieError: for rules that tables can't hold.
    """
    if len(config.pots) < rules.draws:
        raise ConfigError(f"pots = {config.pots}: expected a list for each of the {rules.draws} rounds after the first")
    level = {"coarse": 0, "medium": 1, "fine": 2, "exact": 2}[config.cards]
    exact = config.cards == "exact"
    draw_keys: dict[int, Key] = {}
    showdown_keys: dict[int, Key] = {}
    options = np.full((CLASSES, OPTIONS), NO_OPTION, np.uint8)
    options[:, 0] = 0
    for number, hand in hands(rules).items():
        options[number] = discards(hand, rules.max_discard, exact)
        choices = tuple(np.flatnonzero(options[number] != NO_OPTION).tolist())
        draw_keys[number] = (number,) if exact else (choices, hand.category, draw_key(hand, level))
        showdown_keys[number] = (number,) if exact else (hand.category, hand.low > 0, showdown_key(hand, level))
    pot = np.zeros((4, POT_LEVELS), np.int64)
    for r in range(1, rules.rounds):
        pot[r] = np.searchsorted(config.pots[r - 1], np.arange(POT_LEVELS), side="right")

    def codes(position: int) -> NDArray[np.int64]:
        """Classes of last raisers, relative to the player: both positions have the same ones."""
        table = np.zeros((4, RAISER_HISTORIES), np.int64)
        for r in range(rules.rounds):
            for code in range(3**r):
                # 0 nobody, 1 the dealer, 2 the big blind
                seen = [code // 3**i % 3 for i in range(max(0, r - config.raisers), r)]
                relative = [0 if who == 0 else 1 + (who - 1 != position) for who in seen]
                table[r, code] = sum(who * 3**i for i, who in enumerate(relative))
        return table

    def discarded(level: int) -> NDArray[np.int64]:
        return _past(rules, 3, 6, lambda r, past: _draw_class(past, level))

    parts: dict[str, NDArray[Any]] = {
        "early": _numbered(draw_keys),
        "final": _numbered(showdown_keys),
        "slots": options,
        "pot": pot,
        "raiser": np.stack([codes(0), codes(1)], axis=1),
        "own": discarded(config.own_draws),
        "other": discarded(config.other_draws),
    }
    return Abstraction.of(rules, parts)
