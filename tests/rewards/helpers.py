"""Nets and transitions that several tests share."""

import numpy as np
from gymnasium import spaces

from aprl.rewards import MlpRewardNet, ShapedRewardNet
from aprl.rewards.potentials import MlpPotential

BOX = spaces.Box(-10.0, 10.0, (3,), np.float32)
CHOICE = spaces.Discrete(4, start=1)
NUMBERED, ACTIONS = spaces.Discrete(5), spaces.Discrete(3)
RUNNING = {"activation": "tanh", "input_scaling": "running", "precision": "float32"}


def running_net(observations=BOX, actions=CHOICE, inputs=("state", "action"), **options):
    """A net as GAIL trains it: its inputs are normalised by all that was seen."""
    return MlpRewardNet(observations, actions, inputs, **{"seed": None, **RUNNING, **options})


def running_shaped_net(gamma=0.9, base=None):
    """A net as AIRL trains it."""
    base = base or running_net()
    potential = MlpPotential(
        base.observation_space, (32, 32), seed=None, start_at_zero=False, **RUNNING
    )
    return ShapedRewardNet(base, potential, gamma)


def batch(n=5, seed=0, terminated=False):
    """Transitions of `BOX` and `CHOICE`."""
    rng = np.random.default_rng(seed)
    obs, next_obs = rng.normal(size=(2, n, 3)).astype(np.float32)
    return obs, rng.integers(1, 5, n), next_obs, np.full(n, terminated)


def numbered_rows(n=30, seed=0):
    """Transitions of `NUMBERED` and `ACTIONS`."""
    rng = np.random.default_rng(seed)
    ended = rng.random(n) < 0.5
    return rng.integers(5, size=n), rng.integers(3, size=n), rng.integers(5, size=n), ended
