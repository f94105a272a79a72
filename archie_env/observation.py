"""The information state: one table of fields, from which encoder, decoder, spaces, documentation and tests are made.

A row contains everything that one seat has seen, and nothing else: neither the opponent's cards nor its discard count before
the replacements are dealt.  Rows are int8; `scaled` converts them to float32 in [0, 1].

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
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from archie_env._core import encode
from archie_env._core.state import COUNTS, DECK
from archie_env.cards import format_card
from archie_env.errors import ArchieError
from archie_env.rules import Rules, as_rules
from archie_env.validation import one_of

ROW_TYPES: Final = ("int8", "float32", "packed")
"""Forms of a row: whole numbers, the same scaled to [0, 1], or seven words of bits that `unpack` reads."""


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

    def of(self, rows: NDArray[Any]) -> NDArray[Any]:
        """``(..., width)`` rows -> ``(..., *shape)``: this block of each row."""
        return rows[..., self.start : self.start + self.size].reshape(rows.shape[:-1] + self.shape)

    def labels(self) -> list[str]:
        """Return a name for every entry, in order."""
        return [" ".join((self.name, *names)) for names in product(*self.axes)]


def _numbers(what: str, n: int) -> tuple[str, ...]:
    return tuple(f"{what} {i + 1}" for i in range(n))


def pot_unit(rules: Rules) -> int:
    """Return the chips per unit of the pot entry: 1, or more if the largest pot would not fit an int8."""
    return -(-2 * rules.reserve // 127)


def owed_unit(rules: Rules) -> int:
    """Return the chips per unit of the owed entry, which is rounded up: 1, or more if the largest bet would not fit an int8."""
    return -(-_most_owed(rules) // 127)


def _most_owed(rules: Rules) -> int:
    return max(rules.stakes.blinds[1], *rules.stakes.bets)


@functools.cache
def _layout(rules: Rules) -> dict[str, Field]:
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
        ("own_draws", (draws, counts), 1, "own discards in each draw"),
        ("other_draws", (draws, counts), 1, "the opponent's discards in each draw, once public"),
        (
            "wagers",
            (rounds, _numbers("action", rules.raise_cap + 2), ("check/call", "bet/raise")),
            1,
            "every betting action of both players, in order",
        ),
        ("phase", ((*phases, "over"),), 1, "betting round, draw, or hand over"),
        ("dealer", (), 1, "1 if this seat deals"),
        ("owed", (), -(-_most_owed(rules) // owed), f"chips to call{f' / {owed}, rounded up' if owed > 1 else ''}"),
        ("pot", (), 2 * rules.reserve // unit, f"chips in the pot{f' // {unit}' if unit > 1 else ''}"),
    ]
    table, start = {}, 0
    for name, axes, high, meaning in blocks:
        table[name] = Field(name, start, axes, high, meaning)
        start += table[name].size
    return table


def fields(rules: Rules | str) -> tuple[Field, ...]:
    """Return the blocks of a row, in order."""
    return tuple(_layout(as_rules(rules)).values())


def field(rules: Rules | str, name: str) -> Field:
    """Look up the block ``name`` of a row; raises `ArchieError` for an unknown name.

    >>> field("archie", "phase").start
    377
    """
    table = _layout(as_rules(rules))
    one_of("block", name, tuple(table))
    return table[name]


def width(rules: Rules | str) -> int:
    """Return the number of entries in a row."""
    last = fields(rules)[-1]
    return last.start + last.size


@functools.cache
def _highest(rules: Rules) -> NDArray[np.int16]:
    return np.concatenate([np.full(f.size, f.high, np.int16) for f in fields(rules)])


def highest(rules: Rules | str) -> NDArray[np.int16]:
    """``(width,)``: the largest value of each entry, by which the float form is divided."""
    return _highest(as_rules(rules)).copy()


def scaled(rows: NDArray[np.int8], rules: Rules | str) -> NDArray[np.float32]:
    """Convert rows ``(..., width)`` to float32 in [0, 1]; the inverse of `unscaled`."""
    return (rows / _highest(as_rules(rules))).astype(np.float32)


def unscaled(rows: NDArray[np.generic], rules: Rules | str) -> NDArray[np.int8]:
    """Convert rows of either form to int8; integer rows are returned unchanged."""
    if np.issubdtype(rows.dtype, np.floating):
        rows = np.rint(rows.astype(np.float32) * _highest(as_rules(rules)))
    return rows.astype(np.int8, copy=False)


@dataclass(frozen=True, slots=True)
class Seen:
    """A decoded row: everything that one seat has seen."""

    held: tuple[tuple[int, ...], ...]
    """Own cards, ascending, in each betting round so far; between a discard and its replacements, the last are those kept."""
    own_draws: tuple[int, ...]
    """Number of own discards in each draw."""
    other_draws: tuple[int, ...]
    """Number of the opponent's discards in each draw, once public."""
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
        """Present own cards."""
        return self.held[-1]


def decode(row: NDArray[np.generic], rules: Rules | str = "archie") -> Seen:
    """Decode one row ``(width,)`` of either form; the inverse of the engine's encoder."""
    rules = as_rules(rules)
    values = unscaled(np.asarray(row), rules)
    part = {block.name: block.of(values) for block in fields(rules)}
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


def index_table(rules: Rules | str) -> str:
    """Format the blocks of a row as a Markdown table for the documentation."""
    lines = ["| index | block | shape | values | axes | meaning |", "|---|---|---|---|---|---|"]
    for block in fields(rules):
        last = block.start + block.size - 1
        where = str(block.start) if last == block.start else f"{block.start}..{last}"
        axes = (
            " x ".join(f"{axis[0]} .. {axis[-1]}" if len(axis) > 2 else ", ".join(axis) for axis in block.axes) or "one number"
        )
        shape = " x ".join(map(str, block.shape)) or "1"
        lines.append(f"| {where} | `{block.name}` | {shape} | 0..{block.high} | {axes} | {block.meaning} |")
    return "\n".join(lines) + "\n"


def chip_scales(rules: Rules, dtype: np.dtype[Any]) -> tuple[float, float]:
    """Return the factors of the pot and owed entries: 1 for int8 rows; for float32 they scale the largest value to 1.0.

    They are Python numbers, which are faster to pass to kernels than NumPy's.
    """
    if np.issubdtype(dtype, np.integer):
        return 1, 1
    top = highest(rules).tolist()
    return 1 / top[-1], 1 / top[-2]


@functools.cache
def bits_of_row(rules: Rules) -> NDArray[np.int64]:
    """``(width - 2,)``: the bit of the engine's words that each entry of a row is, all but the chips owed and the pot."""
    suits = encode.RANK_BITS + np.arange(len(rules.suits))
    slots = encode.SLOTS + np.arange(rules.hand_size)[:, None] * encode.SLOT_BITS
    counts = np.arange(rules.draws)[:, None] * COUNTS + np.arange(rules.max_discard + 1)
    betting = np.arange(rules.rounds * 2 * (rules.raise_cap + 2))
    more = encode.MORE_BETTING - encode.BETTING_BITS
    bits = {
        "held": encode.HELD + np.arange(rules.rounds)[:, None] * DECK + np.arange(rules.deck_size),
        "slots": slots + np.concatenate((np.arange(len(rules.ranks)), suits)),
        "own_draws": encode.OWN_DRAWS + counts,
        "other_draws": encode.OTHER_DRAWS + counts,
        "wagers": np.where(betting < encode.BETTING_BITS, encode.BETTING, more) + betting,
        "phase": np.array([*(encode.PHASE + np.arange(2 * rules.draws + 1)), encode.OVER]),
        "dealer": np.array([encode.DEALS]),
    }
    return np.concatenate([bits[block.name].ravel() for block in fields(rules)[:-2]])


def unpack(words: NDArray[np.uint64], rules: Rules | str = "archie") -> NDArray[np.int8]:
    """Packed rows ``(..., 7)`` as int8 rows ``(..., width)``.

    Raises:
        ArchieError: for another type or width, with what was expected.
    """
    rules = as_rules(rules)
    last = _checked_words(words, encode.WORDS)[..., -1]
    bits = _bits(words)
    rows = np.empty((*words.shape[:-1], width(rules)), np.int8)
    rows[..., :-2] = bits[..., bits_of_row(rules)]
    rows[..., -2] = last >> np.uint64(encode.OWED % 64) & np.uint64(255)
    rows[..., -1] = last >> np.uint64(encode.POT % 64)
    return rows


def unpack_masks(words: NDArray[np.uint64], rules: Rules | str = "archie") -> NDArray[np.int8]:
    """Packed masks ``(..., 1)`` as int8 masks ``(..., actions)``; raises `ArchieError` as `unpack` does."""
    masks: NDArray[np.int8] = _bits(_checked_words(words, 1))[..., : as_rules(rules).actions]
    return masks


def plain_masks(masks: NDArray[Any], rules: Rules | str) -> NDArray[np.int8]:
    """Convert masks of either form to int8 ``(..., actions)``; int8 masks are returned unchanged."""
    return unpack_masks(masks, rules) if masks.dtype == np.uint64 else masks


def _checked_words(words: NDArray[np.uint64], count: int) -> NDArray[np.uint64]:
    if not isinstance(words, np.ndarray) or words.dtype != np.uint64 or words.ndim == 0 or words.shape[-1] != count:
        found = f"{words.shape} of type {words.dtype}" if isinstance(words, np.ndarray) else f"of type {type(words).__name__}"
        raise ArchieError(f"words {found}: expected (..., {count}) of type uint64")
    return words


def _bits(words: NDArray[np.uint64]) -> NDArray[np.int8]:
    octets = np.ascontiguousarray(words).astype("<u8", copy=False).view(np.uint8)
    return np.unpackbits(octets, axis=-1, bitorder="little").view(np.int8)


def new_rows(n: int, rules: Rules, dtype: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Arrays for the observations and masks of ``n`` games: int8 or float32 entries with int8 masks, or packed words."""
    if dtype not in ROW_TYPES:
        raise ArchieError(f"dtype {dtype!r}: expected {', '.join(map(repr, ROW_TYPES[:-1]))} or {ROW_TYPES[-1]!r}")
    if dtype == "packed":
        return np.zeros((n, encode.WORDS), np.uint64), np.zeros((n, 1), np.uint64)
    return np.zeros((n, width(rules)), dtype), np.zeros((n, rules.actions), np.int8)
