"""Players from near-equilibria of the small games: rank-isomorphic tables over every information set.

The file is an ``.npz`` archive of `agents.archive`: probabilities in 255ths, the lists that index them, and one JSON text.
`evaluation.exploitability.solver` writes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agents.archive import FilePolicy, Header, Meta, check_names, frozen, load_player, rules_of, write_archive
from agents.rows import checked_rows
from archie_env._core.state import CALL, DISCARD, FOLD, RAISE
from archie_env.errors import ArchieError
from archie_env.observation import field
from archie_env.policy import Masks, Observations, Probabilities, StochasticPolicy
from archie_env.rules import Rules

FORMAT: Final = "archie-env solution"
VERSION: Final = 1
STEPS: Final = 255
"""Probabilities are kept in 255ths."""
_TABLES: Final = ("first", "draw0", "draw1", "last0", "last1")
_NAMES: Final = (*_TABLES, "hands", "discard_of_subset", "histories")
_PATHS: Final = ("lines", "first_nodes", "last_nodes")

Ints = NDArray[np.int64]


def save_solution(path: str | Path, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> None:
    """Write a solution, whole or not at all.

    Args:
        path: a file; its folder is made.
        arrays: ``first (nodes, hands, 3)``, ``draw0``, ``draw1`` ``(lines, known, hands, discards)``, ``last0``, ``last1``
            ``(lines, histories, counts, nodes, 3)``: probabilities, by position; and their index: ``hands (hands, kinds)``,
            ``discard_of_subset (hands, 2^cards)``, ``histories (histories, 2 + kinds)``: hand, discard, new cards by rank.
        meta: ``rules``, ``lines``, ``first_nodes`` and ``last_nodes`` (by position) as betting paths; more is kept.
    """
    kept = {name: np.rint(part * STEPS).astype(np.uint8) if name in _TABLES else part for name, part in arrays.items()}
    write_archive(path, kept, {**meta, "format": FORMAT, "version": VERSION}, compressed=True)


def _check_paths(name: str, paths: Any, most: int) -> int:
    """Return the number of betting paths; raise `ArchieError` unless each is a list of at most ``most`` calls and raises."""
    if not (
        isinstance(paths, list)
        and paths
        and all(isinstance(path, (list, tuple)) and len(path) <= most for path in paths)
        and all(action in (CALL, RAISE) for path in paths for action in path)
    ):
        raise ArchieError(
            f"{name} {repr(paths)[:200]}: expected betting paths of at most {most} actions, {CALL} or {RAISE} each"
        )
    return len(paths)


def _check_header(name: str, header: Header | NDArray[Any]) -> None:
    kinds, words = ("u", "uint8") if name in _TABLES else ("iu", "whole numbers")
    if header.dtype.kind not in kinds or not header.shape or (name in _TABLES and header.dtype.itemsize != 1):
        raise ArchieError(f"{name} {header.shape} of type {header.dtype}: expected an array of {words}")


def _check(headers: Mapping[str, Header], meta: Meta) -> None:
    """Raise `ArchieError` unless the headers describe a solution."""
    check_names(headers, dict.fromkeys(_NAMES), "a whole solution")
    for name in _NAMES:
        _check_header(name, headers[name])


def _check_parts(arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any], rules: Rules) -> None:
    """Raise `ArchieError` unless all tables and lists are there, their shapes fit together, and all indices are in range."""
    for name in _PATHS:
        if name not in meta:
            raise ArchieError(f"{name} is missing: expected a whole solution")
    for name in _NAMES:
        if name not in arrays:
            raise ArchieError(f"{name} is missing: expected a whole solution")
        _check_header(name, arrays[name])
    most = rules.raise_cap + 2
    lines = _check_paths("lines", meta["lines"], most)
    last = meta["last_nodes"]
    if not isinstance(last, list) or len(last) != 2:
        raise ArchieError(f"last_nodes {repr(last)[:200]}: expected a list for each position")
    hands, histories, ranks, counts = len(arrays["hands"]), len(arrays["histories"]), len(rules.ranks), rules.max_discard + 1
    known = counts if rules.draw_order == "sequential" else 1
    discards = arrays["draw0"].shape[-1]
    expected: dict[str, tuple[int, ...]] = {
        "hands": (hands, ranks),
        "discard_of_subset": (hands, 2**rules.hand_size),
        "histories": (histories, 2 + ranks),
        "first": (_check_paths("first_nodes", meta["first_nodes"], most), hands, 3),
    }
    for p in (0, 1):
        nodes = _check_paths(f"last_nodes[{p}]", last[p], most)
        expected |= {
            f"draw{p}": (lines, known if p == 0 else 1, hands, discards),
            f"last{p}": (lines, histories, counts, nodes, 3),
        }
    for name, shape in expected.items():
        if arrays[name].shape != shape or not arrays[name].size:
            raise ArchieError(f"{name} {arrays[name].shape}: expected {shape}, none of it 0")
    for name, values, low, high in (
        ("discard_of_subset", arrays["discard_of_subset"], -1, discards - 1),
        ("histories", arrays["histories"][:, 0], 0, hands - 1),
        ("histories", arrays["histories"][:, 1], 0, discards - 1),
        ("histories", arrays["histories"][:, 2:], 0, len(rules.suits)),
        ("hands", arrays["hands"], 0, len(rules.suits)),
    ):
        least, largest = int(values.min()), int(values.max())
        if least < low or largest > high:
            raise ArchieError(f"{name} from {least} to {largest}: expected {low} to {high}")


class SolutionPolicy(FilePolicy, StochasticPolicy):
    """Plays by the tables of a solution; among cards of one rank it discards a random one.

    Args:
        arrays, meta: see `save_solution`, the probabilities in 255ths.

    Raises:
        ArchieError: for missing or inconsistent parts.
    """

    name = "solution"

    def __init__(self, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> None:
        self.meta = dict(meta)
        self.rules = rules = rules_of(meta)
        if rules.draws != 1:
            raise ArchieError(f"a solution for {rules.draws} draws: expected 1")
        _check_parts(arrays, meta, rules)
        self._tables = [frozen(arrays[name]) for name in _TABLES]
        self._base = (len(rules.suits) + 1) ** np.arange(len(rules.ranks), dtype=np.int64)
        self._hands = _Index(arrays["hands"].astype(np.int64) @ self._base, "hand")
        histories = arrays["histories"].astype(np.int64)
        self._subsets = arrays["discard_of_subset"].astype(np.int64)
        self._discards = int(self._subsets.max()) + 1
        self._histories = _Index(
            self._history_number(histories[:, 0], histories[:, 1], histories[:, 2:] @ self._base), "history"
        )
        self._weights = 3 ** np.arange(len(field(rules, "wagers").axes[1]))
        self._lines = self._paths(meta["lines"])
        self._first_nodes = self._paths(meta["first_nodes"])
        self._last_nodes = [self._paths(paths) for paths in meta["last_nodes"]]

    def _paths(self, paths: Iterable[Sequence[int]]) -> _Index:
        numbers = [int(np.dot(path, self._weights[: len(path)])) for path in paths]
        return _Index(np.array(numbers, np.int64), "betting")

    def _history_number(self, hand: Ints, discard: Ints, new: Ints) -> Ints:
        return (hand * self._discards + discard) * int(self._base[-1]) * (len(self.rules.suits) + 1) + new

    @classmethod
    def load(cls, path: str | Path, rules: Rules | str | None = None) -> SolutionPolicy:
        """Read a solution from its file.

        Raises:
            ArchieError: for a file that is damaged, of another form or version, or for other rules.
        """
        return load_player(path, FORMAT, VERSION, rules, cls, _check, "solved")

    def _part(self, rows: NDArray[np.int8], name: str) -> NDArray[np.int8]:
        """``(n, *shape)``: a block of the rows."""
        return field(self.rules, name).of(rows)

    def _betting(self, rows: NDArray[np.int8], betting_round: int) -> Ints:
        """``(n,)``: the numbers of the betting paths of a round."""
        taken = self._part(rows, "wagers")[:, betting_round]
        numbers: Ints = (taken[:, :, 0] * CALL + taken[:, :, 1] * RAISE) @ self._weights
        return numbers

    def _ranks(self, rows: NDArray[np.int8], betting_round: int) -> Ints:
        """``(n, ranks)``: cards of each rank held."""
        held = self._part(rows, "held")[:, betting_round]
        ranks: Ints = held.reshape(len(rows), len(self.rules.ranks), -1).sum(axis=2, dtype=np.int64)
        return ranks

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        """See `archie_env.policy.Policy.probabilities`."""
        rows = checked_rows(observations, masks, self.rules)
        phase = self._part(rows, "phase").argmax(axis=1)
        probabilities = np.zeros(masks.shape)
        for number, read in enumerate((self._first, self._draw, self._last)):
            index = np.flatnonzero(phase == number)
            if len(index):
                read(rows[index], index, probabilities)
        probabilities *= masks
        total = probabilities.sum(axis=1, keepdims=True)
        probabilities = np.where(total > 0, probabilities, masks)  # zeros: the solution's own play never reaches this position
        result: Probabilities = (probabilities / np.maximum(probabilities.sum(axis=1, keepdims=True), 1e-9)).astype(np.float32)
        return result

    def _first(self, rows: NDArray[np.int8], index: Ints, probabilities: NDArray[np.float64]) -> None:
        node, hand = self._first_nodes.find(self._betting(rows, 0)), self._hands.find(self._ranks(rows, 0) @ self._base)
        probabilities[index, FOLD:DISCARD] = self._tables[0][node, hand]

    def _draw(self, rows: NDArray[np.int8], index: Ints, probabilities: NDArray[np.float64]) -> None:
        line, hand = self._lines.find(self._betting(rows, 0)), self._hands.find(self._ranks(rows, 0) @ self._base)
        counts = self._part(rows, "other_draws")[:, 0].argmax(axis=1)
        blind = self._part(rows, "dealer") == 0
        ways = (self._subsets[hand][:, :, None] == self._subsets[hand][:, None, :]).sum(axis=2)
        for position in (0, 1):
            mine = np.flatnonzero(blind == position)
            table = self._tables[1 + position]
            known = counts[mine] if table.shape[1] > 1 else 0
            subset = self._subsets[hand[mine]]
            chosen = table[line[mine, None], np.reshape(known, (-1, 1)), hand[mine, None], np.maximum(subset, 0)]
            probabilities[index[mine], DISCARD:] = np.where(subset >= 0, chosen / ways[mine], 0)

    def _last(self, rows: NDArray[np.int8], index: Ints, probabilities: NDArray[np.float64]) -> None:
        line, other = self._lines.find(self._betting(rows, 0)), self._part(rows, "other_draws")[:, 0].argmax(axis=1)
        before, after = self._part(rows, "held")[:, 0], self._part(rows, "held")[:, 1]
        hand = self._hands.find(self._ranks(rows, 0) @ self._base)
        new = ((after > before).reshape(len(rows), len(self.rules.ranks), -1).sum(axis=2)) @ self._base
        discard = self._subsets[hand, self._discarded(before, after)]
        history = self._histories.find(self._history_number(hand, discard, new))
        blind = self._part(rows, "dealer") == 0
        path = self._betting(rows, 1)
        for position in (0, 1):
            mine = np.flatnonzero(blind == position)
            node = self._last_nodes[position].find(path[mine])
            probabilities[index[mine], FOLD:DISCARD] = self._tables[3 + position][line[mine], history[mine], other[mine], node]

    def _discarded(self, before: NDArray[np.int8], after: NDArray[np.int8]) -> Ints:
        """``(n,)``: the discarded cards of the first hand, as bits of its ascending cards."""
        slot = np.cumsum(before, axis=1, dtype=np.int64) - 1
        bits: Ints = (((before == 1) & (after == 0)) << np.maximum(slot, 0)).sum(axis=1)
        return bits


class _Index:
    """Finds the index of numbers in a list; ``kind`` names them in errors."""

    def __init__(self, numbers: Ints, kind: str) -> None:
        self._order = np.argsort(numbers)
        self._sorted, self._kind = numbers[self._order], kind

    def find(self, wanted: Ints) -> Ints:
        """Return the index ``(n,)`` of each number."""
        at = np.minimum(np.searchsorted(self._sorted, wanted), len(self._sorted) - 1)
        if (self._sorted[at] != wanted).any():
            raise ArchieError(f"a row whose {self._kind} is not in the solution: expected rows of its own rules")
        return self._order[at]
