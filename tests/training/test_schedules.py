"""Values that change over a run, at the edges of the run."""

import json

import pytest

from aprl.errors import ConfigError
from aprl.training.schedules import (
    ConditionalAnnealer,
    ConditionalParams,
    ConstantAnnealer,
    EpisodeStatistics,
    LinearAnnealer,
)

PROGRESS = [0.0, 0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize(
    ("end_frac", "expected"),
    [
        (0, [4, 4, 4, 4, 4]),  # the end value from the first step
        (0.25, [2, 4, 4, 4, 4]),
        (0.5, [2, 3, 4, 4, 4]),
        (1, [2, 2.5, 3, 3.5, 4]),
    ],
)
def test_linear_up_and_down(end_frac, expected):
    up, down = LinearAnnealer(2, 4, end_frac), LinearAnnealer(4, 2, end_frac)
    assert [up(p) for p in PROGRESS] == expected
    assert [down(p) for p in PROGRESS] == [6 - value for value in expected]


@pytest.mark.parametrize("end_frac", [0, 1e-9, 0.3, 1])
def test_linear_ends_exactly_and_never_overshoots(end_frac):
    annealer = LinearAnnealer(1.0, 0.0, end_frac)
    assert annealer(end_frac) == annealer(1.0) == annealer(1.5) == 0.0


@pytest.mark.parametrize("end_frac", [-0.1, 1.5, float("nan"), float("inf")])
def test_linear_refuses_a_fraction_outside_the_run(end_frac):
    with pytest.raises(ConfigError, match=rf"anneal_frac must be in \[0, 1\], got {end_frac}"):
        LinearAnnealer(1, 0, end_frac)


def test_constant():
    assert [ConstantAnnealer(0.3)(p) for p in PROGRESS] == [0.3] * 5


# Conditional annealers.


def finished(statistics, *sparse, length=10):
    for value in sparse:
        statistics.add(value, 2 * value, length)


def conditional(window=100, **params):
    statistics = EpisodeStatistics(window)
    return ConditionalAnnealer(ConditionalParams(**params), statistics), statistics


def test_conditional_decays_each_time_that_the_metric_allows():
    annealer, episodes = conditional(thresh=0.5, window_size=2, min_wait=2, decay_factor=0.5)
    assert annealer(0.0) == 1.0  # no episodes yet
    finished(episodes, 1.0)
    assert annealer(0.1) == 1.0  # one episode is less than min_wait
    finished(episodes, 1.0)
    assert annealer(0.1) == 0.5
    assert annealer(0.1) == 0.5  # no episode since
    finished(episodes, 0.0, 0.0)
    assert annealer(0.2) == 0.5  # the newest two are below the threshold
    finished(episodes, 2.0)
    assert annealer(0.2) == 0.25  # (0 + 2) / 2 = 1 > 0.5


def test_conditional_stops_at_its_floor():
    annealer, episodes = conditional(end_val=0.2, decay_factor=0.5)
    values = []
    for _ in range(10):
        finished(episodes, 1.0)
        values.append(annealer(0.0))
    assert values == [0.5, 0.25] + [0.2] * 8


@pytest.mark.parametrize(
    ("metric", "operator", "decays"),
    [
        ("sparse", "gt", False),  # sparse returns are 3, dense 6, lengths 10; threshold 6
        ("sparse", "lt", True),
        ("dense", "gt", False),
        ("dense", "ge", True),
        ("dense", "le", True),
        ("length", "gt", True),
        ("length", "lt", False),
    ],
)
def test_conditional_metrics_and_operators(metric, operator, decays):
    annealer, episodes = conditional(metric=metric, operator=operator, thresh=6)
    finished(episodes, 3, length=10)
    assert (annealer(0.0) < 1.0) == decays


def test_conditional_decays_when_it_has_waited_too_long():
    annealer, episodes = conditional(thresh=100, max_wait=3, decay_factor=0.5)
    finished(episodes, 0.0, 0.0, 0.0)
    assert annealer(0.0) == 1.0
    finished(episodes, 0.0)
    assert annealer(0.0) == 0.5


def test_conditional_is_restored():
    annealer, episodes = conditional(thresh=0.5, window_size=3, min_wait=2)
    finished(episodes, 1, 1, 1, 0)
    annealer(0.0)
    saved = json.loads(json.dumps([annealer.state_dict(), episodes.state_dict()]))
    again, newer = conditional(thresh=0.5, window_size=3, min_wait=2)
    again.load_state_dict(saved[0])
    newer.load_state_dict(saved[1])
    for value in (0, 1, 1, 1, 0, 1):
        finished(episodes, value)
        finished(newer, value)
        assert again(0.0) == annealer(0.0)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"metric": "lenght"}, "metric 'lenght'.*length"),
        ({"operator": "eq"}, "operator 'eq'"),
        ({"window_size": 0}, "window_size must be"),
        ({"min_wait": 1.5}, "min_wait must be"),
        ({"decay_factor": 1.0}, r"decay_factor must be in \(0, 1\)"),
        ({"thresh": "high"}, "thresh must be a number, got 'high'"),
        ({"start_val": 0.1, "end_val": 0.5}, "end_val must not exceed start_val"),
    ],
)
def test_unusable_conditions_are_refused(params, message):
    with pytest.raises(ConfigError, match=message):
        conditional(**params)
