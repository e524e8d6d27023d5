"""The stopping rule: at rest, and nothing under-visited within reach."""

import numpy as np
import pytest

from aprl.errors import ConfigError
from aprl.stackelberg.model import TransitionCounts, uniform_rows
from aprl.stackelberg.stopping import StoppingRule, reaching_plan
from aprl.stackelberg.worlds import make_world, riverswim
from tests.stackelberg.helpers import corridor


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"eps": -0.1}, r"eps must be in \[0, 1\], got -0.1"),
        ({"eps": 1.5}, "eps"),
        ({"reach": 1.0}, "reach"),
        ({"min_visits": -1}, "min_visits"),
        ({"patience": 0}, "patience"),
    ],
)
def test_out_of_range(values, message):
    with pytest.raises(ConfigError, match=message):
        StoppingRule(**values)


def test_reaching_plan_of_a_river():
    world = riverswim(6)
    far = np.zeros(12, dtype=bool)
    far[11] = True
    plan = reaching_plan(world, far)
    assert (plan.actions[0, :5] == 1).all()
    assert 0.9 < plan.values[0, 0] < 1
    assert reaching_plan(world.with_horizon(5), far).values[0, 0] == 0
    exact = 0.6 * 0.35**4  # straight up in five steps, then the sixth is the target itself
    assert reaching_plan(world.with_horizon(6), far).values[0, 0] == pytest.approx(exact)


def test_each_target_counts_once():
    world = make_world("ergodic_mdp_1")
    plan = reaching_plan(world, np.ones(6, dtype=bool))
    assert plan.values[0] == pytest.approx(np.ones(3))


def visited(world, visits):
    counts = TransitionCounts(world.task)
    counts.visits[:] = visits
    counts.counts[:] = world.transitions * counts.visits[:, None]
    return counts


def test_change_is_measured_on_sampled_rows_only():
    world = corridor()
    counts = visited(world, [10, 10, 0, 0, 0, 0])
    rule = StoppingRule(eps=0.05)
    old = counts.mean_model(uniform_rows(world.task))
    lively = np.eye(3)[[0, 0, 0, 1, 0, 0]]
    assert rule.at_rest(old, counts.mean_model(lively), counts)
    assert not rule.at_rest(None, old, counts)
    counts.counts[0] = [9, 1, 0]
    assert not rule.at_rest(old, counts.mean_model(lively), counts)
    assert StoppingRule(eps=0.1).at_rest(old, counts.mean_model(lively), counts)


def test_way_leads_to_what_was_visited_too_little():
    world = corridor()
    rule = StoppingRule(min_visits=5)
    counts = visited(world, [9, 9, 9, 2, 0, 0])
    way = rule.way_to_unexplored(counts.mean_model(uniform_rows(world.task)), counts)
    assert way[2, 0] == 1 and (way[1:3, 1] == 1).all()
    counts = visited(world, [9, 9, 9, 9, 0, 0])  # pairs of final states are never missed
    model = counts.mean_model(uniform_rows(world.task))
    assert rule.way_to_unexplored(model, counts) is None


def test_what_is_out_of_reach_is_not_missed():
    world = riverswim(6).with_horizon(5)
    counts = visited(world, [9] * 10 + [0, 0])
    model = counts.mean_model(uniform_rows(world.task))
    reached = reaching_plan(model, counts.visits < 9).values[0, 0]
    assert reached == 0
    assert StoppingRule(min_visits=9).way_to_unexplored(model, counts) is None


def test_without_min_visits_there_is_no_second_test():
    world = corridor()
    counts = visited(world, [9, 0, 0, 0, 0, 0])
    model = counts.mean_model(uniform_rows(world.task))
    assert StoppingRule(min_visits=0).way_to_unexplored(model, counts) is None
    assert StoppingRule(min_visits=1).way_to_unexplored(model, counts) is not None
