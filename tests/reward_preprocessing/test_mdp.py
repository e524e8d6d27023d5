"""Exact solutions of finite decision processes."""

import numpy as np
import pytest

from aprl.errors import ConfigError
from aprl.reward_preprocessing.envs.mazes import Maze
from aprl.reward_preprocessing.mdp import TabularMDP, optimal_actions
from aprl.reward_preprocessing.transitions import TransitionTable

from .helpers import maze_rewards, random_mdp


def value_iteration(mdp, rewards, gamma, sweeps):
    q = np.zeros((mdp.num_states, mdp.num_actions))
    for _ in range(sweeps):
        values = q.max(axis=1)
        t = mdp.table
        target = mdp.probability * (rewards + gamma * ~t.terminated * values[t.next_states])
        q = np.zeros_like(q)
        np.add.at(q, (t.states, t.actions), target)
    return q


@pytest.mark.parametrize("terminating", [0.0, 0.2])
def test_policy_iteration_agrees_with_value_iteration(terminating):
    rng = np.random.default_rng(1)
    for _ in range(5):
        mdp = random_mdp(rng, terminating=terminating)
        rewards = rng.normal(size=len(mdp.table))
        expected = value_iteration(mdp, rewards, 0.9, 400)
        np.testing.assert_allclose(mdp.solve(rewards, 0.9), expected, atol=1e-12)


def test_values_in_a_maze():
    maze = Maze(10)
    _, rewards = maze_rewards(maze)
    q = maze.mdp().solve(rewards, 0.99)
    assert q[maze.goal_cell].tolist()[0] == pytest.approx(100)  # 1 / (1 - 0.99), for staying
    assert q[maze.goal_cell - 3].max() == pytest.approx(100 * 0.99**3)


def test_ties_are_all_optimal():
    maze = Maze(10)
    _, rewards = maze_rewards(maze)
    best = optimal_actions(maze.mdp().solve(rewards, 0.99), margin=1e-7)
    assert best[0].tolist() == [False, False, True, True, False]  # up and right lead to the goal
    assert best[maze.goal_cell].tolist() == [True, False, False, False, False]


def test_states_without_rows_have_no_choice():
    maze = Maze(6, key=True)
    _, rewards = maze_rewards(maze)
    mdp = maze.mdp()
    assert np.flatnonzero(~mdp.has_choices).tolist() == [maze.key_cell]
    q = mdp.solve(rewards, 0.99)
    with_key = q[maze.num_cells :].max(axis=1)
    without = q[: maze.num_cells].max(axis=1)
    assert (with_key >= without - 1e-9).all() and with_key.max() == pytest.approx(100)


def test_impossible_input_is_refused():
    maze = Maze(4)
    table, rewards = maze_rewards(maze)
    for gamma in (1, 1.5, -0.1):
        with pytest.raises(ConfigError, match="gamma"):
            maze.mdp().solve(rewards, gamma)
    with pytest.raises(ConfigError, match="add up to 1"):
        TabularMDP(maze.num_states, 5, table, np.full(len(table), 0.5))


def test_walks_follow_the_dynamics():
    rng = np.random.default_rng(0)
    mdp = random_mdp(rng, num_states=4, num_actions=2, branching=2, terminating=0.1)
    walks = mdp.walks(count=3000, steps=20, seed=1)
    inside = walks.trajectory[1:] == walks.trajectory[:-1]
    np.testing.assert_array_equal(walks.next_states[:-1][inside], walks.states[1:][inside])
    assert not walks.terminated[:-1][inside].any()
    assert len(np.unique(walks.trajectory)) == 3000
    t = mdp.table
    for row in range(len(t)):
        here = walks.states == t.states[row]
        chosen = here & (walks.actions == t.actions[row])
        taken = chosen & (walks.next_states == t.next_states[row])
        assert chosen.sum() / here.sum() == pytest.approx(1 / 2, abs=0.05)
        assert taken.sum() / chosen.sum() == pytest.approx(mdp.probability[row], abs=0.06)


def test_walks_are_as_long_as_asked_where_nothing_terminates():
    mdp = TabularMDP(
        2, 1, TransitionTable.of(np.array([0, 1]), np.zeros(2, int), np.array([1, 0])), np.ones(2)
    )
    walks = mdp.walks(count=3, steps=7)
    assert np.bincount(walks.trajectory).tolist() == [7, 7, 7]
