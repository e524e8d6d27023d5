"""Reinforcement learning on an environment's own reward, or on a reward net in its place."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecEnvWrapper
from stable_baselines3.common.vec_env.base_vec_env import VecEnvStepReturn

from aprl.policies.network import MlpPolicy
from aprl.reward_preprocessing.rollouts import EpsilonPolicy, MakeEnv, play_episodes
from aprl.rewards import RewardNet
from aprl.stats import Z_95
from aprl.training.learner import make_ppo, policy_of, ppo_arguments
from aprl.training.normalize import VecNormalize
from aprl.training.ppo import PPO


class RewardNetVecEnv(VecEnvWrapper):
    """Pays what a reward net says, standardised, instead of the environment's own reward.

    Attributes:
        net: the reward net; may be trained meanwhile.
        mean: subtracted from its rewards; where no episode terminates this changes no policy.
        std: what its rewards are divided by.
    """

    def __init__(self, venv: VecEnv, net: RewardNet) -> None:
        super().__init__(venv)
        self.net, self.mean, self.std = net, 0.0, 1.0
        self._states = np.zeros(0)
        self._actions = np.zeros(0)

    def reset(self) -> Any:
        """See `VecEnv.reset`."""
        states = self.venv.reset()
        assert isinstance(states, np.ndarray)
        self._states = states.copy()
        return states

    def step_async(self, actions: np.ndarray) -> None:
        """See `VecEnv.step_async`."""
        self._actions = actions
        super().step_async(actions)

    def step_wait(self) -> VecEnvStepReturn:
        """See `VecEnv.step_wait`."""
        states, _, dones, infos = self.venv.step_wait()
        assert isinstance(states, np.ndarray)
        reached = states.copy()
        for i in np.flatnonzero(dones):
            reached[i] = infos[i]["terminal_observation"]
        truncated = np.array([info.get("TimeLimit.truncated", False) for info in infos])
        rewards = self.net.predict(self._states, self._actions, reached, dones & ~truncated)
        self._states = states.copy()
        return states, ((rewards - self.mean) / self.std).astype(np.float32), dones, infos


@dataclass
class Learner:
    """PPO on an environment.

    Attributes:
        ppo: the algorithm.
        normaliser: of observations and rewards; None where they are left as they are.
        reward_env: where a reward net pays; None if the environment does.
    """

    ppo: PPO
    normaliser: VecNormalize | None
    reward_env: RewardNetVecEnv | None

    def policy(self) -> MlpPolicy:
        """A copy of the present policy, with its normaliser inside."""
        return policy_of(self.ppo, self.normaliser)


def make_learner(
    make_env: MakeEnv,
    *,
    n_envs: int,
    batch_size: int,
    learning_rate: float,
    rl_args: dict[str, Any],
    normalize: bool,
    seed: np.random.SeedSequence,
    reward_net: RewardNet | None = None,
) -> Learner:
    """Build PPO and its environments.

    Args:
        make_env: builds one environment.
        n_envs: environments stepped side by side.
        batch_size: environment steps per update, over all environments.
        learning_rate: constant.
        rl_args: see `aprl.training.learner.ppo_arguments`.
        normalize: running normalisation of vector observations, and of rewards.
        seed: of environments and learner.
        reward_net: pays instead of the environment.

    Raises:
        ConfigError: wrong arguments.
    """
    arguments = ppo_arguments(rl_args, batch_size, n_envs)
    env_seed, learner_seed = (int(s.generate_state(1)[0] % 2**31) for s in seed.spawn(2))
    venv: VecEnv = DummyVecEnv([lambda: _monitored(make_env())] * n_envs)
    venv.seed(env_seed)
    reward_env = None
    if reward_net is not None:
        venv = reward_env = RewardNetVecEnv(venv, reward_net)
    normaliser = None
    if normalize:
        gamma = arguments.get("gamma", 0.99)
        venv = normaliser = VecNormalize(venv, norm_obs=True, norm_reward=True, gamma=gamma)
    ppo = make_ppo(venv, arguments, learning_rate, learner_seed)
    return Learner(ppo, normaliser, reward_env)


def _monitored(env: gymnasium.Env) -> gymnasium.Env:
    return Monitor(env)


class OnSteps(BaseCallback):
    """Tells how many steps have been made and the mean return of the newest episodes."""

    def __init__(self, report: Callable[[int, str], None]) -> None:
        super().__init__()
        self._report = report

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        episodes = self.model.ep_info_buffer
        mean = np.mean([e["r"] for e in episodes]) if episodes else math.nan
        self._report(self.model.num_timesteps, f"return {mean:.2f}")


@dataclass(frozen=True)
class MeanReturn:
    """Undiscounted returns of a policy.

    Attributes:
        mean: over the episodes.
        half_width: of its 95 % interval, by the normal approximation; infinite for one episode.
        episodes: number of them.
    """

    mean: float
    half_width: float
    episodes: int

    def __str__(self) -> str:
        return f"{self.mean:.3f} +- {self.half_width:.3f} (95 %, {self.episodes} episodes)"


def evaluate_policy(
    policy: MlpPolicy, make_env: MakeEnv, episodes: int, seed: np.random.SeedSequence
) -> MeanReturn:
    """Play whole episodes one after the other, deterministically, on the environment's reward."""
    env = make_env()
    coin_seed, env_seed = seed.spawn(2)
    act = EpsilonPolicy(policy, env.action_space, 0.0, coin_seed)
    returns: list[float] = []
    child = env_seed
    while len(returns) < episodes:
        (child,) = child.spawn(1)
        returns += [float(t.rewards.sum()) for t in play_episodes([env], act, 1, [child])]
    env.close()
    spread = np.std(returns, ddof=1) if len(returns) > 1 else math.inf
    half_width = float(Z_95 * spread / math.sqrt(len(returns)))
    return MeanReturn(float(np.mean(returns)), half_width, len(returns))
