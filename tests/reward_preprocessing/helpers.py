"""Small problems that several tests share."""

import numpy as np
from gymnasium import spaces

from aprl.reward_preprocessing.envs.mazes import Maze
from aprl.reward_preprocessing.mdp import TabularMDP
from aprl.reward_preprocessing.trajectories import Trajectory
from aprl.reward_preprocessing.transitions import TransitionTable
from aprl.rewards import TabularRewardNet

GAMMA = 0.99


def random_mdp(rng, num_states=12, num_actions=3, branching=3, terminating=0.0):
    """Random dynamics: each action leads to `branching` states."""
    rows = num_states * num_actions
    states = np.repeat(np.arange(num_states), num_actions * branching)
    actions = np.tile(np.repeat(np.arange(num_actions), branching), num_states)
    next_states = np.concatenate(
        [rng.choice(num_states, branching, replace=False) for _ in range(rows)]
    )
    probability = rng.dirichlet(np.ones(branching), rows).ravel()
    terminated = rng.random(len(states)) < terminating
    table = TransitionTable.of(states, actions, next_states, terminated)
    return TabularMDP(num_states, num_actions, table, probability)


def random_table_net(rng, num_states=12, num_actions=3):
    """Random reward of state, action and next state."""
    return TabularRewardNet(
        spaces.Discrete(num_states),
        spaces.Discrete(num_actions),
        ("state", "action", "next_state"),
        rng.normal(size=(num_states, num_actions, num_states)),
    )


def maze_rewards(maze: Maze):
    """Transitions of a maze and their rewards."""
    table = maze.mdp().table
    return table, maze.rewards(table.states, table.next_states)


def trajectory(steps, width=None, rng=None, terminated=False):
    """A random trajectory: of vectors, or of numbered states below 5 if `width` is None."""
    rng = rng or np.random.default_rng(0)
    if width is None:
        states = rng.integers(5, size=steps + 1)
    else:
        states = rng.normal(size=(steps + 1, width)).astype(np.float32)
    return Trajectory(states, rng.integers(3, size=steps), rng.normal(size=steps), terminated)
