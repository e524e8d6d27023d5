"""PPO for many environments on few cores: Stable-Baselines3's, with a lean rollout.

The update, the buffer and every hyperparameter are SB3's. What differs is how experience is
collected: one torch thread (the physics needs the cores, and a 64-row batch is too small to share),
and, for Gaussian policies, the few tensor operations of a forward pass instead of SB3's
distribution objects, which at 64 environments cost as much as an eighth of the physics.
"""

import contextlib
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import stable_baselines3
import torch
from gymnasium import spaces
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.distributions import DiagGaussianDistribution
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.type_aliases import MaybeCallback
from stable_baselines3.common.vec_env import VecEnv

from aprl.training.incremental import warn_if_schedules_jump


@contextlib.contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Use `count` torch threads inside the block, as many as before after it."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class PPO(stable_baselines3.PPO):
    """`stable_baselines3.PPO` with a faster `collect_rollouts`; same results up to random draws."""

    def _setup_learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        reset_num_timesteps: bool = True,
        *args: Any,
        **kwargs: Any,
    ) -> tuple[int, BaseCallback]:
        if not reset_num_timesteps:
            warn_if_schedules_jump(self, self.num_timesteps + total_timesteps)
        return super()._setup_learn(total_timesteps, callback, reset_num_timesteps, *args, **kwargs)

    def collect_rollouts(
        self,
        env: VecEnv,
        callback: BaseCallback,
        rollout_buffer: RolloutBuffer,
        n_rollout_steps: int,
    ) -> bool:
        """Collect `n_rollout_steps` steps of every environment; False if a callback stopped it."""
        with torch_threads(1):
            if not self._is_plain_gaussian():
                return super().collect_rollouts(env, callback, rollout_buffer, n_rollout_steps)
            return self._collect_gaussian(env, callback, rollout_buffer, n_rollout_steps)

    def _is_plain_gaussian(self) -> bool:
        policy = self.policy
        return (
            isinstance(policy, ActorCriticPolicy)
            and isinstance(policy.action_dist, DiagGaussianDistribution)
            and isinstance(self.observation_space, spaces.Box)
            and len(self.action_space.shape or ()) == 1
            and policy.share_features_extractor
            and self.device.type == "cpu"
        )

    def _collect_gaussian(
        self,
        env: VecEnv,
        callback: BaseCallback,
        buffer: RolloutBuffer,
        n_rollout_steps: int,
    ) -> bool:
        policy = self.policy
        policy.set_training_mode(False)
        buffer.reset()
        callback.on_rollout_start()
        assert isinstance(self.action_space, spaces.Box)
        low, high = self.action_space.low, self.action_space.high
        log_std = policy.log_std.detach()
        std = log_std.exp()
        log_normaliser = float(log_std.sum()) + 0.5 * len(std) * math.log(2 * math.pi)
        for step in range(n_rollout_steps):
            obs, starts = self._last_obs, self._last_episode_starts
            assert isinstance(obs, np.ndarray) and starts is not None
            with torch.inference_mode():
                values, mean = self._values_and_mean(torch.from_numpy(obs))
                noise = torch.randn(mean.shape)
                actions = torch.addcmul(mean, noise, std).numpy()
                log_prob = noise.square_().sum(dim=1).mul_(-0.5).sub_(log_normaliser)
            buffer.observations[step] = obs
            buffer.actions[step] = actions
            buffer.values[step] = values.numpy()
            buffer.log_probs[step] = log_prob.numpy()
            buffer.episode_starts[step] = starts

            new_obs, rewards, dones, infos = env.step(np.clip(actions, low, high))
            self.num_timesteps += env.num_envs
            callback.update_locals(locals())
            if not callback.on_step():
                return False
            if dones.any():
                self._update_info_buffer(infos, dones)
                self._bootstrap_truncated(rewards, dones, infos)
            buffer.rewards[step] = rewards
            assert isinstance(new_obs, np.ndarray)
            self._last_obs, self._last_episode_starts = new_obs, dones
        buffer.pos, buffer.full = n_rollout_steps, True
        with torch.inference_mode():
            values, _ = self._values_and_mean(torch.from_numpy(self._last_obs))
        buffer.compute_returns_and_advantage(last_values=values.clone(), dones=dones)
        callback.update_locals(locals())
        callback.on_rollout_end()
        return True

    def _values_and_mean(self, obs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        policy = self.policy
        features = policy.extract_features(obs)
        latent_pi, latent_vf = policy.mlp_extractor(features)
        return policy.value_net(latent_vf).flatten(), policy.action_net(latent_pi)

    def _bootstrap_truncated(
        self, rewards: np.ndarray, dones: np.ndarray, infos: list[dict]
    ) -> None:
        """Add the value of the state in which a time limit, not the game, ended the episode."""
        cut = [env for env in np.flatnonzero(dones) if infos[env].get("TimeLimit.truncated")]
        if cut:
            last = np.stack([infos[env]["terminal_observation"] for env in cut])
            with torch.inference_mode():
                values, _ = self._values_and_mean(torch.from_numpy(last.astype(np.float32)))
            rewards[cut] += self.gamma * values.numpy()
