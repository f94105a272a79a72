"""Who plays: the `Policy` protocol every agent follows, and the uniform policy.

A policy sees observations and masks and nothing else.  Observations are rows of the information state, int8 as the engine
writes them or float32 as the environments give them; `archie_env.observation.unscaled` makes the first of either.
"""

from __future__ import annotations

import importlib
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from archie_env._core.sample import sample_legal, sample_rows
from archie_env.errors import ArchieError
from archie_env.rules import Rules

Observations = NDArray[np.int8] | NDArray[np.float32]
Masks = NDArray[np.int8]
Actions = NDArray[np.int64]
Probabilities = NDArray[np.float32]


@runtime_checkable
class Policy(Protocol):
    """Chooses actions for a batch of decisions.

    The arrays handed over may be overwritten after the call: a policy that wants to keep them copies them.
    """

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

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        """See `Policy.act`."""
        actions = np.empty(len(masks), np.int64)
        sample_legal(masks, rng.random(len(masks)), actions)
        return actions


def name_of(policy: object) -> str:
    """What messages call a policy."""
    return str(getattr(policy, "name", type(policy).__name__))


def as_policy(policy: Policy | str, rules: Rules | str = "archie") -> Policy:
    """A policy as it is, or the one of that name: ``uniform``, and what ``agents.load`` knows where that package is at hand."""
    if not isinstance(policy, str):
        if not callable(getattr(policy, "act", None)):
            raise ArchieError(f"policy {policy!r}: expected a Policy, which has act(observations, masks, rng), or a name")
        return policy
    if policy == "uniform":
        return UniformPolicy()
    try:
        agents = importlib.import_module("agents")  # beside the wheel, not in it: found when run from the checkout
    except ModuleNotFoundError:
        raise ArchieError(f"policy {policy!r}: without the checkout's agents folder expected 'uniform' or a Policy") from None
    if not hasattr(agents, "load"):
        raise ArchieError(f"policy {policy!r}: the package agents in {agents.__path__} is not the checkout's")
    loaded: Policy = agents.load(policy, rules)
    return loaded
