"""Recording episodes: from a single agent's environment, or from one player of a game."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from aprl.envs.base import Observations
from aprl.errors import ConfigError
from aprl.imitation.trajectories import Trajectory
from aprl.policies.base import Policy
from aprl.training.embedding import PolicyPlayer


class EpisodeRecorder:
    """Collects the steps of a batch of environments into finished episodes.

    Args:
        num_envs: environments in the batch.

    Attributes:
        finished: episodes in the order in which they ended.
    """

    def __init__(self, num_envs: int) -> None:
        self.finished: list[Trajectory] = []
        self._steps: list[list[tuple[np.ndarray, np.ndarray, float]]] = [
            [] for _ in range(num_envs)
        ]

    def add(
        self,
        obs: np.ndarray,
        actions: np.ndarray,
        rewards: np.ndarray,
        dones: np.ndarray,
        infos: Sequence[dict[Any, Any]],
        keep: np.ndarray | None = None,
    ) -> None:
        """Take one step of every environment.

        Args:
            obs: `(num_envs, ...)`, before the actions.
            actions: `(num_envs, ...)`.
            rewards: `(num_envs,)`.
            dones: `(num_envs,)` bool.
            infos: `terminal_observation` and `TimeLimit.truncated` where an episode ended.
            keep: `(num_envs,)` bool, environments that are recorded; None: all.
        """
        for env, steps in enumerate(self._steps):
            if keep is not None and not keep[env]:
                continue
            steps.append((obs[env].copy(), actions[env].copy(), float(rewards[env])))
            if dones[env]:
                self._finish(env, infos[env])

    def _finish(self, env: int, info: dict[Any, Any]) -> None:
        obs, actions, rewards = zip(*self._steps[env], strict=True)
        self._steps[env] = []
        truncated = bool(info.get("TimeLimit.truncated", False))
        last = np.asarray(info["terminal_observation"], dtype=obs[0].dtype)
        self.finished.append(
            Trajectory(
                obs=np.stack([*obs, last]),
                actions=np.stack(actions),
                rewards=np.array(rewards),
                terminated=not truncated,
                truncated=truncated,
            )
        )


class GameRecorder:
    """Records one player of a game while `aprl.scoring.play_games` plays it.

    Args:
        num_envs: environments in the batch.
        agent_idx: the player's index in the game.
    """

    def __init__(self, num_envs: int, agent_idx: int) -> None:
        self.agent_idx = agent_idx
        self._episodes = EpisodeRecorder(num_envs)

    @property
    def finished(self) -> list[Trajectory]:
        """Episodes in the order in which they ended."""
        return self._episodes.finished

    def __call__(
        self,
        obs: Observations,
        actions: Sequence[np.ndarray],
        rewards: np.ndarray,
        dones: np.ndarray,
        infos: Sequence[dict[Any, Any]],
        keep: np.ndarray,
    ) -> None:
        """Take one step of the game; see `aprl.scoring.play_games`."""
        own = [
            {**info, "terminal_observation": info["terminal_observation"][self.agent_idx]}
            if done
            else {}
            for info, done in zip(infos, dones, strict=True)
        ]
        index = self.agent_idx
        self._episodes.add(obs[index], actions[index], rewards[index], dones, own, keep)


def collect_trajectories(
    venv: VecEnv,
    policy: Policy,
    episodes: int,
    deterministic: bool = False,
    on_progress: Callable[[int], None] | None = None,
) -> list[Trajectory]:
    """Let a policy play whole episodes.

    Each environment plays its fixed share, so that short episodes are not recorded more often than
    long ones.

    Args:
        venv: it is reset.
        policy: what plays.
        episodes: how many, counted exactly.
        deterministic: play modes instead of samples.
        on_progress: told the number of finished episodes after each step.

    Raises:
        ConfigError: fewer than 1 episode.
    """
    if episodes < 1:
        raise ConfigError(f"episodes must be at least 1, got {episodes}")
    player = PolicyPlayer(policy, venv.num_envs, deterministic)
    recorder = EpisodeRecorder(venv.num_envs)
    left = np.full(venv.num_envs, episodes // venv.num_envs)
    left[: episodes % venv.num_envs] += 1
    obs = venv.reset()
    assert isinstance(obs, np.ndarray)
    while left.any():
        actions = player.act(obs)
        new_obs, rewards, dones, infos = venv.step(actions)
        recorder.add(obs, actions, rewards, dones, infos, keep=left > 0)
        player.observe_ends(dones)
        left[dones & (left > 0)] -= 1
        assert isinstance(new_obs, np.ndarray)
        obs = new_obs.copy()  # environments may write into what they returned
        if on_progress is not None:
            on_progress(len(recorder.finished))
    return recorder.finished
