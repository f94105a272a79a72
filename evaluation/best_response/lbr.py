"""Local best response (Lisý & Bowling 2017): an opponent that samples the target's range and needs no training.

It asks the target for its probabilities at any position.  They weight the sampled hands by the target's observed actions, and
give the chance that a bet wins by a fold.  Otherwise it assumes that nobody bets again, and draws for the greatest share at
showdown.  Its winnings in a match are a lower bound on those of a best response, however good the samples are.
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
from evaluation.best_response import _decision_kernels, _range_kernels
from evaluation.players import asked_probabilities, unplayable

Records = NDArray[np.void]
PARTICLES: Final = 64
COMPLETIONS: Final = 2
_AT_ONCE: Final = 4096
"""Particles played side by side, few enough to stay in the cache."""


class LocalBestResponse:
    """The local best response to one policy.

    It keeps no state between decisions: a row holds everything its player has seen, and the range is sampled from it each time.

    Args:
        target: the policy to play against, which must have probabilities.
        rules: a preset's name or a `Rules` value.
        particles: hands of the target sampled for each decision.
        completions: completions of each discard tried with each of these hands.
        seed: for the samples of `probabilities`; `act` uses the generator it is given.
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
        """Rows the target has answered so far."""

    @property
    def side_by_side(self) -> int:
        """Number of decisions for which hands are sampled at once."""
        return self._scripts

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        """See `Policy.act`; raises `ArchieError` for rows of other rules."""
        rows = checked_rows(observations, masks, self.rules)
        streams = rng.integers(0, 2**64, len(rows), np.uint64)
        parts = [slice(start, start + self._scripts) for start in range(0, len(rows), self._scripts)]
        chosen = [self._choose(rows[part], streams[part]) for part in parts]
        return np.concatenate([np.empty(0, np.int64), *chosen])

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        """See `Policy.probabilities`: 1 for the action it takes with one sample of the target's hands."""
        certain = np.zeros(masks.shape, np.float32)
        certain[np.arange(len(masks)), self.act(observations, masks, np.random.default_rng(self._seed))] = 1
        return certain

    def _answers(self, count: int) -> NDArray[Any]:
        """Probabilities of the target in the first ``count`` rows; uniform over legal actions where they are invalid."""
        rows, masks = self._rows[:count], self._masks[:count]
        chances = asked_probabilities(self.target, rows, masks)
        self.asked += count
        bad = unplayable(chances, masks)
        if bad.any():
            chances[bad] = masks[bad] / masks[bad].sum(axis=1, keepdims=True)
        return chances

    def range(self, rows: NDArray[np.int8], streams: NDArray[np.uint64]) -> tuple[Records, Records, NDArray[np.float64]]:
        """Sample the range behind each row.

        Args:
            rows: ``(n, d)``, at most `side_by_side` of them.
            streams: ``(n,)``, states of random numbers, which are advanced.

        Returns:
            The contents of the rows ``(n,)``, games ``(n * particles,)`` consistent with them, and the weights of the games.
        """
        n = len(rows)
        scripts = np.zeros(n, _range_kernels.SCRIPT)
        _range_kernels.read_scripts(self._layout, rows, scripts)
        games, weights = np.zeros(n * self.particles, GAME), np.ones(n * self.particles)
        _range_kernels.deal_particles(games, self._books, scripts, streams)
        while count := _range_kernels.advance(games, self._books, scripts, *self._waiting):
            chances = self._answers(count)
            _range_kernels.condition(games, self._books, scripts, self._index[:count], chances, weights, streams)
            _range_kernels.resample(games, self._books, scripts, weights, streams)
        return scripts, games, weights

    def _choose(self, rows: NDArray[np.int8], streams: NDArray[np.uint64]) -> Actions:
        """Return actions ``(n,)`` for rows ``(n, d)``, at most `side_by_side` of them."""
        scripts, games, weights = self.range(rows, streams)
        rolled = games.copy()
        while count := _decision_kernels.check_down(rolled, self._books, self._layout, scripts, *self._waiting):
            _decision_kernels.draw_for_other(rolled, self._books, scripts, self._index[:count], self._answers(count), streams)
        shares, folds = np.empty(len(games)), np.zeros(len(games))
        _decision_kernels.final_shares(rolled, self._books, scripts, shares)
        if count := _decision_kernels.raise_all(games.copy(), self._books, *self._waiting):
            folds[self._index[:count]] = self._answers(count)[:, FOLD]
        actions = np.empty(len(rows), np.int64)
        _decision_kernels.choose_bets(games, self._books, scripts, weights, shares, folds, actions)
        _decision_kernels.choose_discards(
            rolled, self._books, self._layout, scripts, weights, self.completions, streams, actions
        )  # fmt: skip
        return actions
