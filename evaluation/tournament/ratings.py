"""Statistics of a table of matches: adjusted p values, rankings and ratings.

The cells of a tournament are played on different deals, so they are independent, and so are their errors.

>>> table = Table.of(("fox", "hen"), {(0, 1): (Estimate(80.0, 10.0), 20_000)})
>>> [(standing.name, standing.value.mean) for standing in totals(table)]
[('fox', 80.0), ('hen', -80.0)]
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from archie_env.errors import ArchieError
from evaluation.estimates import Estimate

Floats = NDArray[np.float64]

SESSION: Final = 10
"""Deals of a session (20 hands): enough for a nearly normal sum, too few for most wins to be certain."""
SURE: Final = 0.9999
"""Upper limit of the probability of being ahead after a session: certainty would mean an infinite difference of ratings."""
AVERAGE: Final = 1500.0
"""The mean of all ratings."""
_POINTS: Final = 400 / math.log(10)
"""Rating points of one unit of log odds."""
_NORMAL: Final = NormalDist()


@dataclass(frozen=True)
class Table:
    """Every player against every other."""

    names: tuple[str, ...]
    means: Floats
    """``(n, n)``: winnings of the row against the column, per hand in any unit; antisymmetric."""
    errors: Floats
    """``(n, n)``: standard errors of the means; symmetric."""
    deals: NDArray[np.int64]
    """``(n, n)``: deal pairs, the samples behind each mean; symmetric, 0 on the diagonal."""

    @classmethod
    def of(cls, names: Sequence[str], cells: Mapping[tuple[int, int], tuple[Estimate, int]]) -> Table:
        """Make a table from the winnings of i against j and the number of deals, for each pair of players in either order."""
        n = len(names)
        if n < 2:
            raise ArchieError(f"{n} players: expected at least 2")
        if len(set(names)) < n:
            raise ArchieError(f"players {', '.join(names)}: expected each name once")
        means, errors, deals = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n), np.int64)
        for (i, j), (estimate, count) in cells.items():
            means[i, j], means[j, i] = estimate.mean, 0.0 - estimate.mean
            errors[i, j] = errors[j, i] = estimate.standard_error
            deals[i, j] = deals[j, i] = count
        missing = [(i, j) for i in range(n) for j in range(i + 1, n) if deals[i, j] == 0]
        if missing:
            i, j = missing[0]
            raise ArchieError(f"{names[i]} v {names[j]}: no result, expected one for every two players")
        return cls(tuple(names), means, errors, deals)

    def __len__(self) -> int:
        return len(self.names)

    def cell(self, row: int, column: int) -> Estimate:
        """Winnings of the row against the column."""
        return Estimate(float(self.means[row, column]), float(self.errors[row, column]))

    def pairs(self) -> list[tuple[int, int]]:
        """Every pair of players once: (0, 1), (0, 2), ..., (1, 2), ..."""
        return [(i, j) for i in range(len(self)) for j in range(i + 1, len(self))]

    def total(self, row: int, among: Sequence[int]) -> Estimate:
        """Mean winnings of the row against the others ``among`` these players."""
        others = [j for j in among if j != row]
        return Estimate(
            math.fsum(self.means[row, others]) / len(others), math.sqrt(math.fsum(self.errors[row, others] ** 2)) / len(others)
        )


def p_value(estimate: Estimate) -> float:
    """Two-sided p value of the hypothesis that neither player is better, by the normal approximation."""
    return math.erfc(abs(estimate.significance) / math.sqrt(2))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p values for multiple comparisons (Holm 1979), in the order given.

    The probability that any adjusted value falls below a level by luck alone is below that level.
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted, least = [0.0] * len(order), 0.0
    for rank, i in enumerate(order):
        least = max(least, min(1.0, (len(order) - rank) * p_values[i]))
        adjusted[i] = least
    return adjusted


def adjusted_p_values(table: Table) -> Floats:
    """``(n, n)``: p values of the cells, adjusted over all pairs of players; 1 on the diagonal."""
    adjusted = np.ones((len(table), len(table)))
    pairs = table.pairs()
    for (i, j), p in zip(pairs, holm([p_value(table.cell(i, j)) for i, j in pairs]), strict=True):
        adjusted[i, j] = adjusted[j, i] = p
    return adjusted


@dataclass(frozen=True, slots=True)
class Standing:
    """A player and its value in a ranking."""

    name: str
    value: Estimate


def totals(table: Table) -> list[Standing]:
    """Rank by the unweighted mean over all opponents, best first; equals keep the order of the table."""
    everyone = range(len(table))
    standings = [Standing(table.names[i], table.total(i, everyone)) for i in everyone]
    return sorted(standings, key=lambda standing: -standing.value.mean)


def run_off(table: Table) -> list[Standing]:
    """Rank by instant run-off, best first: the player with the worst total is eliminated until one is left.

    Each value is the total among the players left at the elimination; the winner's is against the last one eliminated.  Beating
    weak players by a large margin doesn't help once they are gone.  Of equals the last in the table is eliminated.
    """
    left, gone = list(range(len(table))), []
    while len(left) > 1:
        worst = min(left, key=lambda i: (table.total(i, left).mean, -i))
        gone.append(Standing(table.names[worst], table.total(worst, left)))
        if len(left) == 2:
            winner = next(i for i in left if i != worst)
            gone.append(Standing(table.names[winner], table.total(winner, left)))
        left.remove(worst)
    return gone[::-1]


def ahead(table: Table, session: int = SESSION) -> tuple[Floats, Floats]:
    """Probabilities that the row is ahead of the column after a session, and their standard errors, both ``(n, n)``.

    The sum over a session is assumed to be normal, with the observed mean and standard deviation.
    """
    n = len(table)
    chances, errors = np.full((n, n), 0.5), np.zeros((n, n))
    for i, j in table.pairs():
        mean, error, deals = table.means[i, j], table.errors[i, j], table.deals[i, j]
        if error > 0:
            edge = mean / (error * math.sqrt(deals)) * math.sqrt(session)
            chance = _NORMAL.cdf(edge)
            spread = _NORMAL.pdf(edge) * math.sqrt(session / deals)
        else:
            chance, spread = 0.5 + 0.5 * float(np.sign(mean)), 0.0
        if not 1 - SURE <= chance <= SURE:
            chance, spread = min(max(chance, 1 - SURE), SURE), 0.0
        chances[i, j], chances[j, i] = chance, 1 - chance
        errors[i, j] = errors[j, i] = spread
    return chances, errors


def fit(chances: Floats) -> Floats:
    """``(n,)``: maximum-likelihood Bradley-Terry log strengths for probabilities ``(n, n)``, with mean 0.

    The likelihood is concave; Newton's method with halved steps finds the maximum, at which every player's expected number of
    won sessions equals the given one.
    """
    n = len(chances)
    off = ~np.eye(n, dtype=np.bool_)
    won = np.where(off, chances, 0.0).sum(axis=1)

    def likelihood(strengths: Floats) -> float:
        gaps = strengths[:, None] - strengths
        return float(-(chances * np.logaddexp(0.0, -gaps))[off].sum())

    strengths = np.zeros(n)
    for _ in range(100):
        model = _model(strengths)
        slope = won - np.where(off, model, 0.0).sum(axis=1)
        step = np.linalg.pinv(_curvature(model), hermitian=True) @ slope
        before = likelihood(strengths)
        while likelihood(strengths + step) < before and np.abs(step).max() > 1e-13:
            step /= 2
        strengths = strengths + step
        if np.abs(step).max() < 1e-11:
            break
    centred: Floats = strengths - strengths.mean()
    return centred


def _model(strengths: Floats) -> Floats:
    chances: Floats = 1 / (1 + np.exp(strengths - strengths[:, None]))
    return chances


def _curvature(model: Floats) -> Floats:
    """``(n, n)``: negative Hessian of the log likelihood; singular, as only differences of strengths matter."""
    weights = model * (1 - model)
    np.fill_diagonal(weights, 0.0)
    curvature: Floats = np.diag(weights.sum(axis=1)) - weights
    return curvature


def ratings(table: Table, session: int = SESSION) -> list[Standing]:
    """Elo-style ratings, best first: 400 points mean odds of 10 to 1 to be ahead after a session; the mean is `AVERAGE`.

    A Bradley-Terry model is fitted to `ahead`.  Standard errors propagate the errors of the cells through the fit (delta
    method); they don't include the lack of fit of a model with one number for each player.
    """
    chances, errors = ahead(table, session)
    strengths = fit(chances)
    n, pairs = len(table), table.pairs()
    shifts = np.zeros((n, len(pairs)))  # of sessions won, by one standard error of each cell
    for k, (i, j) in enumerate(pairs):
        shifts[i, k], shifts[j, k] = errors[i, j], -errors[i, j]
    moved = np.linalg.pinv(_curvature(_model(strengths)), hermitian=True) @ shifts
    reach = np.sqrt((moved**2).sum(axis=1))
    standings = [
        Standing(name, Estimate(AVERAGE + _POINTS * float(s), _POINTS * float(e)))
        for name, s, e in zip(table.names, strengths, reach, strict=True)
    ]
    return sorted(standings, key=lambda standing: -standing.value.mean)
