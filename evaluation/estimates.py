"""Means with their uncertainty: fixed-sample estimates from exact totals, and confidence sequences.

Totals are whole numbers, so sums are exact and results don't depend on how a match is cut into chunks.

An ordinary 95 % interval holds for a number of deals fixed in advance.  Looking repeatedly and stopping when it suits makes it
miss the truth far more often.  A confidence sequence covers the truth at all times at once with 95 %, so the results themselves
may decide when to stop.

`PairSequence` is the empirical-Bernstein sequence of Howard, Ramdas, McAuliffe and Sekhon, "Time-uniform, nonparametric,
nonasymptotic confidence sequences" (Annals of Statistics 49(2), 2021), their Theorem 4 with a discrete mixture as the boundary.
It assumes no distribution and no large numbers, only that no player loses more in a hand than the rules allow.  For pairs s_1,
s_2, ... with mean m given the past, predictions g_i made before s_i, and 0 < l < 1/c, where c is the largest possible
difference between a pair and its prediction,

    exp(l * sum(s_i - m) - psi(l) * sum((s_i - g_i)^2)),    psi(l) = (-log(1 - l c) - l c) / c^2,

is a supermartingale that starts at 1 (by Fan's inequality, exp(l x - psi(l) x^2) <= 1 + l x for x >= -c), and so is every
average of it over l.  By Ville's inequality it ever reaches 40 with a probability of at most 1/40; and the same downwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

NORMAL_95: Final = 1.959963984540054
"""Half width of a 95 % interval in standard errors, by the normal approximation."""
CONFIDENCE: Final = 0.95
_HALVINGS: Final = 9
"""Values of l in the mixture: 1/2, 1/4, ... of 1/c.  They serve well up to some 10^9 deals, and are valid beyond."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and its standard error, in any unit.

    >>> str(Estimate(1234.56, 2.0))
    '+1,234.6 ± 3.9'
    >>> f"{Estimate(-0.2, 10.0):+.0f}"
    '+0 ± 20'
    """

    mean: float
    standard_error: float

    @property
    def half_width(self) -> float:
        """Half of the 95 % interval by the normal approximation, which ``±`` stands for everywhere."""
        return NORMAL_95 * self.standard_error

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval by the normal approximation."""
        return self.mean - self.half_width, self.mean + self.half_width

    @property
    def significance(self) -> float:
        """Distance of the mean from 0 in standard errors; infinite for a certain win, 0 for a certain draw."""
        if self.standard_error == 0:
            return math.copysign(math.inf, self.mean) if self.mean else 0.0
        return self.mean / self.standard_error

    def __format__(self, spec: str) -> str:
        """``mean ± half width``; ``spec`` formats the mean, ``+,.1f`` by default, and without its sign the half width."""
        spec = spec or "+,.1f"
        sign, spec = (spec[0], spec[1:]) if spec[0] in "+- " else ("", spec)
        return f"{self.mean:{sign}z{spec}} ± {self.half_width:{spec}}"

    def __str__(self) -> str:
        return f"{self:+,.1f}"

    def to_dict(self, unit: str = "mbb_per_hand") -> dict[str, Any]:
        """Plain values, the mean under the name of its unit."""
        return {unit: self.mean, "standard_error": self.standard_error, "interval_95": list(self.interval)}

    def __mul__(self, factor: float) -> Estimate:
        return Estimate(self.mean * factor, self.standard_error * abs(factor))

    def __neg__(self) -> Estimate:
        return Estimate(0.0 - self.mean, self.standard_error)


def _mean(n: int, total: int, squares: int) -> Estimate:
    """Mean and standard error of n whole numbers, from their total and the total of their squares."""
    spread = n * squares - total * total  # n^2 times the variance over n, exact
    return Estimate(total / n, math.sqrt(spread / (n - 1)) / n)


@dataclass(frozen=True, slots=True)
class PairTotals:
    """Sums over deal pairs of x, the chips won as dealer, and y, those won as big blind with the same deal."""

    deals: int
    dealer: int
    big_blind: int
    dealer_squares: int
    big_blind_squares: int
    products: int

    @classmethod
    def of(cls, dealer: NDArray[np.int64], big_blind: NDArray[np.int64]) -> PairTotals:
        """Sum up the net chips ``(deals,)`` of one player in each position."""
        x, y = dealer.astype(np.int64), big_blind.astype(np.int64)
        return cls(len(x), int(x.sum()), int(y.sum()), int(x @ x), int(y @ y), int(x @ y))

    def __add__(self, other: PairTotals) -> PairTotals:
        return PairTotals(
            self.deals + other.deals,
            self.dealer + other.dealer,
            self.big_blind + other.big_blind,
            self.dealer_squares + other.dealer_squares,
            self.big_blind_squares + other.big_blind_squares,
            self.products + other.products,
        )

    def possible(self, most: int) -> bool:
        """Whether that many deals can have these sums if nobody wins or loses more than ``most`` chips in a hand."""
        n, x, y, xy = self.deals, self.dealer, self.big_blind, self.products
        xx, yy = self.dealer_squares, self.big_blind_squares
        sums = x * x <= n * xx and y * y <= n * yy and (x + y) ** 2 <= n * (xx + 2 * xy + yy)  # no variance is negative
        return sums and max(xx, yy) <= n * most**2 and xy * xy <= xx * yy

    @property
    def per_hand(self) -> Estimate:
        """Chips per hand; the sample is the deal pair, as its two hands share their cards."""
        squares = self.dealer_squares + 2 * self.products + self.big_blind_squares
        return _mean(self.deals, self.dealer + self.big_blind, squares) * 0.5

    @property
    def as_dealer(self) -> Estimate:
        """Chips per hand as dealer."""
        return _mean(self.deals, self.dealer, self.dealer_squares)

    @property
    def as_big_blind(self) -> Estimate:
        """Chips per hand as big blind."""
        return _mean(self.deals, self.big_blind, self.big_blind_squares)

    @property
    def variance_reduction(self) -> float | None:
        """Factor by which unpaired play with alternating positions needs more hands for the same standard error.

        None if the pairs do not vary at all.
        """
        paired = self.per_hand.standard_error**2
        unpaired = (self.as_dealer.standard_error**2 + self.as_big_blind.standard_error**2) / 4
        return unpaired / paired if paired else None


def boundary(spread: float, reach: float, confidence: float = CONFIDENCE) -> float:
    """Bound that a sum's distance from its mean exceeds at any time with a probability of at most ``1 - confidence``.

    Args:
        spread: the sum of squared differences from the predictions so far.
        reach: c, the largest possible difference between a value and its prediction.
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
    """State of a confidence sequence over deal pairs; whole numbers, so that a resumed match ends with the same."""

    reserve: int
    """Most chips that a player can lose in one hand."""
    deals: int = 0
    total: int = 0
    """Sum of the pairs, in chips of both hands."""
    spread: int = 0
    """Sum of squared differences between pairs and predictions."""

    @property
    def _prediction_limit(self) -> int:
        return self.reserve // 4

    @property
    def prediction(self) -> int:
        """Prediction of the next pairs: the mean so far, rounded, and limited so that ``reach`` stays small."""
        mean = round(self.total / self.deals) if self.deals else 0
        return max(-self._prediction_limit, min(self._prediction_limit, mean))

    def after(self, totals: PairTotals) -> PairSequence:
        """Return the state after more pairs, all predicted from the pairs before them."""
        total = totals.dealer + totals.big_blind
        squares = totals.dealer_squares + 2 * totals.products + totals.big_blind_squares
        guess = self.prediction
        spread = squares - 2 * guess * total + totals.deals * guess * guess
        return PairSequence(self.reserve, self.deals + totals.deals, self.total + total, self.spread + spread)

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Interval in chips per hand, valid between all calls of `after` at once."""
        if not self.deals:
            return -float(self.reserve), float(self.reserve)
        mean = self.total / self.deals / 2
        half = boundary(self.spread, 2 * self.reserve + self._prediction_limit, confidence) / self.deals / 2
        return max(mean - half, -float(self.reserve)), min(mean + half, float(self.reserve))
