"""PPO for networks so small that rollouts in PyTorch are all overhead: these run in NumPy.

The update, the buffer and every hyperparameter are SB3's. A forward pass of one observation through
two layers of 64 units takes PyTorch and SB3's distribution objects about a millisecond, NumPy a
fiftieth of that.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import FlattenExtractor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv
from torch import nn

from aprl.errors import RunError
from aprl.training.ppo import PPO

Layer = Callable[[np.ndarray], np.ndarray]

_ACTIVATIONS: dict[type[nn.Module], Layer] = {
    nn.Tanh: np.tanh,
    nn.ReLU: lambda values: np.maximum(values, 0),
}


class NumpyActorCritic:
    """Copy of the two networks of an SB3 policy, as they are now.

    Args:
        policy: without parts that `can_copy` does not know.
    """

    def __init__(self, policy: ActorCriticPolicy) -> None:
        self._space = policy.observation_space
        self._actor = [_layer(m) for m in (*policy.mlp_extractor.policy_net, policy.action_net)]
        self._critic = [_layer(m) for m in (*policy.mlp_extractor.value_net, policy.value_net)]
        self._std: np.ndarray | None = None
        if isinstance(policy.action_space, spaces.Box):
            self._std = policy.log_std.detach().exp().numpy()

    @staticmethod
    def can_copy(policy: Any) -> bool:
        """Whether a policy is two plain MLPs for discrete or unsquashed Gaussian actions."""
        return (
            isinstance(policy, ActorCriticPolicy)
            and type(policy.features_extractor) is FlattenExtractor
            and policy.share_features_extractor
            and not policy.use_sde
            and not policy.squash_output
            and isinstance(policy.observation_space, spaces.Box | spaces.Discrete)
            and isinstance(policy.action_space, spaces.Box | spaces.Discrete)
            and all(
                type(module) is nn.Linear or type(module) in _ACTIVATIONS
                for network in (policy.mlp_extractor.policy_net, policy.mlp_extractor.value_net)
                for module in network
            )
        )

    def values(self, observations: np.ndarray) -> np.ndarray:
        """`(n,)` values of a batch of observations."""
        return _through(self._critic, self._features(observations)).ravel()

    def act(
        self, observations: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Draw an action for each observation.

        Returns:
            Actions `(n,)` or `(n, size)`, values `(n,)`, log-probabilities `(n,)`.
        """
        features = self._features(observations)
        outputs = _through(self._actor, features)
        values = _through(self._critic, features).ravel()
        if self._std is not None:
            noise = rng.standard_normal(outputs.shape, dtype=np.float32)
            normaliser = np.log(self._std).sum() + 0.5 * len(self._std) * np.log(2 * np.pi)
            return outputs + noise * self._std, values, -0.5 * (noise**2).sum(axis=1) - normaliser
        log_probs = outputs - outputs.max(axis=1, keepdims=True)
        log_probs -= np.log(np.exp(log_probs).sum(axis=1, keepdims=True))
        actions = (log_probs + rng.gumbel(size=log_probs.shape)).argmax(axis=1)
        return actions, values, np.take_along_axis(log_probs, actions[:, None], axis=1).ravel()

    def _features(self, observations: np.ndarray) -> np.ndarray:
        if isinstance(self._space, spaces.Discrete):
            return np.eye(int(self._space.n), dtype=np.float32)[observations.ravel()]
        return observations.reshape(len(observations), -1).astype(np.float32)


def _layer(module: nn.Module) -> Layer:
    if not isinstance(module, nn.Linear):
        return _ACTIVATIONS[type(module)]
    weights = module.weight.detach().numpy().T.copy()
    bias = module.bias.detach().numpy().copy()
    return lambda values: values @ weights + bias


def _through(layers: list[Layer], values: np.ndarray) -> np.ndarray:
    for layer in layers:
        values = layer(values)
    return values


class SmallPPO(PPO):
    """PPO on the CPU, with rollouts in NumPy where the policy is two plain MLPs.

    Args:
        env: what to learn in.
        seed: of weights and minibatches, and of a generator of its own that draws actions.
        policy_kwargs: of SB3's `MlpPolicy`.
        arguments: others of SB3's `PPO`.
    """

    def __init__(
        self, env: VecEnv, seed: int, policy_kwargs: Mapping[str, Any], **arguments: Any
    ) -> None:
        # Adam in one kernel; the epsilon is SB3's, which it only sets where nothing is given.
        adam = {"optimizer_kwargs": {"fused": True, "eps": 1e-5}}
        kwargs = policy_kwargs if "optimizer_class" in policy_kwargs else {**adam, **policy_kwargs}
        super().__init__(
            "MlpPolicy", env, seed=seed, policy_kwargs=dict(kwargs), device="cpu", **arguments
        )
        self._rng = np.random.default_rng(seed)

    def collect_rollouts(
        self,
        env: VecEnv,
        callback: BaseCallback,
        rollout_buffer: RolloutBuffer,
        n_rollout_steps: int,
    ) -> bool:
        """Collect `n_rollout_steps` steps of every environment; False if a callback stopped it."""
        if not NumpyActorCritic.can_copy(self.policy):
            return super().collect_rollouts(env, callback, rollout_buffer, n_rollout_steps)
        self.policy.set_training_mode(False)
        network, buffer = NumpyActorCritic(self.policy), rollout_buffer
        buffer.reset()
        callback.on_rollout_start()
        space = self.action_space
        for step in range(n_rollout_steps):
            observations = np.asarray(self._last_obs)
            actions, values, log_probs = network.act(observations, self._rng)
            buffer.observations[step] = observations.reshape(buffer.observations[step].shape)
            buffer.actions[step] = actions.reshape(buffer.actions[step].shape)
            buffer.values[step], buffer.log_probs[step] = values, log_probs
            buffer.episode_starts[step] = self._last_episode_starts
            if isinstance(space, spaces.Box):
                actions = np.clip(actions, space.low, space.high)
            new_observations, rewards, dones, infos = env.step(actions)
            self._last_obs, self._last_episode_starts = np.asarray(new_observations), dones
            self.num_timesteps += env.num_envs
            if not callback.on_step():
                return False
            for index in np.flatnonzero(dones):
                if infos[index].get("TimeLimit.truncated"):
                    last = np.asarray(infos[index]["terminal_observation"])
                    rewards[index] += self.gamma * network.values(last[None])[0]
            buffer.rewards[step] = rewards
        buffer.pos, buffer.full = n_rollout_steps, True
        last_values = torch.from_numpy(network.values(np.asarray(self._last_obs)))
        buffer.compute_returns_and_advantage(last_values, np.asarray(self._last_episode_starts))
        callback.on_rollout_end()
        return True

    def train(self) -> None:
        """Update the policy; see SB3.

        Raises:
            RunError: it diverged.
        """
        refused = None
        try:
            super().train()
        except ValueError as error:  # PyTorch's distributions refuse what is not finite
            refused = error
        if not all(bool(p.isfinite().all()) for p in self.policy.parameters()):
            raise RunError(
                f"PPO diverged after {self.num_timesteps} steps: its weights are not finite; lower "
                "its learning_rate or n_epochs"
            ) from refused
        if refused is not None:
            raise refused


class SerialVecEnv(DummyVecEnv):
    """SB3's `DummyVecEnv` without its copies of every info and observation."""

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """See `VecEnv.step_wait`."""
        observations, infos = [], []
        rewards = np.empty(self.num_envs, dtype=np.float32)
        dones = np.empty(self.num_envs, dtype=bool)
        for index, env in enumerate(self.envs):
            observation, rewards[index], terminated, truncated, info = env.step(self.actions[index])
            dones[index] = terminated or truncated
            if dones[index]:
                info = {
                    **info,
                    "terminal_observation": observation,
                    "TimeLimit.truncated": truncated and not terminated,
                }
                observation, _ = env.reset()
            observations.append(observation)
            infos.append(info)
        return np.array(observations), rewards, dones, infos
