"""The information state: one table of fields, from which encoder, decoder, spaces, documentation and tests are made.

A row holds everything one seat has seen and nothing it could not know: the other's cards and a committed but undealt
discard count are never in it.  Rows are int8 inside; `scaled` gives float32 in [0, 1].

>>> [(f.name, f.start, f.shape) for f in fields("archie")][:2]
[('held', 0, (4, 52)), ('slots', 208, (5, 17))]
>>> width("archie")
388
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, get_args

import numpy as np
from numpy.typing import NDArray

from archie_env._core.state import BOOK, CLOSED, DISCARD, DRAWING, MAX_ACTIONS
from archie_env._core.tables import PAIR, ace_low, high_classes, high_table, low_table
from archie_env.cards import RANKS, SUITS, format_card
from archie_env.errors import RulesError
from archie_env.rules import Replacements, Rules, as_rules

Books = NDArray[np.void]
"""One ``BOOK`` record in an array of length 1: kernels take arrays faster than records."""


@dataclass(frozen=True, slots=True)
class Field:
    """One block of the information state."""

    name: str
    start: int
    """Index of its first entry."""
    axes: tuple[tuple[str, ...], ...]
    """The names along each axis."""
    high: int
    """Largest value of an entry; the smallest is 0."""
    meaning: str

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""
        return tuple(len(axis) for axis in self.axes)

    @property
    def size(self) -> int:
        """Entries in the block."""
        return math.prod(self.shape)

    def labels(self) -> list[str]:
        """A name for every entry, in order."""
        return [" ".join((self.name, *names)) for names in product(*self.axes)]


def _numbers(what: str, n: int) -> tuple[str, ...]:
    return tuple(f"{what} {i + 1}" for i in range(n))


def pot_unit(rules: Rules) -> int:
    """Chips per step of the pot entry: 1, or more where the largest pot would not fit an int8."""
    return -(-2 * rules.reserve // 127)


def owed_unit(rules: Rules) -> int:
    """Chips per step of the owed entry, which is rounded up: 1, or more where the largest bet would not fit an int8."""
    return -(-_most_owed(rules) // 127)


def _most_owed(rules: Rules) -> int:
    return max(rules.stakes.blinds[1], *rules.stakes.bets)


@functools.cache
def _layout(rules: Rules) -> tuple[Field, ...]:
    rounds = _numbers("round", rules.rounds)
    draws = _numbers("draw", rules.draws)
    counts = tuple(str(n) for n in range(rules.max_discard + 1))
    phases = tuple(name for i, r in enumerate(rounds) for name in (r, *draws[i : i + 1]))
    slot = (*rules.ranks, *rules.suits)
    unit, owed = pot_unit(rules), owed_unit(rules)
    blocks: list[tuple[str, tuple[tuple[str, ...], ...], int, str]] = [
        ("held", (rounds, tuple(map(format_card, rules.deck))), 1, "own cards in each betting round dealt so far"),
        (
            "slots",
            (_numbers("slot", rules.hand_size), slot),
            1,
            "the hand the discard bits refer to, lowest card first",
        ),
        ("own_draws", (draws, counts), 1, "own cards thrown in each draw"),
        ("other_draws", (draws, counts), 1, "the other's cards thrown in each draw, once public"),
        (
            "wagers",
            (rounds, _numbers("action", rules.raise_cap + 2), ("check/call", "bet/raise")),
            1,
            "every betting action of both players in the order made",
        ),
        ("phase", ((*phases, "over"),), 1, "betting round, draw, or hand over"),
        ("dealer", (), 1, "1 if this seat deals"),
        ("owed", (), -(-_most_owed(rules) // owed), f"chips to call{f' / {owed}, rounded up' if owed > 1 else ''}"),
        ("pot", (), 2 * rules.reserve // unit, f"chips in the pot{f' // {unit}' if unit > 1 else ''}"),
    ]
    table, start = [], 0
    for name, axes, high, meaning in blocks:
        table.append(Field(name, start, axes, high, meaning))
        start += table[-1].size
    return tuple(table)


def fields(rules: Rules | str) -> tuple[Field, ...]:
    """The blocks of a row, in order."""
    return _layout(as_rules(rules))


def width(rules: Rules | str) -> int:
    """Entries in a row."""
    last = fields(rules)[-1]
    return last.start + last.size


@functools.cache
def _highest(rules: Rules) -> NDArray[np.int16]:
    return np.concatenate([np.full(f.size, f.high, np.int16) for f in fields(rules)])


def highest(rules: Rules | str) -> NDArray[np.int16]:
    """``(width,)``: the largest value of each entry, the divisor of the float form."""
    return _highest(as_rules(rules)).copy()


def scaled(rows: NDArray[np.int8], rules: Rules | str) -> NDArray[np.float32]:
    """Rows ``(..., width)`` as float32 in [0, 1]; the inverse of `unscaled`."""
    return (rows / _highest(as_rules(rules))).astype(np.float32)


def unscaled(rows: NDArray[np.generic], rules: Rules | str) -> NDArray[np.int8]:
    """Rows as int8, whichever of the two forms they came in; an integer row is returned as it is."""
    if np.issubdtype(rows.dtype, np.floating):
        rows = np.rint(rows.astype(np.float32) * _highest(as_rules(rules)))
    return rows.astype(np.int8, copy=False)


@dataclass(frozen=True, slots=True)
class Seen:
    """A row, read: what one seat has seen."""

    held: tuple[tuple[int, ...], ...]
    """Own cards, ascending, in each betting round so far; the last may be what was kept, before the replacements."""
    own_draws: tuple[int, ...]
    """Own cards thrown, per draw."""
    other_draws: tuple[int, ...]
    """The other's cards thrown, per public draw."""
    wagers: tuple[tuple[int, ...], ...]
    """Betting actions of each round: 1 check/call, 2 bet/raise."""
    phase: int
    """0 .. 2 * draws as bet, draw, bet, ...; one more when the hand is over."""
    dealer: bool
    owed: int
    """Chips to call, rounded up to the owed entry's unit."""
    pot: int
    """Chips in the pot, rounded down to the pot entry's unit."""

    @property
    def hand(self) -> tuple[int, ...]:
        """Own cards now."""
        return self.held[-1]


def decode(row: NDArray[np.generic], rules: Rules | str) -> Seen:
    """Read one row ``(width,)`` in either form; the inverse of the engine's encoder."""
    rules = as_rules(rules)
    values = unscaled(np.asarray(row), rules)
    part = {f.name: values[f.start : f.start + f.size].reshape(f.shape) for f in fields(rules)}
    deck = np.array(rules.deck)

    def draws(block: str) -> tuple[int, ...]:
        return tuple(int(counts.argmax()) for counts in part[block] if counts.any())

    return Seen(
        held=tuple(tuple(int(c) for c in deck[cards != 0]) for cards in part["held"])[: len(draws("own_draws")) + 1],
        own_draws=draws("own_draws"),
        other_draws=draws("other_draws"),
        wagers=tuple(tuple(int(a.argmax()) + 1 for a in actions if a.any()) for actions in part["wagers"]),
        phase=int(part["phase"].argmax()),
        dealer=bool(part["dealer"]),
        owed=int(part["owed"]) * owed_unit(rules),
        pot=int(part["pot"]) * pot_unit(rules),
    )


def _legal_table(rules: Rules) -> NDArray[np.int8]:
    """``(menus, actions)``: the six situations a player can face; the first four count OWES + 2 * CAPPED."""
    legal = np.zeros((CLOSED + 1, MAX_ACTIONS), np.int8)
    for owes, capped in product((0, 1), (0, 1)):
        legal[owes + 2 * capped, :DISCARD] = owes, 1, not capped
    for m in range(2**rules.hand_size):
        legal[DRAWING, DISCARD + m] = m.bit_count() <= rules.max_discard
    return legal


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
    book["deck"][: rules.deck_size] = rules.deck
    book["high_qualifier"] = lowest_qualifying_high(rules)
    book["high"] = high_table(rules.hand_size, rules.flushes)
    book["low"] = low_table(rules.hand_size, highest_low_rank(rules))
    legal = book["legal"] = _legal_table(rules)
    for menu, row in enumerate(legal):
        actions = np.flatnonzero(row)
        book["legal_bits"][menu] = sum(1 << int(a) for a in actions)
        book["legal_count"][menu], book["legal_list"][menu, : len(actions)] = len(actions), actions
    block = {f.name: f for f in fields(rules)}
    book["width"], book["actions"] = width(rules), rules.actions
    book["pot_unit"], book["owed_unit"] = pot_unit(rules), owed_unit(rules)
    book["wagers_width"] = 2 * (rules.raise_cap + 2)
    for name in ("wagers", "phase", "dealer"):
        book[f"{name}_at"] = block[name].start
    book["held_at"] = book["slot_at"] = book["drawn_at"] = block["pot"].start
    slots, slot_width = block["slots"].start, len(rules.ranks) + len(rules.suits)
    for column, card in enumerate(rules.deck):
        rank, suit = rules.ranks.index(RANKS[card >> 2]), rules.suits.index(SUITS[card & 3])
        for r in range(rules.rounds):
            book["held_at"][r, card] = block["held"].start + r * rules.deck_size + column
        for slot in range(rules.hand_size):
            at = slots + slot * slot_width
            book["slot_at"][slot, card] = at + rank, at + len(rules.ranks) + suit
    counts = rules.max_discard + 1
    for i, name in enumerate(("own_draws", "other_draws")):
        for d in range(rules.draws):
            at = block[name].start + d * counts
            book["drawn_at"][i, d, 1 : counts + 1] = range(at, at + counts)
    books.setflags(write=False)
    return books


class ReadsRulebook:
    """A base for what plays by a rulebook: copies and pickles leave out what can be found again."""

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

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in self._found}

    def __setstate__(self, state: dict[str, Any]) -> None:
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


def index_table(rules: Rules | str) -> str:
    """The blocks of a row as a Markdown table, for the documentation."""
    lines = ["| index | block | shape | values | axes | meaning |", "|---|---|---|---|---|---|"]
    for field in fields(rules):
        last = field.start + field.size - 1
        where = str(field.start) if last == field.start else f"{field.start}..{last}"
        axes = (
            " x ".join(f"{axis[0]} .. {axis[-1]}" if len(axis) > 2 else ", ".join(axis) for axis in field.axes) or "one number"
        )
        shape = " x ".join(map(str, field.shape)) or "1"
        lines.append(f"| {where} | `{field.name}` | {shape} | 0..{field.high} | {axes} | {field.meaning} |")
    return "\n".join(lines) + "\n"
