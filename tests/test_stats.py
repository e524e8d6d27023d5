"""Win rates and their intervals."""

import math
from statistics import NormalDist

import pytest

from aprl.stats import (
    Z_95,
    MeanEstimate,
    WinRate,
    disjoint,
    wilson_interval,
)


def bounds_by_bisection(successes, trials, z):
    """Where the score test of the proportion p just rejects: |s/n - p| = z sqrt(p (1 - p) / n)."""

    def rejected(p):
        return abs(successes / trials - p) > z * math.sqrt(p * (1 - p) / trials)

    def edge(inside, outside):
        for _ in range(60):
            middle = (inside + outside) / 2
            inside, outside = (inside, middle) if rejected(middle) else (middle, outside)
        return inside

    return edge(successes / trials, 0.0), edge(successes / trials, 1.0)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        (212, 400, 0.4810, 0.5784),
        (0, 10, 0.0, 0.2775),  # Newcombe (1998) gives 0/10 as 0 to 0.2775
        (1, 29, 0.0061, 0.1718),  # Newcombe (1998), table I
        (15, 148, 0.0624, 0.1605),  # Newcombe (1998), table I
        (81, 263, 0.2553, 0.3662),  # Newcombe (1998), table I
    ],
)
def test_known_values(successes, trials, low, high):
    assert wilson_interval(successes, trials) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize("trials", [1, 2, 7, 400])
@pytest.mark.parametrize("z", [1.0, Z_95, 3.0])
def test_agrees_with_inverting_the_score_test(trials, z):
    for successes in sorted({0, 1, trials // 2, trials - 1, trials}):
        expected = bounds_by_bisection(successes, trials, z)
        assert wilson_interval(successes, trials, z) == pytest.approx(expected, abs=1e-9)


def test_quantile():
    assert pytest.approx(NormalDist().inv_cdf(0.975), abs=1e-14) == Z_95


def test_ends_are_exact():
    low, high = wilson_interval(0, 50)
    assert low == 0.0 and 0 < high < 0.1
    low, high = wilson_interval(50, 50)
    assert high == 1.0 and 0.9 < low < 1
    assert wilson_interval(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("successes", "trials"), [(-1, 10), (11, 10), (1, 0), (0, -1), (math.nan, 10)]
)
def test_impossible_counts(successes, trials):
    with pytest.raises(ValueError, match=f"got {successes} of {trials}"):
        wilson_interval(successes, trials)


def test_win_rate():
    rate = WinRate(212, 400)
    assert rate.rate == 0.53
    assert rate.interval == wilson_interval(212, 400)
    assert str(rate) == "53.0 % [48.1, 57.8] (212/400)"


def test_win_rate_before_the_first_game():
    assert math.isnan(WinRate(0, 0).rate)
    assert WinRate(0, 0).interval == (0.0, 1.0)
    assert str(WinRate(0, 0)) == "nan % [0.0, 100.0] (0/0)"


def test_disjoint():
    low, high = WinRate(10, 100), WinRate(90, 100)
    assert disjoint(low, high) and disjoint(high, low)
    assert not disjoint(low, WinRate(15, 100))
    assert not disjoint(WinRate(15, 100), low)
    assert not disjoint(low, low)
    assert not disjoint(low, WinRate(0, 0))


def test_mean_estimates():
    estimate = MeanEstimate.of([1.0, 2.0, 3.0, 6.0])
    assert (estimate.mean, estimate.count) == (3.0, 4)
    assert estimate.std == pytest.approx(math.sqrt(14 / 3))
    half = 3.182446 * estimate.std / 2
    assert estimate.interval == pytest.approx((3.0 - half, 3.0 + half), rel=1e-4)
    assert str(estimate) == f"3.0 [{3 - half:.1f}, {3 + half:.1f}] (4)"
    assert MeanEstimate.of([5.0]).interval == (-math.inf, math.inf)
    assert math.isnan(MeanEstimate.of([]).mean)
