"""Intervals that stay valid however a match is watched and whenever it is stopped.

An ordinary 95 % interval holds for a number of deals fixed in advance.  Whoever looks again and again and stops when it suits
gets intervals that miss the truth far more often.  A confidence sequence covers it at all times at once with 95 %, so that it
may decide when to stop.

The one here is the empirical-Bernstein sequence of Howard, Ramdas, McAuliffe and Sekhon, "Time-uniform, nonparametric,
nonasymptotic confidence sequences" (Annals of Statistics 49(2), 2021), their Theorem 4 with a discrete mixture as the boundary.
It assumes no distribution and no large numbers, only that nobody loses more in a hand than the rules allow.  For pairs s_1,
s_2, ... with mean m given the past, predictions g_i made before s_i, and 0 < l < 1/c, where c is the most by which a pair can
differ from its prediction,

    exp(l * sum(s_i - m) - psi(l) * sum((s_i - g_i)^2)),    psi(l) = (-log(1 - l c) - l c) / c^2,

is a supermartingale that starts at 1 (by Fan's inequality, exp(l x - psi(l) x^2) <= 1 + l x for x >= -c), and so is every
average of it over l.  By Ville's inequality it ever reaches 40 with a chance of at most 1/40; and the same downwards.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from evaluation.estimates import PairTotals

CONFIDENCE: Final = 0.95
_HALVINGS: Final = 9
"""Values of l in the mixture: 1/2, 1/4, ... of 1/c.  They serve well up to some 10^9 deals, and are valid beyond."""


def boundary(spread: float, reach: float, confidence: float = CONFIDENCE) -> float:
    """How far a sum strays from its mean, in either direction and at any time, with a chance of at most ``1 - confidence``.

    Args:
        spread: the sum of squared differences from the predictions so far.
        reach: c, the most by which a value can differ from its prediction.
        confidence: between 0 and 1.
    """
    rate = 0.5 ** np.arange(1, _HALVINGS + 1) / reach
    cost = (-np.log1p(-rate * reach) - rate * reach) / reach**2 * spread
    level = math.log(2 / (1 - confidence)) + math.log(_HALVINGS)
    distance = float(np.min((level + cost) / rate))  # where the best rate alone gets there; the mixture does so earlier
    for _ in range(8):  # Newton's method on a convex, rising function: from above, and always above
        exponent = rate * distance - cost
        top = float(exponent.max())
        weights = np.exp(exponent - top)
        total = float(weights.sum())
        step = (top + math.log(total) - level) * total / float(rate @ weights)
        distance -= step
        if step < 1e-9 * distance:
            break
    return distance


@dataclass(frozen=True, slots=True)
class PairSequence:
    """What a confidence sequence keeps of a match's deal pairs; whole numbers, so that a resumed match ends with the same."""

    reserve: int
    """Most chips a player can lose in one hand."""
    deals: int = 0
    total: int = 0
    """Of the pairs, in chips of both hands."""
    spread: int = 0
    """Squared differences of the pairs from the predictions."""

    @property
    def _prediction_limit(self) -> int:
        return self.reserve // 4

    @property
    def prediction(self) -> int:
        """What the next pairs are expected to pay: the mean so far as a whole number, kept small so that ``reach`` is."""
        mean = round(self.total / self.deals) if self.deals else 0
        return max(-self._prediction_limit, min(self._prediction_limit, mean))

    def after(self, totals: PairTotals) -> PairSequence:
        """With more pairs, all predicted by what came before them."""
        total = totals.dealer + totals.big_blind
        squares = totals.dealer_squares + 2 * totals.products + totals.big_blind_squares
        guess = self.prediction
        spread = squares - 2 * guess * total + totals.deals * guess * guess
        return PairSequence(self.reserve, self.deals + totals.deals, self.total + total, self.spread + spread)

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Chips per hand; valid at every time at once, if looked at between calls of `after`."""
        if not self.deals:
            return -float(self.reserve), float(self.reserve)
        mean = self.total / self.deals / 2
        half = boundary(self.spread, 2 * self.reserve + self._prediction_limit, confidence) / self.deals / 2
        return max(mean - half, -float(self.reserve)), min(mean + half, float(self.reserve))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PairSequence:
        """The inverse of `dataclasses.asdict`."""
        return cls(**values)
