"""A value function for `evaluation.aivat`, learnt from hands that are played for it.

What a hand is worth to the dealer is a share of the stake and of what will still be paid.  Shares are means over the hands
played, by the cells of `evaluation.aivat._kernels`; cells that few hands came to lean on coarser ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agents.rows import layout
from archie_env._core.state import DEALER
from archie_env.batch import Hands
from archie_env.policy import Policy
from archie_env.rulebook import rulebook
from archie_env.rules import Rules, as_rules
from archie_env.validation import whole_number
from evaluation.aivat import _kernels as kernels
from evaluation.duplicate.deals import DealPairs
from evaluation.duplicate.match import CHUNK
from evaluation.duplicate.umpire import Umpire, closing

DEALS: Final = 40_000
"""Default number of deal pairs to learn from."""
_HANDS: Final = 40.0
"""Hands of a cell at which half of its difference from the coarser cells is kept."""
_AXES: Final = ("seat", "phase", "node", "standing", "dealer", "blind")
_LEVELS: Final = (
    "phase standing",
    "phase standing dealer",
    "phase standing blind",
    "phase standing dealer blind",
    "seat phase node",
    "seat phase node standing",
    "seat phase node dealer",
    "seat phase node blind",
    "seat phase node standing dealer",
    "seat phase node standing blind",
    "seat phase node standing dealer blind",
)
"""Features that distinguish cells, from coarse to fine: each level fits the residuals of the levels before."""

Floats = NDArray[np.float64]
Progress = Callable[[int], object]


@dataclass(frozen=True, eq=False)
class ValueFunction:
    """The worth of hands.  Any numbers leave results unbiased; good ones remove more of the luck."""

    rules: Rules
    shares: Floats
    """``(cells,)``: part of the stake, with what will still be paid, that the dealer wins."""
    future: Floats
    """``(states,)``: chips a player will still pay."""
    teachers: tuple[str, str]
    """Whose hands it is learnt from, by seat."""
    deals: int
    seed: int

    @property
    def tables(self) -> tuple[Any, ...]:
        """Arguments of kernels: book, layout, shares, future."""
        return rulebook(self.rules), layout(self.rules), self.shares, self.future

    def __call__(self, games: NDArray[Any], places: NDArray[np.int64] | None = None) -> Floats:
        """Chips the dealer wins in records of games, all or those listed; none may be between two discards."""
        places = np.arange(len(games)) if places is None else places
        values = np.empty(len(places))
        kernels.values_of(games, *self.tables, places, values)
        return values


class StudiedHands(Hands):
    """Hands that record the cells they pass through.

    The arguments are those of `Hands`.
    """

    def __init__(self, indices: ArrayLike, dealers: ArrayLike, rules: Rules, seed: int) -> None:
        super().__init__(indices, dealers, rules, seed)
        self._tables = rulebook(rules), layout(rules)
        self._notes: list[tuple[NDArray[Any], ...]] = []
        self._note(np.arange(len(self)))

    def _note(self, places: NDArray[np.int64]) -> None:
        cells, stakes = np.empty(len(places), np.int32), np.empty(len(places), np.int32)
        kernels.look_up(self.games, *self._tables, places, cells, stakes)
        self._notes.append((places, cells, stakes))

    def play(self, places: NDArray[np.int64], actions: ArrayLike) -> None:
        """See `Hands.play`."""
        super().play(places, actions)
        games = self.games[["over", "phase", "turn"]][places]
        between = (games["phase"] & 1 == 1) & (games["turn"] == DEALER)  # the big blind has thrown, the dealer not
        self._note(places[(games["over"] == 0) & ~between])

    def notes(self) -> tuple[NDArray[np.int32], ...]:
        """``(notes,)`` each: cells, stakes, and the dealer's net chips and the stake at the end of those hands."""
        places, cells, stakes = (np.concatenate(parts) for parts in zip(*self._notes, strict=True))
        net, paid = self.games["net"].astype(np.int32), self.games["paid"].max(axis=1).astype(np.int32)
        return cells, stakes, net[places], paid[places]


def learn(
    a: Policy,
    b: Policy,
    deals: int = DEALS,
    seed: int = 1,
    rules: Rules | str = "archie",
    chunk: int = CHUNK,
    progress: Progress | None = None,
) -> ValueFunction:
    """Play ``deals`` deals twice each and learn the worth of their hands.

    Args:
        a: one player, in the seat of the match's first player.
        b: the other.
        deals: deal pairs, at least 1.
        seed: fixes the cards and, with ``chunk``, the players' random numbers; a match under it can't use what is learnt.
        rules: a preset's name or a `Rules` value.
        chunk: deals played side by side.
        progress: called with the number of deals played since it was last called.

    Raises:
        ArchieError: for arguments that make no match, and for faults of a player.
    """
    rules = as_rules(rules)
    for name, number, least in (("deals to learn from", deals, 1), ("seed to learn under", seed, 0), ("chunk", chunk, 1)):
        whole_number(name, number, least)
    umpires = [Umpire(player, rules, strict=True) for player in (a, b)]
    notes = []
    with closing(umpires):
        for first in range(0, deals, chunk):
            n = min(chunk, deals - first)
            pairs = DealPairs(first, n, seed, shuffled=False)
            hands = StudiedHands(pairs.indices, pairs.dealers, rules, pairs.seed)
            pairs.play_out(hands, umpires)
            notes.append(hands.notes())
            if progress:
                progress(n)
    cells, stakes, net, paid = (np.concatenate(parts) for parts in zip(*notes, strict=True))
    return ValueFunction(rules, *_fit(rules, cells, stakes, net, paid), (umpires[0].name, umpires[1].name), deals, seed)


def _fit(
    rules: Rules, cells: NDArray[np.int32], stakes: NDArray[np.int32], net: NDArray[np.int32], paid: NDArray[np.int32]
) -> tuple[Floats, Floats]:
    """``shares`` and ``future`` from notes."""
    shape = 2, 2 * rules.draws + 1, kernels.NODES, kernels.STANDINGS, kernels.KINDS, kernels.KINDS
    states = cells // kernels.HANDS_OF_A_STATE
    n_states, n_cells = shape[0] * shape[1] * shape[2], int(np.prod(shape))
    seen = np.bincount(states, minlength=n_states)
    future = np.bincount(states, paid - stakes, minlength=n_states) / np.maximum(seen, 1)
    counts = np.bincount(cells, minlength=n_cells).reshape(shape)
    won = np.bincount(cells, net / (stakes + future[states]), minlength=n_cells).reshape(shape)
    shares = np.zeros(shape)
    for level in _LEVELS:
        others = tuple(k for k, axis in enumerate(_AXES) if axis not in level.split())
        left_over = (won - counts * shares).sum(axis=others, keepdims=True)
        shares += left_over / (counts.sum(axis=others, keepdims=True) + _HANDS)
    return shares.ravel(), future
