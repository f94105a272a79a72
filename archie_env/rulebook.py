"""The rules in the form that the engine reads: one compiled record; and the qualifiers as values."""

from __future__ import annotations

import copy
import functools
from itertools import product
from typing import Any, ClassVar, Self, get_args

import numpy as np
from numpy.typing import NDArray

from archie_env._core import encode
from archie_env._core.state import BOOK, CLOSED, DISCARD, DRAWING, GAME, MAX_ACTIONS, NO_CARD
from archie_env._core.tables import PAIR, ace_low, high_classes, high_table, low_table
from archie_env.cards import RANKS, SUITS
from archie_env.errors import ArchieError, RulesError
from archie_env.observation import bits_of_row, owed_unit, pot_unit, width
from archie_env.rules import Replacements, Rules, as_rules

Books = NDArray[np.void]
"""One ``BOOK`` record in an array of length 1: kernels take arrays faster than records."""


def _legal_table(rules: Rules) -> NDArray[np.int8]:
    """``(menus, actions)``: the six situations a player can face; the first four count OWES + 2 * CAPPED."""
    legal = np.zeros((CLOSED + 1, MAX_ACTIONS), np.int8)
    for owes, capped in product((0, 1), (0, 1)):
        legal[owes + 2 * capped, :DISCARD] = owes, 1, not capped
    for m in range(2**rules.hand_size):
        legal[DRAWING, DISCARD + m] = m.bit_count() <= rules.max_discard
    return legal


def _runs(bits: NDArray[np.int64]) -> list[tuple[int, int, int]]:
    """Runs of entries whose bits ascend one by one: the first entry, its bit, how many; none across a multiple of 64."""
    runs: list[tuple[int, int, int]] = []
    for at, bit in enumerate(bits.tolist()):
        if runs and at % 64 and bit % 64 and bit == runs[-1][1] + runs[-1][2]:
            runs[-1] = (*runs[-1][:2], runs[-1][2] + 1)
        else:
            runs.append((at, bit, 1))
    return runs


@functools.lru_cache(maxsize=64)
def rulebook(rules: Rules, replacements: Replacements = "shared") -> Books:
    """The rules as the engine reads them: an array of one ``BOOK`` record.  Never written to."""
    books = np.zeros(1, BOOK)
    book = books[0]
    book["blinds"], book["bet"][: rules.rounds] = rules.stakes.blinds, rules.stakes.bets
    for name in ("raise_cap", "draws", "hand_size", "max_discard", "deck_size"):
        book[name] = getattr(rules, name)
    book["sequential"] = rules.draw_order == "sequential"
    book["equal_split"] = rules.no_qualifier == "equal_split"
    book["per_seat"] = replacements == "per_seat"
    book["deck"] = [*rules.deck, *[NO_CARD] * (len(book["deck"]) - rules.deck_size)]
    book["high_qualifier"] = lowest_qualifying_high(rules)
    book["high"] = high_table(rules.hand_size, rules.flushes)
    book["low"] = low_table(rules.hand_size, highest_low_rank(rules))
    legal = book["legal"] = _legal_table(rules)
    for menu, row in enumerate(legal):
        actions = np.flatnonzero(row)
        book["legal_bits"][menu] = sum(1 << int(a) for a in actions)
        book["legal_count"][menu], book["legal_list"][menu, : len(actions)] = len(actions), actions
    book["width"], book["actions"] = width(rules), rules.actions
    for name, unit in (("pot", pot_unit(rules)), ("owed", owed_unit(rules))):
        book[f"{name}_unit"], book[f"{name}_inverse"] = unit, -(-(2**32) // unit)
    book["wagers_width"] = 2 * (rules.raise_cap + 2)
    for number, card in enumerate(rules.deck):
        rank, suit = rules.ranks.index(RANKS[card >> 2]), rules.suits.index(SUITS[card & 3])
        book["slot"][number] = 1 << rank | 1 << encode.RANK_BITS + suit
    bits = bits_of_row(rules)
    if not np.array_equal(bits, np.arange(encode.PLAIN_BITS)):
        for k, (at, bit, n) in enumerate(_runs(bits)):
            word, low = divmod(bit, 64)
            book["runs"], book["run"][k] = k + 1, (word, 64 - low - n, 64 - n, at % 64, (at + n) % 64 == 0)
    books.setflags(write=False)
    return books


class ReadsRulebook:
    """Base of classes that play by a rulebook; copies and pickles omit everything that can be derived again."""

    rules: Rules
    replacements: Replacements
    _books: Books
    _found: ClassVar[tuple[str, ...]] = ("_books",)
    """Attributes that `_find` sets."""

    def _read_rulebook(self, rules: Rules | str, replacements: Replacements) -> None:
        if replacements not in get_args(Replacements):
            raise RulesError(f"replacements {replacements!r}: expected one of {', '.join(get_args(Replacements))}")
        self.rules, self.replacements = as_rules(rules), replacements
        self._find()

    def _find(self) -> None:
        self._books = rulebook(self.rules, self.replacements)

    def __copy__(self) -> Self:
        return copy.deepcopy(self)  # games of its own: one that shared them would step with the original

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in self._found}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name in ("games", "_games"):
            if name in state and state[name].dtype != GAME:
                raise ArchieError(f"{type(self).__name__}: pickled by another version of archie-env, whose games differ")
        self.__dict__.update(state)
        self._find()


_NEVER = np.iinfo(np.int16).max


def lowest_qualifying_high(rules: Rules) -> int:
    """The least high value that qualifies; above every value when none does."""
    if rules.high_qualifier is None:
        return int(_NEVER)
    rank = RANKS.index(rules.high_qualifier)
    values = enumerate(high_classes(rules.hand_size, rules.flushes), 1)
    return next((v for v, (category, order) in values if (category, order[:1]) >= (PAIR, (rank,))), int(_NEVER))


def highest_low_rank(rules: Rules) -> int | None:
    """The highest ace-low rank a low may hold, or None when there is no low."""
    return None if rules.low_qualifier is None else ace_low(RANKS.index(rules.low_qualifier))
