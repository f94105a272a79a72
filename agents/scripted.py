"""Scripted policies: always call or always raise, and stand pat or draw sensibly.

They are fixed reference points.  A strategy that cannot beat them has learned nothing; beating them by a lot proves little.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from agents import _kernels
from agents.rows import checked_rows, layout
from archie_env.policy import Actions, Masks, Observations, Probabilities
from archie_env.rulebook import rulebook
from archie_env.rules import Rules, as_rules


class ScriptedPolicy:
    """Makes the same betting decision everywhere.

    Args:
        name: label in tables.
        raises: bet and raise whenever legal; otherwise check and call.
        draws: draw sensibly; otherwise stand pat.
        rules: a preset's name or a `Rules` value.
    """

    def __init__(self, name: str, raises: bool, draws: bool, rules: Rules | str = "archie") -> None:
        self.name = name
        self.rules = as_rules(rules)
        self._choice = raises, draws
        self._tables = rulebook(self.rules), layout(self.rules)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, *self._choice, self.rules)  # copies share the tables, and pickles leave them out

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator | None = None) -> Actions:
        """See `archie_env.policy.Policy.act`; ``rng`` is unused."""
        rows = checked_rows(observations, masks, self.rules)
        actions = np.empty(len(rows), np.int64)
        _kernels.scripted_actions(*self._tables, rows, masks, *self._choice, actions)
        return actions

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        """See `archie_env.policy.Policy.probabilities`: 1 for the chosen action."""
        certain = np.zeros(masks.shape, np.float32)
        certain[np.arange(len(masks)), self.act(observations, masks)] = 1
        certain[masks == 0] = 0
        return certain
