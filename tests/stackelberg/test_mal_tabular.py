"""Tabular MAL: its numbers on fresh seeds, and that it plays what its follower plans."""

import numpy as np
import pytest

from aprl.errors import ConfigError
from aprl.stackelberg.envs import CountedEnv
from aprl.stackelberg.mal_tabular import (
    UNSEEN_RULES,
    TabularMal,
    TabularMalConfig,
    targeted_policy,
)
from aprl.stackelberg.model import TransitionCounts, uniform_rows
from aprl.stackelberg.oracle import ExactOracle
from aprl.stackelberg.planning import best_response
from aprl.stackelberg.runner import run_method
from aprl.stackelberg.stopping import StoppingRule
from aprl.stackelberg.worlds import make_world
from tests.stackelberg.helpers import SpyEnv, corridor, counted, ignore


def solved(config, world, budget, seeds):
    runs = [run_method(TabularMal(config), make_world(world, s), budget, s) for s in seeds]
    return np.sort([run.solved_at for run in runs]), runs


class SpyOracle(ExactOracle):
    """Remembers every model and response."""

    def __init__(self, task):
        super().__init__(task)
        self.asked = []

    def best_response(self, model):
        response = super().best_response(model)
        self.asked.append((model, response))
        return response


@pytest.mark.parametrize("unseen", ["fixed", "redraw"])
def test_follower_plays_what_the_planner_plans_and_counts_are_those_played(unseen):
    world = make_world("ergodic_mdp_1")
    spy = SpyEnv(world)
    env = CountedEnv(spy, world.task, 600)
    oracles = []

    def make_oracle(task):
        oracles.append(SpyOracle(task))
        return oracles[0]

    config = TabularMalConfig(
        unseen=unseen, replan_within=False, stop=StoppingRule(eps=0.5, patience=3, min_visits=0)
    )
    result = TabularMal(config, make_oracle).learn(env, np.random.SeedSequence(1), ignore)
    assert result.stopped and spy.steps == env.samples == result.counts.visits.sum()
    episodes = [spy.played[i : i + 50] for i in range(0, len(spy.played), 50)]
    assert len(episodes) >= 3
    for episode, (model, response) in zip(episodes, oracles[0].asked, strict=False):
        plan = best_response(model).actions
        assert (response == plan).all()
        assert [a for _, a, _ in episode] == [plan[h, s] for h, (s, _, _) in enumerate(episode)]
    expected = np.zeros((6, 3))
    for state, action, successor in spy.played:
        expected[2 * state + action, successor] += 1
    assert (result.counts.counts == expected).all()
    seen = expected.sum(axis=1) > 0
    rows = expected[seen] / expected[seen].sum(axis=1, keepdims=True)
    assert (result.model.transitions[seen] == rows).all()


def test_initial_models_are_random_and_each_is_rolled_out():
    world = make_world("ergodic_mdp_1")
    oracles = []

    def make_oracle(task):
        oracles.append(SpyOracle(task))
        return oracles[0]

    config = TabularMalConfig(unseen="fixed", initial_models=3, replan_within=False)
    run_method(TabularMal(config, make_oracle), world, 200, 0)
    models = [model for model, _ in oracles[0].asked]
    first_rows = {tuple(model.transitions[0]) for model in models[1:6:2]}
    assert len(first_rows) == 3


@pytest.mark.parametrize("name", UNSEEN_RULES)
def test_same_seed_same_run(name):
    config = TabularMalConfig(unseen=name, noise=0.2, targeted=0.2, initial_models=1)
    one, same, other = (
        run_method(TabularMal(config), make_world("ergodic_mdp_1"), 200, s) for s in (1, 1, 2)
    )
    assert (one.returns == same.returns).all() and (one.samples == same.samples).all()
    assert len(one.returns) != len(other.returns) or (one.returns != other.returns).any()


def test_default_holds_every_number_of_the_small_worlds():
    for world in ("simple_mdp_1", "simple_mdp_2"):
        at, _ = solved(TabularMalConfig(), world, 400, range(2000, 2040))
        assert np.isfinite(at).sum() >= 38 and at[19] <= 75 and at[35] <= 250


def test_default_solves_riverswim():
    at, _ = solved(TabularMalConfig(), "riverswim6", 2000, range(2000, 2020))
    assert np.isfinite(at).sum() >= 19 and at[9] <= 500


@pytest.mark.slow
def test_default_solves_random_worlds():
    at, runs = solved(TabularMalConfig(), "random_s10_a3", 3000, range(2000, 2020))
    assert np.isfinite(at).sum() >= 17
    assert np.mean([run.final_return / run.optimum for run in runs]) >= 0.99


def test_rule_as_first_proposed_fails_about_half_the_time():
    config = TabularMalConfig(unseen="fixed", initial_models=4, replan_within=False)
    at, runs = solved(config, "simple_mdp_2", 400, range(1000, 1100))
    assert 40 <= np.isfinite(at).sum() <= 75
    stuck = [run.final_return for run in runs if not np.isfinite(run.solved_at)]
    assert min(stuck) == pytest.approx(0.9875)  # it leaves at once
    assert np.mean(np.array(stuck) < 3) > 0.8


@pytest.mark.parametrize("unseen", ["redraw", "optimistic"])
def test_small_changes_mend_it(unseen):
    config = TabularMalConfig(unseen=unseen, replan_within=False)
    at, _ = solved(config, "simple_mdp_2", 400, range(2000, 2040))
    assert np.isfinite(at).sum() >= 38


def test_stopping_rule_ends_runs_at_the_optimum():
    config = TabularMalConfig(stop=StoppingRule())
    for world in ("simple_mdp_2", "riverswim6"):
        _, runs = solved(config, world, 5000, range(2000, 2010))
        assert all(run.result.stopped for run in runs)
        assert all(run.used < 5000 and run.near_optimal[-1] for run in runs)


def test_noise_plays_a_fresh_random_policy_each_episode():
    world = make_world("ergodic_mdp_1")
    spy = SpyEnv(world)
    config = TabularMalConfig(unseen="fixed", noise=1.0)
    run_method(TabularMal(config), world, 500, 0, env=spy)
    by_episode = [tuple(a for _, a, _ in spy.played[i : i + 50]) for i in range(0, 500, 50)]
    assert len(set(by_episode)) == 10
    assert np.mean([a for _, a, _ in spy.played]) == pytest.approx(0.5, abs=0.08)


def test_targeted_policy_heads_for_the_least_visited():
    world = corridor()
    counts = TransitionCounts(world.task)
    counts.visits[:] = [100, 100, 100, 0, 0, 0]
    counts.counts[:] = world.transitions * counts.visits[:, None]
    policy = targeted_policy(counts, counts.mean_model(uniform_rows(world.task)))
    assert (policy[:3, 1] == 1).all()
    assert policy[2, 0] == 1


def test_targeted_exploration_mends_the_rule_as_proposed():
    config = TabularMalConfig(unseen="fixed", targeted=0.3, replan_within=False)
    at, _ = solved(config, "riverswim6", 2000, range(2000, 2010))
    assert np.isfinite(at).sum() >= 9


@pytest.mark.parametrize("unseen", ["redraw", "value_bonus"])
def test_learning_never_depends_on_evaluation(unseen):
    method = TabularMal(TabularMalConfig(unseen=unseen))
    world = make_world("riverswim6")
    reports = []
    env = counted(world, 300, seed=3)
    result = method.learn(env, np.random.SeedSequence(1), reports.append)
    assert not result.stopped and result.counts.visits.sum() == env.samples == 300
    again = []

    def nosy(policy):
        again.append(policy.copy())
        policy[:] = 0  # whatever the evaluation does with it

    env = counted(world, 300, seed=3)
    method.learn(env, np.random.SeedSequence(1), nosy)
    assert len(again) == len(reports)
    assert all((one == other).all() for one, other in zip(again, reports, strict=True))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"unseen": "redrawn"}, r"'redrawn'; did you mean 'redraw'"),
        ({"initial_models": -1}, "initial_models must be a whole number of at least 0, got -1"),
        ({"initial_models": 1.5}, "initial_models"),
        ({"batch": 0}, "batch"),
        ({"noise": 1.5}, r"noise must be in \[0, 1\], got 1.5"),
        ({"noise": 0.6, "targeted": 0.6}, "add up"),
    ],
)
def test_out_of_range(values, message):
    with pytest.raises(ConfigError, match=message):
        TabularMalConfig(**values)


@pytest.mark.parametrize("unseen", ["optimistic", "bonus", "value_bonus"])
def test_bonuses_need_a_planner(unseen):
    with pytest.raises(ConfigError, match="fixed, redraw, posterior"):
        TabularMal(TabularMalConfig(unseen=unseen), SpyOracle)
