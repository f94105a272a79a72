"""Tables of counterfactual regret minimisation: empty ones, refinements of coarser ones, and strategies made from them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents._cfr_kernels import OPTIONS
from agents.abstraction import Abstraction
from agents.archive import Header
from agents.cfr import STEPS
from archie_env.errors import ArchieError
from training.cfr._table_kernels import AVERAGES, REGRETS, quantise

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
_LINE = 64  # bytes of a cache line
_AT_ONCE = 1 << 18  # blocks copied at a time, so that a refinement needs little more memory than its result


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """Regrets and average weights of every decision of an abstraction."""

    abstraction: Abstraction
    bets: Floats
    """``(bet_blocks, 2, width)``: [:, 0] regrets, [:, 1] average weights, of fold, call and raise at each node."""
    draws: Floats
    """``(draw_blocks, 2, 8)``: the same for the discard options."""

    @classmethod
    def empty(cls, abstraction: Abstraction) -> Tables:
        """Make tables of zeros, in which every legal action is equally likely."""
        bets = _zeros(abstraction.bet_blocks, 2, abstraction.width)
        return cls(abstraction, bets, _zeros(abstraction.draw_blocks, 2, OPTIONS))

    def filled(self, arrays: Mapping[str, NDArray[Any]]) -> Tables:
        """Write ``bets`` and ``draws`` of these shapes into the tables, and return them.

        Raises:
            ArchieError: for other shapes or types, and values that are nan or infinite.
        """
        for name, into in (("bets", self.bets), ("draws", self.draws)):
            check_header(name, arrays[name], into)
            for start in range(0, len(into), _AT_ONCE):
                part = arrays[name][start : start + _AT_ONCE]
                if not np.isfinite(part).all():
                    raise ArchieError(f"{name} holds nan or infinite values: expected finite numbers")
                into[start : start + _AT_ONCE] = part
        return self

    def refined(self, abstraction: Abstraction, scale: float) -> Tables:
        """Return tables of another abstraction of the same rules, initialised from these.

        Every block is ``scale`` times the block here that contains one of its information sets.
        """
        result = Tables.empty(abstraction)
        for new, old, blocks in (
            (result.bets, self.bets, _bet_blocks(self.abstraction, abstraction)),
            (result.draws, self.draws, _draw_blocks(self.abstraction, abstraction)),
        ):
            done = 0
            for part in blocks:
                for start in range(0, len(part), _AT_ONCE):
                    chosen = part[start : start + _AT_ONCE]
                    np.multiply(old[chosen], np.float32(scale), out=new[done : done + len(chosen)])
                    done += len(chosen)
        return result

    def strategy(
        self, min_probability: float, part: int = AVERAGES, quantization_levels: int = STEPS
    ) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Return a strategy in 255ths, ``(bet_blocks, width)`` and ``(draw_blocks, 8)``.

        Args:
            min_probability: actions of smaller probability are dropped; 1 keeps only the likeliest.
            part: ``AVERAGES``, or ``REGRETS`` for the current strategy.
            quantization_levels: a divisor of 255; probabilities are rounded to multiples of 1 / quantization_levels.
        """
        bets = np.zeros(self.bets[:, 0].shape, np.uint8)
        draws = np.zeros(self.draws[:, 0].shape, np.uint8)
        quantise(self.bets[:, part], 3, min_probability, quantization_levels, bets)
        quantise(self.draws[:, part], OPTIONS, min_probability, quantization_levels, draws)
        for table in (bets, draws):
            table *= STEPS // quantization_levels
        return bets, draws


def check_header(name: str, header: Header | NDArray[Any], expected: NDArray[Any]) -> None:
    """Raise `ArchieError` unless an array, or its header, has the shape and type of another."""
    if header.shape != expected.shape or header.dtype != expected.dtype:
        raise ArchieError(f"{name} {header.shape} of type {header.dtype}: expected {expected.dtype} {expected.shape}")


def strategy_tables(abstraction: Abstraction, bets: NDArray[np.uint8], draws: NDArray[np.uint8], regret: float) -> Tables:
    """Initialise tables from a strategy: regrets of ``regret`` chips times the probability, and no averages."""
    result = Tables.empty(abstraction)
    result.bets[:, REGRETS] = bets * np.float32(regret / STEPS)
    result.draws[:, REGRETS] = draws * np.float32(regret / STEPS)
    return result


def _zeros(*shape: int) -> Floats:
    """Return zeros aligned to a cache line, so that threads share as few lines as possible."""
    line = _LINE // np.dtype(np.float32).itemsize
    zeros = np.zeros(math.prod(shape) + line, np.float32)
    start = -(zeros.ctypes.data // zeros.itemsize) % line
    result: Floats = zeros[start : start + math.prod(shape)].reshape(shape)
    return result


def _examples(classes: Ints, codes: Ints) -> Ints:
    """Return the first code of each class; ``codes`` index ``classes``."""
    found, first = np.unique(classes[codes], return_index=True)
    examples = np.zeros(int(classes[codes].max()) + 1, np.int64)
    examples[found] = codes[first]
    return examples


def _codes(r: int, base: int) -> Ints:
    return np.arange(base**r)


def _axes(old: Abstraction, new: Abstraction, r: int, after: int) -> tuple[list[Ints], list[int]]:
    """Map the new abstraction's classes of pots, raisers, own and other draws to the old ones; returns the maps and old sizes.

    Draws are those before round r, pots and raisers those before round ``after``.
    """
    axes, sizes = [], []
    for name, s in (("pot", after), ("raiser", after), ("own", r), ("other", r)):
        if name == "raiser":  # numbered the same for both positions
            mine, theirs, codes = new.parts[name][s, 0], old.parts[name][s, 0], _codes(s, 3)
        elif name == "pot":
            mine, theirs, codes = new.parts[name][s], old.parts[name][s], np.arange(new.parts[name].shape[1])
        else:
            mine, theirs, codes = new.parts[name][s], old.parts[name][s], _codes(s, 6)
        axis = theirs[_examples(mine, codes)].astype(np.int64)
        axes.append(np.pad(axis, (0, int(new.record[0][f"{name}s"][s]) - len(axis))))
        sizes.append(int(old.record[0][f"{name}s"][s]))
    return axes, sizes


def _blocks(old: Abstraction, new: Abstraction, r: int, after: int, part: str, start: int) -> Ints:
    axes, sizes = _axes(old, new, r, after)
    mine, theirs = new.parts[part], old.parts[part]
    _, first = np.unique(mine, return_index=True)
    buckets = theirs[first].astype(np.int64)
    index = np.arange(2, dtype=np.int64)
    for axis, size in zip(axes, sizes, strict=True):
        index = index[..., None] * size + axis
    result: Ints = start + (index[..., None] * (int(theirs.max()) + 1) + buckets).ravel()
    return result


def _bet_blocks(old: Abstraction, new: Abstraction) -> Iterator[Ints]:
    for r in range(new.rules.rounds):
        part = "final" if r == new.rules.draws else "early"
        yield _blocks(old, new, r, r, part, int(old.record[0]["bet_start"][r]))


def _draw_blocks(old: Abstraction, new: Abstraction) -> Iterator[Ints]:
    for r in range(new.rules.draws):
        yield _blocks(old, new, r, r + 1, "early", int(old.record[0]["draw_start"][r]))
