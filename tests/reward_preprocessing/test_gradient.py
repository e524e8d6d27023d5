"""The gradient route: near the exact optima, never worse than the start, repeatable."""

import time

import numpy as np
import pytest
from gymnasium import spaces

from aprl.errors import ConfigError
from aprl.reward_preprocessing import gradient
from aprl.reward_preprocessing.envs.mazes import REWARDS, SHAPINGS, Maze
from aprl.reward_preprocessing.gradient import GradientOptions, descend
from aprl.reward_preprocessing.objectives import OBJECTIVES, get_objective
from aprl.reward_preprocessing.preprocessing import default_gradient_options
from aprl.reward_preprocessing.transitions import Transitions
from aprl.rewards.potentials import MlpPotential, TabularPotential

from .helpers import GAMMA, maze_rewards, trajectory

TARGETS = {
    ("goal", "sparse_l1"): 1.05 * 0.009900,
    ("path", "sparse_l1"): 1.05 * 0.085140,
    ("goal", "smooth_l1"): 1.05 * 0.008099,
    ("path", "smooth_l1"): 1.05 * 0.039354,
}


def run(maze, name, options=None):
    table, rewards = maze_rewards(maze)
    potential = TabularPotential(maze.num_states)
    options = options or default_gradient_options(table, potential)
    value = descend(rewards, table, get_objective(name), potential, GAMMA, options)
    shaped = rewards + GAMMA * potential.of(table.next_states) - potential.of(table.states)
    assert get_objective(name).value(shaped, table) == pytest.approx(value, abs=1e-12)
    return value, shaped


def target(reward, name):
    if (reward, name) in TARGETS:
        return TARGETS[reward, name]
    table, unshaped = maze_rewards(Maze(10, False, reward))
    return 1.15 * get_objective(name).value(unshaped, table)


@pytest.mark.parametrize(("reward", "name"), [("goal", "sparse_l1"), ("path", "smooth_log")])
def test_near_the_optimum_from_a_dense_shaping(reward, name):
    assert run(Maze(10, False, reward, "dense"), name)[0] <= target(reward, name)


@pytest.mark.slow
@pytest.mark.parametrize("shaping", SHAPINGS)
@pytest.mark.parametrize("reward", REWARDS)
@pytest.mark.parametrize("name", OBJECTIVES)
def test_near_the_optimum_everywhere_within_a_minute(reward, name, shaping):
    started = time.process_time()
    value, _ = run(Maze(10, False, reward, shaping), name)
    assert time.process_time() - started < 60
    assert value <= target(reward, name)


def test_what_is_left_touches_the_goal():
    maze = Maze(10, shaping="random")
    _, shaped = run(maze, "sparse_l1")
    large = np.abs(shaped) >= 0.01
    assert large.mean() <= 0.02
    table = maze.mdp().table
    at_goal = (table.states == maze.goal_cell) | (table.next_states == maze.goal_cell)
    assert not (large & ~at_goal).any()


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("lr", [1e-3, 1e3])
def test_never_worse_than_the_start(name, lr):
    table, rewards = maze_rewards(Maze(6, True, "path", "dense"))
    before = get_objective(name).value(rewards, table)
    value, _ = run(Maze(6, True, "path", "dense"), name, GradientOptions(20, 1, lr))
    assert value <= before * (1 + 1e-12)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_samples_in_mini_batches(name):
    rng = np.random.default_rng(0)
    trajectories = [trajectory(50, 2, rng, terminated=i % 2 == 0) for i in range(10)]
    t = Transitions.from_trajectories(trajectories)
    height = 3 * t.states[:, 0] ** 2
    reached = np.where(t.terminated, 0, 3 * t.next_states[:, 0] ** 2)
    rewards = GAMMA * reached - height
    values = []
    for _ in range(2):
        potential = MlpPotential(spaces.Box(-1, 1, (2,)), (16,))
        potential.fit_scale(t.states, gradient.reward_scale(rewards))
        options = GradientOptions(epochs=30, batch_size=64, lr=1e-2)
        values.append(descend(rewards, t, get_objective(name), potential, GAMMA, options))
    assert values[0] == values[1] < 0.6 * get_objective(name).value(rewards, t)


def test_mini_batches_are_made_of_pairs_in_time(monkeypatch):
    """D4: shuffling must not break neighbours apart."""
    t = Transitions.from_trajectories([trajectory(40, 2), trajectory(30, 2)])
    rewards = np.arange(70.0) ** 2
    terms = gradient._Terms(rewards, t, get_objective("smooth_l1"), GAMMA)
    options = GradientOptions(epochs=1, batch_size=10, lr=0.1)
    batches = gradient._batches(len(terms), options, whole=False)
    seen = [next(batches) for _ in range(7)]
    steps = [
        float(d)
        for batch in seen
        for d in rewards[terms.pairs[1][batch]] - rewards[terms.pairs[0][batch]]
    ]
    expected = [*np.diff(rewards[:40]), *np.diff(rewards[40:])]
    assert steps != expected and sorted(steps) == sorted(expected)


def test_a_constant_is_found_at_once():
    """Without a direction of its own it would take 100 times as long, at a discount of 0.99."""
    table, _ = maze_rewards(Maze(4))
    potential = TabularPotential(16)
    options = GradientOptions(200, 1, 0.1)
    rewards = np.full(len(table), 5.0)
    rewards[0] = 6
    assert descend(rewards, table, get_objective("sparse_l1"), potential, GAMMA, options) < 0.1


def test_progress_is_told_and_falls():
    told = []
    table, rewards = maze_rewards(Maze(4, shaping="random"))
    descend(
        rewards,
        table,
        get_objective("sparse_l1"),
        TabularPotential(16),
        GAMMA,
        GradientOptions(200, 1, 0.1),
        lambda step, value: told.append((step, value)),
    )
    assert [step for step, _ in told] == [0, 50, 100, 150, 200]
    values = [value for _, value in told]
    assert values == sorted(values, reverse=True) and values[-1] < values[0]


@pytest.mark.parametrize("bad", [{"epochs": 0}, {"batch_size": 0}, {"lr": 0.0}, {"lr": -1.0}])
def test_options_out_of_range(bad):
    with pytest.raises(ConfigError, match=next(iter(bad))):
        GradientOptions(**{"epochs": 1, "batch_size": 1, "lr": 0.1, **bad})
