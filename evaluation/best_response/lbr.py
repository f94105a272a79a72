"""Local best response (Lisý & Bowling 2017): an opponent that keeps sampled hands the other may hold, and needs no training.

It may ask the other for its probabilities at any position: with them, what the other was seen to do weighs the sampled hands,
and the folds that a bet would win are known.  For the rest it counts on nobody betting any more, and draws for the greatest
share at showdown.  What it wins in a match is a lower bound on what a best response wins, whatever its sampling missed.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agents.rows import checked_rows, layout
from archie_env._core.state import FOLD, GAME
from archie_env.errors import ArchieError
from archie_env.observation import width
from archie_env.policy import Actions, Masks, Observations, Policy, Probabilities, name_of
from archie_env.rulebook import rulebook
from archie_env.rules import Rules, as_rules
from evaluation.best_response import _kernels as kernels
from evaluation.duplicate.umpire import unplayable

Records = NDArray[np.void]
PARTICLES: Final = 64
COMPLETIONS: Final = 2
_AT_ONCE: Final = 4096
"""Particles played side by side: what they need stays in the cache."""


class LocalBestResponse:
    """The local best response to one policy.

    It keeps nothing from one decision to the next: a row shows all its player has seen, and the range is sampled from it anew.

    Args:
        target: the policy to play against; its probabilities are asked for.
        rules: what is played.
        particles: hands of the other that are sampled for each decision.
        completions: ways of completing each discard that are tried with each of them.
        seed: of what `probabilities` samples; `act` draws from the generator it is given.
    """

    name = "lbr"

    def __init__(
        self,
        target: Policy,
        rules: Rules | str = "archie",
        particles: int = PARTICLES,
        completions: int = COMPLETIONS,
        seed: int = 0,
    ) -> None:
        for what, number in (("particles", particles), ("completions", completions)):
            if number < 1:
                raise ArchieError(f"{what} {number}: expected at least 1")
        if not callable(getattr(target, "probabilities", None)):
            raise ArchieError(f"{name_of(target)}: expected a policy whose probabilities can be asked for")
        self.target, self.rules, self.particles, self.completions = target, as_rules(rules), particles, completions
        self._seed = seed
        self._books, self._layout = rulebook(self.rules, "per_seat"), layout(self.rules)
        self._scripts = max(1, _AT_ONCE // particles)
        size = self._scripts * particles
        self._rows = np.empty((size, width(self.rules)), np.int8)
        self._masks = np.empty((size, self.rules.actions), np.int8)
        self._index = np.empty(size, np.int64)
        self._waiting = self._index, self._rows, self._masks
        self.asked = 0
        """Rows that the target has answered so far."""

    @property
    def side_by_side(self) -> int:
        """Decisions for which hands are sampled at once."""
        return self._scripts

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        """See `Policy.act`; raises `ArchieError` for rows of other rules."""
        rows = checked_rows(observations, masks, self.rules)
        streams = rng.integers(0, 2**64, len(rows), np.uint64)
        parts = [slice(start, start + self._scripts) for start in range(0, len(rows), self._scripts)]
        chosen = [self._choose(rows[part], streams[part]) for part in parts]
        return np.concatenate([np.empty(0, np.int64), *chosen])

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        """See `Policy.probabilities`: 1 for what it does with one sample of the other's hands."""
        certain = np.zeros(masks.shape, np.float32)
        certain[np.arange(len(masks)), self.act(observations, masks, np.random.default_rng(self._seed))] = 1
        return certain

    def _answers(self, count: int) -> NDArray[Any]:
        """What the target does in the first rows; where its probabilities are none, anything legal, as nothing is known."""
        rows, masks = self._rows[:count], self._masks[:count]
        answer = np.asarray(self.target.probabilities(rows.copy(), masks.copy()))
        if answer.shape != masks.shape or not np.issubdtype(answer.dtype, np.floating):
            raise ArchieError(
                f"{name_of(self.target)}: probabilities of shape {answer.shape} and dtype {answer.dtype}: "
                f"expected {masks.shape} floats"
            )
        self.asked += count
        chances = answer.astype(np.float64)
        bad = unplayable(chances, masks)
        if bad.any():
            chances[bad] = masks[bad] / masks[bad].sum(axis=1, keepdims=True)
        return chances

    def range(self, rows: NDArray[np.int8], streams: NDArray[np.uint64]) -> tuple[Records, Records, NDArray[np.float64]]:
        """What each row ``(n, d)`` shows, and games ``(n * particles,)`` that it may be a row of, with their weights.

        ``streams (n,)`` are moved on; rows of no more than `side_by_side` at a time.
        """
        n = len(rows)
        scripts = np.zeros(n, kernels.SCRIPT)
        kernels.read_scripts(self._layout, rows, scripts)
        games, weights = np.zeros(n * self.particles, GAME), np.ones(n * self.particles)
        kernels.deal_particles(games, self._books, scripts, streams)
        while count := kernels.advance(games, self._books, scripts, *self._waiting):
            chances = self._answers(count)
            kernels.condition(games, self._books, scripts, self._index[:count], chances, weights, streams)
            kernels.resample(games, self._books, scripts, weights, streams)
        return scripts, games, weights

    def _choose(self, rows: NDArray[np.int8], streams: NDArray[np.uint64]) -> Actions:
        """Actions ``(n,)`` for rows ``(n, d)``, as many as in `range`."""
        scripts, games, weights = self.range(rows, streams)
        rolled = games.copy()
        while count := kernels.check_down(rolled, self._books, self._layout, scripts, *self._waiting):
            kernels.draw_for_other(rolled, self._books, scripts, self._index[:count], self._answers(count), streams)
        shares, folds = np.empty(len(games)), np.zeros(len(games))
        kernels.final_shares(rolled, self._books, scripts, shares)
        if count := kernels.raise_all(games.copy(), self._books, *self._waiting):
            folds[self._index[:count]] = self._answers(count)[:, FOLD]
        actions = np.empty(len(rows), np.int64)
        kernels.choose_bets(games, self._books, scripts, weights, shares, folds, actions)
        kernels.choose_discards(
            rolled, self._books, self._layout, scripts, weights, self.completions, streams, actions
        )  # fmt: skip
        return actions
