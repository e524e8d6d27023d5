"""Preprocessing as a whole: the same result from every disguise, by the right method."""

import numpy as np
import pytest
import torch

from aprl.errors import ConfigError, RewardError
from aprl.reward_preprocessing.environments import EnvConfig
from aprl.reward_preprocessing.envs.mazes import REWARDS, SHAPINGS, Maze
from aprl.reward_preprocessing.envs.mountain_car import mountain_car_reward_net
from aprl.reward_preprocessing.objectives import OBJECTIVES, get_objective
from aprl.reward_preprocessing.preprocessing import GradientOptions, preprocess
from aprl.reward_preprocessing.rollouts import RolloutSource, collect_mixture
from aprl.reward_preprocessing.transitions import Transitions
from aprl.rewards import ShapedRewardNet
from aprl.rewards.potentials import LinearPotential, MlpPotential, TabularPotential

from .helpers import GAMMA, maze_rewards


@pytest.mark.parametrize("shaping", SHAPINGS)
@pytest.mark.parametrize("reward", REWARDS)
@pytest.mark.parametrize("name", ["sparse_log", "smooth_log"])
def test_logarithmic_objectives_get_as_low_as_the_unshaped_reward(reward, name, shaping):
    maze, objective = Maze(6, False, reward, shaping), get_objective(name)
    table, unshaped = maze_rewards(Maze(6, False, reward))
    options = GradientOptions(500, 1, 0.1)
    result = preprocess(
        maze.reward_net(), table, objective, TabularPotential(36), GAMMA, options=options
    )
    found = objective.value(result.reward.rewards(table), table)
    assert result.method == "reweighted"
    assert found <= 1.02 * objective.value(unshaped, table)


def test_methods():
    maze = Maze(4, shaping="dense")
    net, table = maze.reward_net(), maze.mdp().table
    cases = [
        ("sparse_l1", "auto", "exact"),
        ("smooth_l1", "exact", "exact"),
        ("sparse_l1", "gradient", "gradient"),
        ("sparse_log", "auto", "reweighted"),
        ("sparse_log", "gradient", "gradient"),
    ]
    for name, method, used in cases:
        options = GradientOptions(5, 1, 0.1)
        objective = get_objective(name)
        result = preprocess(net, table, objective, TabularPotential(16), GAMMA, method, options)
        assert result.method == used
        assert (result.lower_bound is not None) == (used == "exact")


def test_the_input_is_left_alone():
    maze = Maze(4, shaping="random")
    net, potential = maze.reward_net(), TabularPotential(16)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    for name, objective in OBJECTIVES.items():
        options = GradientOptions(20, 1, 0.1)
        result = preprocess(net, maze.mdp().table, objective, potential, GAMMA, options=options)
        assert result.reward.base is net, name
        assert result.reward.potential is not potential
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert potential.coefficients().tolist() == [0] * 16


def mountain_car_data(steps=1000, seed=0):
    """Random actions; the car does not reach the top, so the unshaped reward is constant."""
    make = EnvConfig(name="aprl/MountainCar-v0").make
    sources = [RolloutSource(random_prob=1.0)]
    seeds = np.random.SeedSequence(seed)
    return Transitions.from_trajectories(collect_mixture(sources, make, steps, seeds))


@pytest.mark.parametrize("method", ["exact", "gradient"])
@pytest.mark.parametrize("shaping", ["dense", "antidense"])
def test_the_slope_of_a_linear_shaping_is_recovered(shaping, method):
    t, objective = mountain_car_data(), get_objective("sparse_l1")
    net = mountain_car_reward_net(shaping, GAMMA)
    options = GradientOptions(epochs=300, batch_size=200, lr=0.1)
    result = preprocess(net, t, objective, LinearPotential(2), GAMMA, method, options)
    slope = 100 if shaping == "dense" else -100
    # phi(s) = slope * position undoes itself with the opposite sign.
    assert result.reward.potential.slopes[0] == pytest.approx(-slope, rel=0.02)
    exact = preprocess(net, t, objective, LinearPotential(2), GAMMA, "exact")
    best = objective.value(exact.reward.rewards(t), t)
    assert objective.value(result.reward.rewards(t), t) <= best + max(0.05 * best, 0.01)


def test_a_network_undoes_a_shaping_too():
    t, objective = mountain_car_data(), get_objective("sparse_l1")
    net = mountain_car_reward_net("random", GAMMA)
    values = {}
    for potential in (LinearPotential(2), MlpPotential(net.observation_space)):
        options = GradientOptions(epochs=100, batch_size=200, lr=3e-3)
        result = preprocess(net, t, objective, potential, GAMMA, options=options)
        values[potential.kind] = objective.value(result.reward.rewards(t), t)
    before = objective.value(net.rewards(t), t)
    assert values["linear"] < before and values["mlp"] < 0.1 * before


def test_undoing_twice_changes_nothing():
    maze = Maze(6, shaping="dense")
    table, objective = maze.mdp().table, get_objective("sparse_l1")
    once = preprocess(maze.reward_net(), table, objective, TabularPotential(36), GAMMA).reward
    twice = preprocess(once, table, objective, TabularPotential(36), GAMMA).reward
    np.testing.assert_allclose(twice.rewards(table), once.rewards(table), atol=1e-7)
    assert isinstance(twice.unwrapped, type(maze.reward_net().unwrapped))


def test_bad_input():
    maze = Maze(4)
    net, table = maze.reward_net(), maze.mdp().table
    l1, log = get_objective("sparse_l1"), get_objective("sparse_log")
    for gamma in (0, -1, 1.01, True, None, "0.9"):
        with pytest.raises(ConfigError, match=r"gamma must be in \(0, 1\]"):
            preprocess(net, table, l1, TabularPotential(16), gamma)
    with pytest.raises(ConfigError, match="method"):
        preprocess(net, table, l1, TabularPotential(16), GAMMA, "exakt")
    with pytest.raises(ConfigError, match="method=exact needs"):
        preprocess(net, table, log, TabularPotential(16), GAMMA, "exact")
    broken = Maze(4).reward_net()
    broken.table.data[3] = float("nan")
    with pytest.raises(RewardError, match="nan for state 3"):
        preprocess(broken, table, l1, TabularPotential(16), GAMMA)


def test_a_discount_of_one_is_allowed():
    maze = Maze(4, gamma=1.0, shaping="dense")
    table, objective = maze.mdp().table, get_objective("sparse_l1")
    result = preprocess(maze.reward_net(), table, objective, TabularPotential(16), 1.0)
    assert isinstance(result.reward, ShapedRewardNet)
    assert objective.value(result.reward.rewards(table), table) == pytest.approx(1 / 16, abs=1e-9)
