"""Stopped, written to disk, read into a new object and continued is as if never stopped."""

import numpy as np
import pytest
import torch
from gymnasium import spaces
from sb3_contrib import QRDQN, TQC, TRPO, RecurrentPPO
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3
from stable_baselines3.common.noise import OrnsteinUhlenbeckActionNoise
from stable_baselines3.common.vec_env import VecEnv

from aprl.errors import ConfigError
from aprl.imitation.environments import GymVecEnv
from aprl.training.checkpoints import load_state, save_state
from aprl.training.incremental import incremental
from aprl.training.learner_state import learner_state, load_learner_state
from aprl.training.random_state import global_random_state, set_global_random_state

NET = {"policy_kwargs": {"net_arch": [8]}}
ROLLOUT = {"n_steps": 16, **NET}
REPLAY = {"learning_starts": 30, "batch_size": 8, "buffer_size": 100, **NET}
NOISE = OrnsteinUhlenbeckActionNoise(np.zeros(1), np.full(1, 0.3))
CASES = {
    "PPO": (PPO, "CartPole-v1", {**ROLLOUT, "batch_size": 16, "n_epochs": 2}),
    "A2C": (A2C, "CartPole-v1", ROLLOUT),
    "TRPO": (TRPO, "CartPole-v1", {**ROLLOUT, "batch_size": 16}),
    "RecurrentPPO": (
        RecurrentPPO,
        "CartPole-v1",
        {
            **ROLLOUT,
            "batch_size": 16,
            "n_epochs": 2,
            "policy_kwargs": {"net_arch": [8], "lstm_hidden_size": 8},
        },
    ),
    "SAC": (SAC, "Pendulum-v1", REPLAY),
    "TD3": (TD3, "Pendulum-v1", {**REPLAY, "action_noise": NOISE}),
    "TQC": (TQC, "Pendulum-v1", REPLAY),
    "DQN": (DQN, "CartPole-v1", {**REPLAY, "exploration_fraction": 0.5}),
    "QR-DQN": (QRDQN, "CartPole-v1", {**REPLAY, "exploration_fraction": 0.5}),
}
TOTAL, HALF = 256, 128


def make(name):
    algorithm, env_name, arguments = CASES[name]
    policy = "MlpLstmPolicy" if algorithm is RecurrentPPO else "MlpPolicy"
    arguments = {k: dict(v) if isinstance(v, dict) else v for k, v in arguments.items()}
    model = algorithm(
        policy,
        GymVecEnv(env_name, 2, seed=5),
        learning_rate=lambda remaining: 1e-2 * remaining,
        seed=3,
        device="cpu",
        **arguments,
    )
    if isinstance(model.action_space, spaces.Box):
        model.action_space.seed(7)
    return model


@pytest.mark.parametrize("name", CASES)
def test_resumed_equals_uninterrupted(tmp_path, name):
    whole = make(name)
    with incremental(whole, TOTAL, log_interval=None) as session:
        session.step(HALF)
        saved = {
            "learner": learner_state(whole),
            "environment": whole.get_env().state_dict(),
            "random": global_random_state(),
        }
        save_state(tmp_path / "state", saved)
        half = {k: v.clone() for k, v in whole.policy.state_dict().items()}
        session.step()

    state = load_state(tmp_path / "state")
    resumed = make(name)
    resumed.get_env().reset()
    resumed.get_env().load_state_dict(state["environment"])
    load_learner_state(resumed, state["learner"])
    set_global_random_state(state["random"])
    with incremental(resumed, TOTAL, log_interval=None, resume=True) as session:
        assert session.num_timesteps == HALF
        session.step()
    ends = whole.policy.state_dict()
    assert all(torch.equal(ends[k], v) for k, v in resumed.policy.state_dict().items())
    assert any(not torch.equal(half[k], v) for k, v in ends.items())
    assert resumed._n_updates == whole._n_updates
    np.testing.assert_array_equal(resumed._last_obs, whole._last_obs)


def test_a_memory_optimised_buffer_is_refused():
    model = DQN(
        "MlpPolicy",
        GymVecEnv("CartPole-v1", 1),
        buffer_size=10,
        optimize_memory_usage=True,
        replay_buffer_kwargs={"handle_timeout_termination": False},
    )
    assert isinstance(model.get_env(), VecEnv)
    with pytest.raises(ConfigError, match="plain replay buffer"):
        learner_state(model)
