"""Early stopping: the interval covers as often as it says, and is as narrow as asked."""

import numpy as np
import pytest

from aprl.sequential import StoppingPlan
from aprl.stats import wilson_interval

PLAN = StoppingPlan.of(width=0.15, most=400, first=100, every=50)


@pytest.mark.parametrize("rate", [0.1, 0.25, 0.4, 0.5, 0.7, 0.9])
def test_exact_coverage_is_between_93_and_97_percent(rate):
    assert 0.93 <= PLAN.coverage(rate) <= 0.97


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.8])
def test_simulated_matches_are_covered_in_93_to_97_percent(rate):
    rng = np.random.default_rng(int(100 * rate))
    intervals = {}
    covered, matches = 0, 4000
    for _ in range(matches):
        wins = before = 0
        for number in PLAN.looks:
            wins += int(rng.binomial(number - before, rate))
            before = number
            if PLAN.stops(wins, number):
                break
        if (wins, before) not in intervals:
            intervals[wins, before] = PLAN.interval(wins, before)
        low, high = intervals[wins, before]
        covered += low <= rate <= high
    assert 0.93 <= covered / matches <= 0.97


def test_probabilities_of_all_outcomes_add_up():
    for rate in (0.0, 0.03, 0.5, 1.0):
        wins, games, probability = PLAN.outcomes(rate)
        assert probability.sum() == pytest.approx(1.0)
        assert (wins * probability).sum() / (games * probability).sum() == pytest.approx(rate)


def test_play_that_stops_early_is_as_narrow_as_asked():
    wins, games, _ = PLAN.outcomes(0.5)
    early = games < PLAN.looks[-1]
    assert early.any()
    for w, n in zip(wins[early], games[early], strict=True):
        low, high = PLAN.interval(int(w), int(n))
        assert high - low <= 0.15
        assert low <= w / n <= high


def test_a_single_look_is_a_mid_p_interval_near_wilson():
    plan = StoppingPlan.of(width=0.01, most=300, first=300)
    assert plan.looks == (300,)
    assert plan.interval(120, 300) == pytest.approx(wilson_interval(120, 300), abs=0.003)


def test_ends_of_the_scale():
    low, high = PLAN.interval(0, 100)
    assert low == 0.0 and 0.02 < high < 0.04
    low, high = PLAN.interval(100, 100)
    assert high == 1.0 and 0.96 < low < 0.98


@pytest.mark.parametrize("wins, games", [(50, 99), (-1, 100), (101, 100), (50, 100)])
def test_where_the_plan_does_not_stop_there_is_no_interval(wins, games):
    with pytest.raises(ValueError, match="is not where the plan"):
        PLAN.interval(wins, games)


@pytest.mark.parametrize("width, most", [(0, 10), (1, 10), (0.1, 0)])
def test_plans_that_cannot_be_are_refused(width, most):
    with pytest.raises(ValueError, match="cannot plan"):
        StoppingPlan.of(width, most)


def test_few_games_are_looked_at_once():
    assert StoppingPlan.of(0.1, 30).looks == (30,)
    assert StoppingPlan.of(0.1, 120, 100, 50).looks == (100, 120)
