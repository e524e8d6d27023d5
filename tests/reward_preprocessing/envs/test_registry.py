"""Environments by name."""

import gymnasium
import numpy as np
import pytest

from aprl.errors import ConfigError
from aprl.reward_preprocessing.configs import ENV_NAMED
from aprl.reward_preprocessing.environments import EnvConfig
from aprl.reward_preprocessing.envs import (
    ENVIRONMENTS,
    canonical_id,
    default_potential,
    tabular_mdp,
    true_reward_net,
)
from aprl.reward_preprocessing.envs.registry import maze_of
from aprl.reward_preprocessing.trainable_potentials import make_potential

NAMED = [name for name, values in ENV_NAMED.items() if "name" in values]


@pytest.mark.parametrize("name", NAMED)
def test_named_environments_run_and_have_a_potential(name):
    config = EnvConfig(**ENV_NAMED[name])
    env = config.make()
    env.action_space.seed(0)
    obs, _ = env.reset(seed=0)
    assert env.observation_space.contains(obs)
    for _ in range(5):
        obs, reward, *_ = env.step(env.action_space.sample())
    assert np.isfinite(reward) and env.observation_space.contains(obs)
    make_potential(default_potential(config.env_id), env.observation_space)


def test_sparse_reacher_pays_for_touching_only():
    env = gymnasium.make("aprl/SparseReacher-v0")
    paid = set()
    for seed in range(30):
        env.reset(seed=seed)
        for _ in range(50):
            obs, reward, _, truncated, _ = env.step(np.zeros(2, np.float32))
            paid.add(reward)
            assert reward == (np.hypot(*obs[-2:]) < 0.05)
        assert truncated
    assert paid <= {0.0, 1.0} and 0.0 in paid


def test_the_cheetahs_position_is_in_its_state():
    env = EnvConfig(**ENV_NAMED["half_cheetah"]).make()
    before, _ = env.reset(seed=0)
    after, _, _, _, info = env.step(env.action_space.sample())
    moved = (after[0] - before[0]) / env.unwrapped.dt
    assert info["x_velocity"] == pytest.approx(moved)


def test_hopper_falls_for_good():
    env = EnvConfig(**ENV_NAMED["hopper"]).make()
    env.action_space.seed(0)
    env.reset(seed=0)
    for _ in range(500):
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            break
    assert terminated and not truncated


def test_older_names():
    for old, new in (
        ("reward_preprocessing/EmptyMaze10-v0", "aprl/EmptyMaze10-v0"),
        ("imitation/KeyMaze6-v0", "aprl/KeyMaze6-v0"),
        ("seals/MountainCar-v0", "aprl/MountainCar-v0"),
    ):
        with pytest.warns(DeprecationWarning, match=new):
            assert canonical_id(old) == new
    with pytest.raises(ConfigError, match="aprl/EmptyMaze10-v0"):
        canonical_id("aprl/EmptyMaze1-v0")
    assert canonical_id("CartPole-v1") == "CartPole-v1"
    assert default_potential("CartPole-v1") == "mlp"


def test_exact_dynamics_only_of_finite_environments():
    assert tabular_mdp(gymnasium.make("aprl/EmptyMaze4-v0")).num_states == 16
    assert tabular_mdp(gymnasium.make("MountainCar-v0")) is None
    assert maze_of(gymnasium.make("aprl/KeyMaze6-v0")).key


def test_true_rewards():
    net = true_reward_net("aprl/KeyMaze6-v0", {"shaping": "dense", "random_start": False})
    assert net.observation_space.n == 72
    with pytest.raises(ConfigError, match="not known as a net"):
        true_reward_net("Hopper-v5", {})
    with pytest.raises(ConfigError, match="do not fit"):
        true_reward_net("aprl/KeyMaze6-v0", {"colour": "red"})
    assert {s.env_id for s in ENVIRONMENTS.values()} == set(ENVIRONMENTS)
