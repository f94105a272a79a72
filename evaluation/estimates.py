"""Means with their uncertainty, from whole-number totals: sums are exact, so results don't depend on how a match is cut."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

NORMAL_95: Final = 1.959963984540054
"""Standard errors on either side of a mean that hold 95 % of a normal distribution."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and its standard error, in any unit."""

    mean: float
    standard_error: float

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval by the normal approximation."""
        reach = NORMAL_95 * self.standard_error
        return self.mean - reach, self.mean + reach

    @property
    def significance(self) -> float:
        """Standard errors between the mean and 0; infinite for a certain win, 0 for a certain draw."""
        if self.standard_error == 0:
            return math.copysign(math.inf, self.mean) if self.mean else 0.0
        return self.mean / self.standard_error

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
    """Totals over deal pairs of the chips x won as dealer and y won as big blind with the same deal."""

    deals: int
    dealer: int
    big_blind: int
    dealer_squares: int
    big_blind_squares: int
    products: int

    @classmethod
    def of(cls, dealer: NDArray[np.int64], big_blind: NDArray[np.int64]) -> PairTotals:
        """From the net chips ``(deals,)`` of one player in either position."""
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

    @property
    def per_hand(self) -> Estimate:
        """Chips per hand; the sample is the deal pair, as its two hands share their cards."""
        squares = self.dealer_squares + 2 * self.products + self.big_blind_squares
        return _mean(self.deals, self.dealer + self.big_blind, squares) * 0.5

    @property
    def as_dealer(self) -> Estimate:
        """Chips per hand dealt."""
        return _mean(self.deals, self.dealer, self.dealer_squares)

    @property
    def as_big_blind(self) -> Estimate:
        """Chips per hand in the big blind."""
        return _mean(self.deals, self.big_blind, self.big_blind_squares)

    @property
    def variance_reduction(self) -> float | None:
        """How many times the hands unpaired play needs, alternating positions too, for the same standard error.

        None when the pairs vary by nothing at all.
        """
        paired = self.per_hand.standard_error**2
        unpaired = (self.as_dealer.standard_error**2 + self.as_big_blind.standard_error**2) / 4
        return unpaired / paired if paired else None

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PairTotals:
        """The inverse of `dataclasses.asdict`."""
        return cls(**values)
