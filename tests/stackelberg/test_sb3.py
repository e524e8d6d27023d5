"""What is shared by everything that SB3 trains."""

import random

import numpy as np
import pytest
import torch

from aprl.errors import ConfigError
from aprl.stackelberg.envs import FiniteMDPEnv
from aprl.stackelberg.sb3 import AfterUpdate, isolated_random_state, make_ppo, state_modes
from aprl.stackelberg.worlds import make_world


def test_global_generators_are_given_back():
    draws = []
    for inside in (False, True):
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002
        torch.manual_seed(1)
        if inside:
            with isolated_random_state():
                random.seed(5)
                np.random.seed(5)  # noqa: NPY002
                torch.manual_seed(5)
        draws.append((random.random(), np.random.random(), torch.rand(1).item()))  # noqa: NPY002
    assert draws[0] == draws[1]


def test_callback_comes_before_the_first_rollout_and_after_each_update():
    calls = []
    env = FiniteMDPEnv(make_world("trap"))
    with isolated_random_state():
        learner = make_ppo(env, np.random.SeedSequence(0), {"n_steps": 8})
        learner.learn(24, AfterUpdate(lambda: calls.append(learner.num_timesteps)))
        modes = state_modes(learner, 3)
    assert calls == [0, 8, 16, 24]
    assert modes.shape == (3,) and modes.dtype == np.int64


def test_refused_arguments_are_named():
    env = FiniteMDPEnv(make_world("trap"))
    with pytest.raises(ConfigError, match="n_stepz"):
        make_ppo(env, np.random.SeedSequence(0), {"n_stepz": 8})
