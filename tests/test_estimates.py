"""Totals, estimates and confidence sequences."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from evaluation.estimates import NORMAL_95, Estimate, PairSequence, PairTotals, boundary


def test_totals_give_the_mean_and_error_of_a_brute_force_recomputation() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.integers(-48, 49, (2, 1000))
    totals = PairTotals.of(x, y)
    pairs = (x + y) / 2
    assert totals.per_hand.mean == pytest.approx(pairs.mean())
    assert totals.per_hand.standard_error == pytest.approx(pairs.std(ddof=1) / np.sqrt(1000))
    assert totals.as_dealer.mean == pytest.approx(x.mean())
    assert totals.as_dealer.standard_error == pytest.approx(x.std(ddof=1) / np.sqrt(1000))
    assert totals.as_big_blind.standard_error == pytest.approx(y.std(ddof=1) / np.sqrt(1000))
    unpaired = (x.var(ddof=1) + y.var(ddof=1)) / 4 / 1000
    assert totals.variance_reduction == pytest.approx(unpaired / totals.per_hand.standard_error**2)


def test_totals_add_up_exactly_however_they_are_cut() -> None:
    x, y = np.random.default_rng(2).integers(-48, 49, (2, 100))
    assert PairTotals.of(x[:37], y[:37]) + PairTotals.of(x[37:], y[37:]) == PairTotals.of(x, y)


def test_an_estimate_prints_its_95_percent_interval_and_no_minus_before_zero() -> None:
    assert str(Estimate(1234.56, 2.0)) == f"{Estimate(1234.56, 2.0)}" == "+1,234.6 ± 3.9"
    assert f"{Estimate(-0.2, 10.0):+.0f}" == "+0 ± 20"
    assert f"{Estimate(1500.0, 1000.0):,.0f}" == "1,500 ± 1,960"


def test_an_interval_reaches_to_both_sides_and_a_certain_win_is_infinitely_significant() -> None:
    low, high = Estimate(10.0, 2.0).interval
    assert (low, high) == (10 - 2 * NORMAL_95, 10 + 2 * NORMAL_95)
    assert Estimate(-1.0, 0.0).significance == -np.inf
    assert Estimate(0.0, 0.0).significance == 0
    assert Estimate(8.0, 2.0).significance == 4


def watched(pairs: NDArray[np.int64], look_every: int, mean: float) -> tuple[bool, bool]:
    """Whether the anytime-valid and the plain interval of these pairs ever miss their mean, in chips of both hands."""
    sequence, totals = PairSequence(48), PairTotals(0, 0, 0, 0, 0, 0)
    missed = [False, False]
    for start in range(0, len(pairs), look_every):
        part = pairs[start : start + look_every]
        more = PairTotals.of(part, np.zeros_like(part))
        sequence, totals = sequence.after(more), totals + more
        for which, (low, high) in enumerate((sequence.interval(), totals.per_hand.interval)):
            missed[which] |= not low <= mean / 2 <= high
    return missed[0], missed[1]


SKEWED = np.array([-4, 96]), np.array([0.96, 0.04])


EVEN = np.array([-24, -8, 0, 8, 24]), np.array([0.1, 0.25, 0.3, 0.25, 0.1])


EXTREME = np.array([-96, 96]), np.array([0.5, 0.5])


@pytest.mark.parametrize(("values", "chances"), [SKEWED, EVEN, EXTREME])
def test_watched_intervals_ever_miss_in_at_most_5_of_100_matches_where_plain_ones_miss_far_more(
    values: NDArray[np.int64], chances: NDArray[np.float64]
) -> None:
    rng, matches = np.random.default_rng(30), 200
    drawn = rng.choice(values, (matches, 3000), p=chances)
    missed = np.array([watched(pairs, 50, float(values @ chances)) for pairs in drawn]).mean(axis=0)
    assert missed[0] <= 0.05  # the theorem promises no more, and is not quite used up in a match of finite length
    assert missed[1] > 0.15


def test_the_boundary_is_where_the_mixture_reaches_its_level() -> None:
    for spread in (0.0, 1e3, 1e6, 1e12):
        distance = boundary(spread, 108)
        rate = 0.5 ** np.arange(1, 10) / 108
        cost = (-np.log(1 - rate * 108) - rate * 108) / 108**2
        assert np.mean(np.exp(rate * distance - cost * spread)) == pytest.approx(40, rel=1e-6)
    assert 3 < boundary(1e8, 108) / 1e4 < 4  # standard errors, where 1.96 would do for one look
    assert boundary(1e6, 108, 0.99) > boundary(1e6, 108, 0.95)


def test_a_sequence_keeps_squared_differences_from_what_was_predicted_before() -> None:
    rng = np.random.default_rng(33)
    x, y = rng.integers(-40, 49, (2, 300))
    sequence, expected = PairSequence(48), 0
    for start in range(0, 300, 100):
        part = slice(start, start + 100)
        before = x[:start] + y[:start]
        guess = max(-12, min(12, round(before.mean()))) if start else 0
        expected += int(((x[part] + y[part] - guess) ** 2).sum())
        sequence = sequence.after(PairTotals.of(x[part], y[part]))
    assert (sequence.deals, sequence.total, sequence.spread) == (300, int((x + y).sum()), expected)
    assert PairSequence(48).interval() == (-48.0, 48.0)
    lopsided = PairSequence(48).after(PairTotals.of(np.full(50, 48), np.full(50, 48)))
    assert lopsided.prediction == 12
    assert lopsided.interval()[1] == 48.0
