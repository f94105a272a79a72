"""A player of rules: what the hand is, what the other drew, who has the initiative, and what the pot offers.

Every hand is of one kind (see `agents._rule_kernels`), every kind has a strength 0 to 9 that depends on the draws to come and
on what the other drew last, and strength decides with what chance to bet, raise, raise again or fold.  Chances are mixed on
purpose: a player that always does the same with the same hand tells what it holds.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from agents import _rule_kernels
from agents.rows import checked_rows, layout
from archie_env.policy import Masks, Observations, Probabilities, StochasticPolicy
from archie_env.rulebook import rulebook
from archie_env.rules import Rules, as_rules

_STRENGTHS: Final = """
                   round  draws to come; each after the other stood pat, drew one, drew more
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

_CHANCES: Final = (
    (0.00, 0.00, 0.07, 0.12, 0.15, 0.45, 0.65, 0.82, 0.93, 1.00),  # bet
    (0.00, 0.00, 0.00, 0.00, 0.00, 0.01, 0.15, 0.60, 0.80, 1.00),  # raise
    (0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.05, 0.15, 0.50, 0.90),  # raise again
    (1.00, 0.85, 0.50, 0.10, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00),  # fold
    (0.00, 0.00, 0.00, 0.60, 0.90, 0.90, 0.90, 0.90, 0.90, 0.90),  # raise as the small blind that opens
    (1.00, 1.00, 1.00, 0.15, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00),  # fold as the small blind that opens
)
"""By strength."""

_BLUFFS: Final = ((0.0, 0.30, 0.20), (0.0, 0.70, 0.60), (0.0, 0.20, 0.10))
"""The chance to bet a hopeless hand at the end: the last raise was nobody's, ours, theirs; they drew none, one, more."""


def _parse(table: str) -> dict[str, list[int]]:
    """Kind -> its strengths, column by column."""
    rows = (line.split() for line in table.splitlines()[3:])
    return {kind: [int(digit) for digit in "".join(digits)] for kind, *digits in rows}


class RuleBasedPolicy(StochasticPolicy):
    """See the module; works under every rules value.

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
        self._tables = strengths, np.array(_CHANCES), np.array(_BLUFFS)

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        """See `archie_env.policy.Policy.probabilities`."""
        rows = checked_rows(observations, masks, self.rules)
        chances = np.zeros(masks.shape, np.float32)
        _rule_kernels.rule_chances(*self._reading, *self._tables, rows, masks, chances)
        return chances
