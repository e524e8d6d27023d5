"""Q-learning and the Dynas."""

import numpy as np
import pytest

from aprl.errors import ConfigError
from aprl.stackelberg.baselines.q_learning import DynaQ, DynaQConfig
from aprl.stackelberg.mdp import dense_world
from aprl.stackelberg.runner import run_method
from aprl.stackelberg.worlds import make_world
from tests.stackelberg.helpers import SpyEnv, coin, corridor


def test_q_learning_solves_a_coin():
    runs = [run_method(DynaQ(DynaQConfig()), coin(), 3000, seed) for seed in range(5)]
    assert all(run.near_optimal[-1] for run in runs)


def test_planning_saves_samples():
    world = make_world("deterministic_mdp_1").with_horizon(10)

    def median(planning_steps):
        config = DynaQConfig(planning_steps=planning_steps, epsilon=0.3, alpha=0.5, gamma=0.9)
        return np.median(
            [run_method(DynaQ(config), world, 800, seed).solved_at for seed in range(7)]
        )

    assert median(20) < median(0)


def test_greedy_with_optimistic_values_tries_everything():
    spy = SpyEnv(corridor())
    config = DynaQConfig(epsilon=0.0, initial_value=5.0)
    run_method(DynaQ(config), corridor(), 100, 0, env=spy)
    assert {(s, a) for s, a, _ in spy.played} == {(0, 0), (0, 1), (1, 0), (1, 1)}


def test_epsilon_one_is_uniform():
    spy = SpyEnv(make_world("trap"))
    run_method(DynaQ(DynaQConfig(epsilon=1.0)), make_world("trap"), 1000, 0, env=spy)
    assert np.mean([a for _, a, _ in spy.played]) == pytest.approx(0.5, abs=0.06)


def test_dyna_q_plus_returns_to_what_it_left_for_long():
    rewards = [[[0.5], [0.4]]]
    world = dense_world("known", [[[1.0], [1.0]]], rewards, start=0, horizon=10)

    def tries(kappa):
        spy = SpyEnv(world)
        config = DynaQConfig(epsilon=0.0, alpha=0.5, gamma=0.0, planning_steps=5, kappa=kappa)
        run_method(DynaQ(config), world, 500, 0, env=spy)
        return sum(action for _, action, _ in spy.played[250:])

    assert tries(0.0) == 0 and tries(0.05) > 10


@pytest.mark.parametrize(
    "values",
    [
        {"epsilon": 1.5},
        {"alpha": -1},
        {"gamma": 2},
        {"planning_steps": -1},
        {"kappa": -1},
        {"kappa": float("inf")},
        {"initial_value": float("inf")},
        {"initial_value": float("nan")},
        {"initial_value": "x"},
    ],
)
def test_out_of_range(values):
    with pytest.raises(ConfigError, match=next(iter(values))):
        DynaQConfig(**values)
