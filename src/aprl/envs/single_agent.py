"""Gymnasium's MuJoCo environments as games of one player, for baselines without an opponent."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import mujoco
import numpy as np
from gymnasium.wrappers import TimeLimit

from aprl.envs.base import Observations, Step, VecMultiEnv
from aprl.envs.episodes import EpisodeTracker, require_positive, saved_array, terminal_infos
from aprl.errors import AprlError, ConfigError

SINGLE_AGENT_IDS = (
    "Ant-v5",
    "HalfCheetah-v5",
    "Hopper-v5",
    "Humanoid-v5",
    "InvertedPendulum-v5",
    "Reacher-v5",
    "Swimmer-v5",
    "Walker2d-v5",
)

# What these environments read of the simulation between two steps; positions of bodies lag behind
# qpos by a substep, so that they cannot be computed from it.
_KEPT = (
    *("qpos", "qvel", "act", "ctrl", "qacc_warmstart", "xpos", "xipos", "site_xpos"),
    *("cinert", "cvel", "cfrc_ext", "qfrc_actuator", "subtree_com"),
)


class SingleAgentGame(VecMultiEnv):
    """A batch of one of Gymnasium's MuJoCo environments; its player has nobody against it.

    Rewards are the environment's own, and its one reward term is `reward_env`. Nobody wins.

    Args:
        env_id: one of `SINGLE_AGENT_IDS`.
        num_envs: environments.
        seed: of the starts; environment `i`'s stream does not depend on `num_envs`.
        max_episode_steps: None: the environment's own limit.

    Raises:
        ConfigError: a number below 1.
    """

    def __init__(
        self,
        env_id: str,
        num_envs: int,
        seed: int | np.random.SeedSequence = 0,
        max_episode_steps: int | None = None,
    ) -> None:
        require_positive(num_envs=num_envs)
        if max_episode_steps is not None:
            require_positive(max_episode_steps=max_episode_steps)
        if not isinstance(seed, np.random.SeedSequence):
            seed = np.random.SeedSequence(seed)
        self.num_envs = num_envs
        self._envs = [
            gymnasium.make(env_id, max_episode_steps=max_episode_steps, disable_env_checker=True)
            for _ in range(num_envs)
        ]
        self._seeds = [int(stream.generate_state(1)[0]) for stream in seed.spawn(num_envs)]
        observed = self._envs[0].observation_space
        assert isinstance(observed, gymnasium.spaces.Box)
        self.observation_spaces = (
            gymnasium.spaces.Box(-np.inf, np.inf, observed.shape, np.float32),
        )
        self.action_spaces = (self._envs[0].action_space,)
        self._tracker = EpisodeTracker(1, num_envs)
        self._rewards = np.zeros((1, num_envs))
        self._started = False

    def reset(self) -> Observations:
        """See `VecMultiEnv.reset`."""
        self._tracker.restart()
        self._rewards[:] = 0
        seeds = [None if self._started else seed for seed in self._seeds]
        self._started = True
        obs = [env.reset(seed=s)[0] for env, s in zip(self._envs, seeds, strict=True)]
        return (np.stack(obs).astype(np.float32),)

    def step(self, actions: Sequence[np.ndarray]) -> Step:
        """See `VecMultiEnv.step`.

        Raises:
            AprlError: `reset` was never called.
        """
        if not self._started:
            raise AprlError("step before the first reset; call reset() once after construction")
        obs = np.empty((self.num_envs, *self.observation_spaces[0].shape), np.float32)  # type: ignore[misc]
        terminated, truncated = np.zeros((2, self.num_envs), dtype=bool)
        for i, env in enumerate(self._envs):
            obs[i], self._rewards[0, i], terminated[i], truncated[i], _ = env.step(actions[0][i])
        done = terminated | truncated
        self._tracker.add(self._rewards)
        infos = terminal_infos(
            done=done,
            truncated=truncated & ~terminated,
            observations=(obs,),
            terms=[self.terms(0)],
            winners=np.full(self.num_envs, -1),
            episodes=self._tracker.finish(done),
        )
        if done.any():
            obs = obs.copy()
            for ended in np.flatnonzero(done):
                obs[ended] = self._envs[ended].reset()[0]
        return (obs,), self._rewards.copy(), done, infos

    def terms(self, agent_idx: int) -> dict[str, np.ndarray]:
        """See `VecMultiEnv.terms`."""
        if agent_idx != 0:
            raise ConfigError(f"agent_idx must be 0 in a game of one player, not {agent_idx!r}")
        return {"reward_env": self._rewards[0].copy()}

    def state_dict(self) -> dict[str, Any]:
        """See `VecMultiEnv.state_dict`."""
        return {
            "started": self._started,
            "rewards": self._rewards.copy(),
            "episodes": self._tracker.state_dict(),
            "envs": [_state_of(env) for env in self._envs],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See `VecMultiEnv.load_state_dict`."""
        self._rewards = saved_array(state, "rewards", self._rewards.shape, np.float64)
        self._tracker.load_state_dict(state["episodes"])
        self._started = bool(state["started"])
        for env, saved in zip(self._envs, state["envs"], strict=True):
            _restore(env, saved)

    def close(self) -> None:
        """Close the environments."""
        for env in self._envs:
            env.close()


def _state_of(env: gymnasium.Env) -> dict[str, Any]:
    data: mujoco.MjData = env.unwrapped.data  # type: ignore[attr-defined]
    return {
        "time": float(data.time),
        "arrays": {name: np.array(getattr(data, name)) for name in _KEPT},
        "steps": _time_limit(env)._elapsed_steps,
        "rng": env.unwrapped.np_random.bit_generator.state,
    }


def _restore(env: gymnasium.Env, saved: dict[str, Any]) -> None:
    if _time_limit(env)._elapsed_steps is None:
        env.reset()  # wrappers refuse to step before their first reset
    data: mujoco.MjData = env.unwrapped.data  # type: ignore[attr-defined]
    data.time = saved["time"]
    for name, value in saved["arrays"].items():
        getattr(data, name)[:] = value
    _time_limit(env)._elapsed_steps = saved["steps"]
    env.unwrapped.np_random.bit_generator.state = saved["rng"]


def _time_limit(env: gymnasium.Env) -> TimeLimit:
    while not isinstance(env, TimeLimit):
        assert isinstance(env, gymnasium.Wrapper)
        env = env.env
    return env
