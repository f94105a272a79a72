"""The simplest opponents: always call or always raise, standing pat or drawing sensibly.

They are fixed reference points: a strategy that cannot beat them has learnt nothing, and winning much from them proves little.
"""

from __future__ import annotations

import numpy as np

from agents import _kernels
from agents.rows import checked_rows, layout
from archie_env.policy import Actions, Masks, Observations, Probabilities
from archie_env.rulebook import rulebook
from archie_env.rules import Rules, as_rules


class ScriptedPolicy:
    """One bet for every occasion.

    Args:
        name: what tables call it.
        raises: bet and raise while that is legal, else check and call.
        draws: draw sensibly, else stand pat.
        rules: a preset's name or a `Rules` value.
    """

    def __init__(self, name: str, raises: bool, draws: bool, rules: Rules | str = "archie") -> None:
        self.name = name
        self.rules = as_rules(rules)
        self._choice = raises, draws
        self._tables = rulebook(self.rules), layout(self.rules)

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator | None = None) -> Actions:
        """See `archie_env.policy.Policy.act`; ``rng`` is not used."""
        rows = checked_rows(observations, masks, self.rules)
        actions = np.empty(len(rows), np.int64)
        _kernels.scripted_actions(*self._tables, rows, masks, *self._choice, actions)
        return actions

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        """See `archie_env.policy.Policy.probabilities`: 1 for the action it takes."""
        certain = np.zeros(masks.shape, np.float32)
        certain[np.arange(len(masks)), self.act(observations, masks)] = 1
        certain[masks == 0] = 0
        return certain
