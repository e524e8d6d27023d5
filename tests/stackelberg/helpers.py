"""Tiny worlds, spies and recorders that several tests need."""

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from aprl.stackelberg.envs import CountedEnv, FiniteMDPEnv
from aprl.stackelberg.mdp import dense_world


class SpyEnv(gym.Env):
    """Passes everything on to a world and counts steps and resets by itself."""

    def __init__(self, world, seed=0):
        self._inner = FiniteMDPEnv(world, seed)
        self.observation_space = spaces.Discrete(world.task.n_states)
        self.action_space = spaces.Discrete(world.task.n_actions)
        self.steps, self.resets = 0, 0
        self.played = []

    def reset(self, *, seed=None, options=None):
        self.resets += 1
        self._state, info = self._inner.reset()
        return self._state, info

    def step(self, action):
        self.steps += 1
        state = self._state
        result = self._inner.step(action)
        self._state = result[0]
        self.played.append((state, int(action), result[0]))
        return result


def counted(world, budget=None, seed=0):
    return CountedEnv(FiniteMDPEnv(world, seed), world.task, budget)


def corridor(horizon=4):
    """State 0: action 0 stays for 0, action 1 goes on; state 1 pays 1 once and ends in 2."""
    transitions = [[[1, 0, 0], [0, 1, 0]], [[0, 0, 1], [0, 0, 1]], [[0, 0, 1], [0, 0, 1]]]
    rewards = np.zeros((3, 2, 3))
    rewards[1, :, 2] = 1.0
    return dense_world("corridor", transitions, rewards, start=0, horizon=horizon, final=(2,))


def coin():
    """One state, two actions that pay 1 with probability 0.25 and 0.75, by where they lead."""
    transitions = [[[0.75, 0.25], [0.25, 0.75]]] * 2
    rewards = np.zeros((2, 2, 2))
    rewards[:, :, 1] = 1.0
    return dense_world("coin", transitions, rewards, start=0, horizon=10)


def ignore(policy):
    """A report that goes nowhere."""
