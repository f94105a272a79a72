"""Who plays: the `Policy` protocol every agent follows, and the uniform policy.

A policy sees observations and masks and nothing else.  Observations are rows of the information state, int8 as the engine
writes them or float32 as the environments give them; `archie_env.observation.unscaled` makes the first of either.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from archie_env._core.sample import sample_rows

Observations = NDArray[np.int8] | NDArray[np.float32]
Masks = NDArray[np.int8]
Actions = NDArray[np.int64]
Probabilities = NDArray[np.float32]


@runtime_checkable
class Policy(Protocol):
    """Chooses actions for a batch of decisions."""

    name: str
    """What tables call it, and what ``agents.load`` takes where it can be loaded."""

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        """``(n, d), (n, a) -> (n, a)``: the probability of each action; rows sum to 1, illegal actions have 0."""
        ...

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        """``(n, d), (n, a) -> (n,)``: one legal action for each row, random ones drawn from ``rng``."""
        ...


def sample(probabilities: Probabilities, rng: np.random.Generator) -> Actions:
    """``(n, a) -> (n,)``: one action for each row of probabilities, by one uniform number each."""
    actions = np.empty(len(probabilities), np.int64)
    sample_rows(probabilities, rng.random(len(probabilities)), actions)
    return actions


class StochasticPolicy:
    """A base for policies that know their probabilities: acting is sampling from them."""

    name = "stochastic"

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        """See `Policy.probabilities`."""
        raise NotImplementedError(f"{type(self).__name__} must define probabilities(observations, masks)")

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        """See `Policy.act`."""
        return sample(self.probabilities(observations, masks), rng)


class UniformPolicy(StochasticPolicy):
    """Every legal action equally likely."""

    name = "uniform"

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        """See `Policy.probabilities`."""
        legal = masks.astype(np.float32)
        rows: Probabilities = legal / legal.sum(axis=1, keepdims=True)
        return rows
