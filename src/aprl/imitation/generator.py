"""Ties between a learner and a learned reward: recording, log-probabilities, relabelling."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3 import SAC
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import ReplayBuffer, RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.distributions import SquashedDiagGaussianDistribution
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.type_aliases import ReplayBufferSamples
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper, VecNormalize
from stable_baselines3.common.vec_env.base_vec_env import VecEnvStepReturn

from aprl.errors import ConfigError
from aprl.imitation.reward import LearnedReward, LogProb
from aprl.imitation.trajectories import Transitions


class TransitionRecorder(VecEnvWrapper):
    """Keeps the transitions of a rollout, and hides the true reward from the learner.

    The learner sees reward 0 until the learned one is put in its place; returns of the true reward
    stay in the infos' `episode`. Normalisers belong around this wrapper, not inside it.

    Attributes:
        episode_lengths: of the episodes that ended since the last `take`.
    """

    def __init__(self, venv: VecEnv) -> None:
        super().__init__(venv)
        self._obs: np.ndarray | None = None
        self._parts: list[tuple[np.ndarray, ...]] = []
        self._lengths = np.zeros(venv.num_envs, dtype=np.int64)
        self.episode_lengths: list[int] = []

    @property
    def steps(self) -> int:
        """Environment steps recorded since the last `take`."""
        return len(self._parts) * self.num_envs

    def reset(self) -> np.ndarray:
        """Start new episodes; what was recorded stays."""
        obs = self.venv.reset()
        assert isinstance(obs, np.ndarray)
        self._obs = obs
        self._lengths[:] = 0
        return obs

    def step_async(self, actions: np.ndarray) -> None:
        """Take the learner's actions."""
        self._actions = actions.copy()
        self.venv.step_async(actions)

    def step_wait(self) -> VecEnvStepReturn:
        """Play the step; its reward is 0."""
        new_obs, _, dones, infos = self.venv.step_wait()
        assert isinstance(new_obs, np.ndarray) and self._obs is not None
        next_obs, truncated = new_obs.copy(), np.zeros(self.num_envs, dtype=bool)
        self._lengths += 1
        for env in np.flatnonzero(dones):
            next_obs[env] = infos[env]["terminal_observation"]
            truncated[env] = infos[env].get("TimeLimit.truncated", False)
        self.episode_lengths += self._lengths[dones].tolist()
        self._lengths[dones] = 0
        self._parts.append((self._obs, self._actions, next_obs, dones & ~truncated, truncated))
        self._obs = new_obs.copy()
        return new_obs, np.zeros(self.num_envs, np.float32), dones, infos

    def take(self) -> Transitions:
        """What was recorded since the last call, at least one step.

        Row `t * num_envs + i` is step `t` of environment `i`.
        """
        columns = [np.concatenate(parts) for parts in zip(*self._parts, strict=True)]
        self.discard()
        return Transitions(*columns)

    def discard(self) -> None:
        """Forget what was recorded since the last `take`."""
        self._parts, self.episode_lengths = [], []

    def state_dict(self) -> dict[str, Any]:
        """Valid when nothing is recorded, after `take`."""
        obs = None if self._obs is None else self._obs.copy()
        return {"obs": obs, "lengths": self._lengths.copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self._obs, self._lengths = state["obs"], state["lengths"].copy()


def find_recorder(generator: BaseAlgorithm) -> TransitionRecorder:
    """The recorder in the generator's environment.

    Raises:
        ConfigError: there is none, or a normaliser inside it, or one around an off-policy learner.
    """
    venv = generator.get_env()
    while isinstance(venv, VecEnvWrapper) and not isinstance(venv, TransitionRecorder):
        if isinstance(venv, VecNormalize) and isinstance(generator, OffPolicyAlgorithm):
            raise ConfigError(
                "an off-policy generator must see raw observations; remove VecNormalize"
            )
        venv = venv.venv
    if not isinstance(venv, TransitionRecorder):
        raise ConfigError("make the generator on TransitionRecorder(venv), which was not found")
    inner = venv.venv
    while isinstance(inner, VecEnvWrapper):
        if isinstance(inner, VecNormalize):
            raise ConfigError("put VecNormalize around TransitionRecorder, not inside it")
        inner = inner.venv
    return venv


def log_prob_of(generator: BaseAlgorithm) -> LogProb:
    """The generator's log pi(a | s) as a function of raw observations and actions.

    Up to a constant, for SAC: the density is that of actions scaled to [-1, 1].

    Raises:
        ConfigError: the generator's policy has no density that is known here.
    """
    policy = generator.policy
    normaliser = generator.get_vec_normalize_env()

    def observed(obs: np.ndarray) -> torch.Tensor:
        seen = obs if normaliser is None else normaliser.normalize_obs(obs)
        tensor, _ = policy.obs_to_tensor(np.asarray(seen))
        assert isinstance(tensor, torch.Tensor)
        return tensor

    if type(policy).__name__.startswith(("Recurrent", "Maskable")):
        raise ConfigError(f"AIRL needs log pi(a | s), which {type(policy).__name__} has not alone")
    if isinstance(policy, ActorCriticPolicy):

        def actor_critic(obs: np.ndarray, actions: np.ndarray) -> torch.Tensor:
            distribution = policy.get_distribution(observed(obs))
            return distribution.log_prob(torch.as_tensor(np.array(actions)))

        return actor_critic
    if isinstance(generator, SAC):
        actor = generator.actor

        def squashed(obs: np.ndarray, actions: np.ndarray) -> torch.Tensor:
            scaled = np.clip(policy.scale_action(actions), -1 + 1e-6, 1 - 1e-6)
            mean, log_std, _ = actor.get_action_dist_params(observed(obs))
            gaussian = SquashedDiagGaussianDistribution(mean.shape[1])
            return gaussian.proba_distribution(mean, log_std).log_prob(torch.as_tensor(scaled))

        return squashed
    raise ConfigError(
        f"AIRL needs log pi(a | s); {type(generator).__name__} has none that is known here: use "
        "PPO, A2C, TRPO or SAC"
    )


class RelabellingReplayBuffer(ReplayBuffer):
    """A replay buffer whose rewards are the present learned ones, computed when sampled."""

    learned_reward: Callable[[Transitions], np.ndarray]
    unscale: Callable[[np.ndarray], np.ndarray]

    def _get_samples(
        self, batch_inds: np.ndarray, env: VecNormalize | None = None
    ) -> ReplayBufferSamples:
        samples = super()._get_samples(batch_inds, env)
        obs, next_obs = (x.numpy() for x in (samples.observations, samples.next_observations))
        terminated = samples.dones.numpy().ravel() > 0  # time limits are not in it
        transitions = Transitions(
            obs=obs,
            actions=self.unscale(samples.actions.numpy()),
            next_obs=next_obs,
            terminated=terminated,
            truncated=np.zeros(len(obs), dtype=bool),
        )
        rewards = torch.from_numpy(self.learned_reward(transitions)[:, None])
        return samples._replace(rewards=rewards)


def relabel_replay(generator: OffPolicyAlgorithm, learned_reward: LearnedReward) -> None:
    """Make the generator learn on the learned reward of what it replays.

    Raises:
        ConfigError: a replay buffer of another kind than the plain one, or one in use.
    """
    old = generator.replay_buffer
    if type(old) not in (ReplayBuffer, RelabellingReplayBuffer):
        raise ConfigError(f"rewards in a {type(old).__name__} cannot be learned ones")
    assert old is not None
    if old.full or old.pos > 0:
        raise ConfigError("the generator's replay buffer holds rewards already; make a new one")
    buffer = RelabellingReplayBuffer(
        generator.buffer_size,
        generator.observation_space,
        generator.action_space,
        device=generator.device,
        n_envs=generator.n_envs,
        handle_timeout_termination=True,
        **generator.replay_buffer_kwargs,
    )
    buffer.learned_reward = learned_reward
    box = isinstance(generator.action_space, spaces.Box)
    buffer.unscale = generator.policy.unscale_action if box else np.ravel
    generator.replay_buffer = buffer


def relabel_rollout(
    generator: OnPolicyAlgorithm, callback: BaseCallback, rewards: np.ndarray
) -> None:
    """Put learned rewards into the rollout that has just ended, and recompute its advantages.

    Args:
        generator: its buffer holds nothing but the values that stand in for what time limits cut.
        callback: whose `locals` are those of the end of the rollout.
        rewards: `(n_steps * num_envs,)`, in the order of `TransitionRecorder.take`.
    """
    buffer = generator.rollout_buffer
    assert isinstance(buffer, RolloutBuffer)
    buffer.rewards += rewards.reshape(buffer.rewards.shape)
    last_values = torch.as_tensor(callback.locals["values"])
    buffer.compute_returns_and_advantage(last_values.clone(), callback.locals["dones"])
