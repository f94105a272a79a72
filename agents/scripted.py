"""The simplest opponents: always call or always raise, standing pat or drawing sensibly.

They are fixed reference points: a strategy that cannot beat them has learnt nothing, and winning much from them proves little.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agents import _kernels
from archie_env.errors import ArchieError
from archie_env.observation import highest_low_rank, rulebook, unscaled, width
from archie_env.policy import Actions, Masks, Observations, Probabilities
from archie_env.rules import Rules, as_rules


def low_limit(rules: Rules) -> int:
    """The highest ace-low rank a low may hold, -1 when there is no low."""
    highest = highest_low_rank(rules)
    return -1 if highest is None else highest


def checked_rows(observations: Observations, masks: Masks, rules: Rules) -> NDArray[np.int8]:
    """``(n, d)`` int8 rows of these rules, or an error: a kernel would read other memory from rows of other rules."""
    d, a = width(rules), rules.actions
    if observations.ndim != 2 or observations.shape[1] != d or masks.shape != (len(observations), a):
        raise ArchieError(
            f"observations {observations.shape} and masks {masks.shape}: "
            f"expected (n, {d}) and (n, {a}) under rules {rules.name!r}"
        )
    return np.ascontiguousarray(unscaled(observations, rules))


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
        self._books, self._low_limit = rulebook(self.rules), low_limit(self.rules)

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator | None = None) -> Actions:
        """See `archie_env.policy.Policy.act`; ``rng`` is not used."""
        rows = checked_rows(observations, masks, self.rules)
        actions = np.empty(len(rows), np.int64)
        _kernels.scripted_actions(self._books, self._low_limit, rows, masks, *self._choice, actions)
        return actions

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        """See `archie_env.policy.Policy.probabilities`: 1 for the action it takes."""
        certain = np.zeros(masks.shape, np.float32)
        certain[np.arange(len(masks)), self.act(observations, masks)] = 1
        certain[masks == 0] = 0
        return certain
