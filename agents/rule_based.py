"""A hand-written policy based on its hand, the opponent's last draw, the initiative and the pot odds.

Every hand has a kind (`agents._rule_kernels`).  Every kind has a strength from 0 to 9, which depends on the draws to come and
on the opponent's last draw.  The strength determines the frequencies of bets, raises, reraises and folds.  The policy mixes its
actions on purpose: a policy that always plays a hand the same way reveals its cards.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from agents import _rule_kernels
from agents.rows import checked_rows, layout
from archie_env.policy import Masks, Observations, Probabilities, StochasticPolicy
from archie_env.rulebook import rulebook
from archie_env.rules import Rules, as_rules

_STRENGTHS: Final = """
                   round  draws to come; each after the opponent stood pat, drew one, drew more
                     1      two    one    none: bet, answer
NOTHING              2      111    000    000   000
WEAK_HIGH            3      233    011    000   000
SMALL_PAIR           4      134    011    010   000
THREE_LOW            5      334    111    000   000
HIGH_DRAW            5      235    113    000   000
ROUGH_LOW_DRAW       4      234    013    000   000
MIDDLE_LOW_DRAW      5      455    144    000   000
SMOOTH_LOW_DRAW      7      566    445    000   000
PAIR_AND_LOW_DRAW    6      356    456    000   000
PAIR                 5      445    443    212   432
MIDDLE_PAIR          5      455    444    112   433
HIGH_PAIR            8      456    455    214   444
TWO_PAIR             7      456    446    236   444
TOP_TWO_PAIR         9      567    467    267   444
TRIPS                9      578    478    277   477
ROUGH_LOW            8      568    468    224   445
MIDDLE_LOW           9      789    689    557   556
SMOOTH_LOW           9      899    999    689   799
STRAIGHT_OR_FLUSH    9      789    799    489   589
SCOOP                9      899    999    899   999
FULL_HOUSE           9      899    999    789   899
"""

_FREQUENCIES: Final = (
    (0.00, 0.00, 0.07, 0.12, 0.15, 0.45, 0.65, 0.82, 0.93, 1.00),  # bet
    (0.00, 0.00, 0.00, 0.00, 0.00, 0.01, 0.15, 0.60, 0.80, 1.00),  # raise
    (0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.05, 0.15, 0.50, 0.90),  # reraise
    (1.00, 0.85, 0.50, 0.10, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00),  # fold
    (0.00, 0.00, 0.00, 0.60, 0.90, 0.90, 0.90, 0.90, 0.90, 0.90),  # raise when opening as the small blind
    (1.00, 1.00, 1.00, 0.15, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00),  # fold when opening as the small blind
)
"""Frequency of each action by strength."""

_BLUFFS: Final = ((0.0, 0.30, 0.20), (0.0, 0.70, 0.60), (0.0, 0.20, 0.10))
"""Frequency of bluffing in the last round, by the last raiser (nobody, we, they) and the opponent's draw (0, 1, more)."""


def _parse(table: str) -> dict[str, list[int]]:
    """Map each kind to its strengths, column by column."""
    rows = (line.split() for line in table.splitlines()[3:])
    return {kind: [int(digit) for digit in "".join(digits)] for kind, *digits in rows}


class RuleBasedPolicy(StochasticPolicy):
    """The policy of this module; it plays under all rules.

    Args:
        rules: a preset's name or a `Rules` value.
    """

    name = "rule_based"

    def __init__(self, rules: Rules | str = "archie") -> None:
        self.rules = as_rules(rules)
        self._reading = rulebook(self.rules), layout(self.rules)
        strengths = np.zeros((_rule_kernels.FULL_HOUSE + 1, 13), np.int8)
        for kind, digits in _parse(_STRENGTHS).items():
            strengths[getattr(_rule_kernels, kind)] = digits
        self._tables = strengths, np.array(_FREQUENCIES), np.array(_BLUFFS)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.rules,), {"name": self.name}  # copies share the tables, and pickles leave them out

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        """See `archie_env.policy.Policy.probabilities`."""
        rows = checked_rows(observations, masks, self.rules)
        probabilities = np.zeros(masks.shape, np.float32)
        _rule_kernels.rule_probabilities(*self._reading, *self._tables, rows, masks, probabilities)
        return probabilities
