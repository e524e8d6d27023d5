"""Small generators and demonstrations on CartPole and Pendulum."""

import numpy as np
import torch
from stable_baselines3 import PPO, SAC

from aprl.imitation.demonstrations import Demonstrations
from aprl.imitation.environments import GymVecEnv
from aprl.imitation.generator import TransitionRecorder
from aprl.imitation.rollouts import collect_trajectories
from aprl.imitation.trajectories import Transitions
from aprl.policies.base import SeededPolicy
from aprl.training.random_state import PrivateRandomState

HORIZON = 20


class LeaningPolicy(SeededPolicy):
    """Keeps the pole up by pushing to where it leans; a competent expert on CartPole."""

    def predict(self, obs, state=None, episode_start=None, deterministic=False):
        return (obs[:, 2] + 0.5 * obs[:, 3] > 0).astype(np.int64), None


class SwingPolicy(SeededPolicy):
    """Pendulum: torque along the velocity, with a little noise."""

    def predict(self, obs, state=None, episode_start=None, deterministic=False):
        noise = 0.1 * self.rng.standard_normal((len(obs), 1))
        return np.clip(2 * np.sign(obs[:, 2:]) + noise, -2, 2).astype(np.float32), None


def demonstrations(env_name="CartPole-v1", episodes=4, horizon=HORIZON):
    venv = GymVecEnv(env_name, 2, seed=50, horizon=horizon)
    kind = LeaningPolicy if env_name == "CartPole-v1" else SwingPolicy
    policy = kind(venv.observation_space, venv.action_space)
    return Demonstrations(
        tuple(collect_trajectories(venv, policy, episodes)),
        venv.observation_space,
        venv.action_space,
        {"env_name": env_name},
    )


def linear(remaining):
    return 1e-2 * remaining


def ppo(env_name="CartPole-v1", seed=0, horizon=HORIZON, learning_rate=linear, **arguments):
    with PrivateRandomState(seed).lent():
        return PPO(
            "MlpPolicy",
            TransitionRecorder(GymVecEnv(env_name, 2, seed=seed, horizon=horizon)),
            learning_rate=learning_rate,
            seed=seed,
            device="cpu",
            **{"n_steps": 20, "batch_size": 20, "n_epochs": 2, **arguments},
        )


def sac(seed=0, horizon=HORIZON, **arguments):
    with PrivateRandomState(seed).lent():
        model = SAC(
            "MlpPolicy",
            TransitionRecorder(GymVecEnv("Pendulum-v1", 2, seed=seed, horizon=horizon)),
            learning_rate=linear,
            seed=seed,
            device="cpu",
            **{
                "learning_starts": 20,
                "batch_size": 16,
                "buffer_size": 1000,
                "policy_kwargs": {"net_arch": [8]},
                **arguments,
            },
        )
        model.action_space.seed(seed)
        return model


def transitions(n=6, seed=0, terminated=False):
    """Random transitions of CartPole's spaces."""
    rng = np.random.default_rng(seed)
    obs, next_obs = rng.normal(size=(2, n, 4)).astype(np.float32)
    ends = np.full(n, terminated)
    return Transitions(obs, rng.integers(0, 2, n), next_obs, ends, np.zeros(n, dtype=bool))


def weights(module):
    return {name: value.clone() for name, value in module.state_dict().items()}


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)
