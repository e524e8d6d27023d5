"""UCBVI and PSRL."""

import math

import numpy as np
import pytest

from aprl.errors import ConfigError
from aprl.stackelberg.baselines.regret import PSRL, UCBVI, RegretConfig
from aprl.stackelberg.model import TransitionCounts
from aprl.stackelberg.planning import backward_induction, best_response
from aprl.stackelberg.runner import run_method
from aprl.stackelberg.worlds import make_world
from tests.stackelberg.helpers import SpyEnv, coin


def test_ucbvi_plans_with_the_published_bonus():
    world = make_world("ergodic_mdp_1")
    counts = TransitionCounts(world.task)
    counts.visits[:] = 10**9 * np.arange(1, 7)
    counts.counts[:] = world.transitions * counts.visits[:, None]
    policy = UCBVI(RegretConfig()).plan(counts, 5000, np.random.default_rng(0))
    log_term = math.log(5 * 6 * 5000 / 0.1)
    bonus = 7 * 50 * 1.05 * log_term / np.sqrt(counts.visits)
    rewards = world.expected_rewards + bonus
    expected = backward_induction(world.transitions, rewards, 50, np.arange(51.0))
    assert (policy == expected.actions).all()


def test_without_bonus_and_with_endless_samples_both_plan_the_optimum():
    world = make_world("ergodic_mdp_1")
    counts = TransitionCounts(world.task)
    counts.visits[:] = 1e12
    counts.counts[:] = world.transitions * 1e12
    rng = np.random.default_rng(0)
    optimum = best_response(world).actions
    for method in (UCBVI(RegretConfig(bonus_scale=0.0)), PSRL(RegretConfig())):
        assert (method.plan(counts, 10, rng)[:40] == optimum[:40]).all()


@pytest.mark.parametrize("kind", [UCBVI, PSRL])
def test_the_planned_policy_is_played_for_a_whole_episode(kind):
    world = coin()
    spy = SpyEnv(world)
    plans = []

    class Spied(kind):
        def plan(self, counts, samples, rng):
            plans.append(super().plan(counts, samples, rng))
            return plans[-1]

    run_method(Spied(RegretConfig()), world, 100, 0, env=spy)
    for step, (state, action, _) in enumerate(spy.played):
        assert action == plans[step // 10][step % 10, state]


def test_deployed_policy_is_the_one_asked_for():
    mean = run_method(PSRL(RegretConfig(deployed="mean")), make_world("riverswim6"), 2000, 0)
    played = run_method(PSRL(RegretConfig()), make_world("riverswim6"), 2000, 0)
    assert mean.solved_at < played.solved_at
    assert (mean.samples == played.samples).all()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"delta": 0.0}, "delta"),
        ({"prior": 0.0}, "prior"),
        ({"prior": float("inf")}, "prior"),
        ({"bonus_scale": -1.0}, "bonus_scale"),
        ({"bonus_scale": float("inf")}, "bonus_scale"),
        ({"deployed": "means"}, "did you mean 'mean'"),
    ],
)
def test_out_of_range(values, message):
    with pytest.raises(ConfigError, match=message):
        RegretConfig(**values)
