"""Gymnasium environments in a batch: fixed horizons, and a state that can be saved and restored."""

import copy
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvStepReturn

from aprl.errors import ConfigError, unknown_name
from aprl.policies.spaces import describe

_PLAIN = (bool, int, float, str, type(None), np.ndarray, np.generic)


class GymVecEnv(VecEnv):
    """Copies of one Gymnasium environment, stepped in turn.

    Infos are empty except where an episode ended: there they hold `terminal_observation`,
    `TimeLimit.truncated` and `episode` = {`r` return, `l` length in steps}, as SB3 expects.

    Args:
        env_name: Gymnasium id, such as `CartPole-v1`; spaces must be Box or Discrete.
        num_envs: copies.
        seed: environment `i`'s draws do not depend on `num_envs`.
        horizon: steps of every episode, whose terminations are ignored; learned rewards must not
            be able to tell the expert by the length of its episodes. None: as the id says.
        **options: of the environment's constructor.

    Raises:
        ConfigError: an id that is unknown or cannot be made, other spaces, sizes below 1.
    """

    def __init__(
        self,
        env_name: str,
        num_envs: int,
        seed: int | np.random.SeedSequence = 0,
        horizon: int | None = None,
        **options: Any,
    ) -> None:
        for name, value in (("num_envs", num_envs), ("horizon", horizon)):
            if value is not None and value < 1:
                raise ConfigError(f"{name} must be at least 1, got {value}")
        if not isinstance(seed, np.random.SeedSequence):
            seed = np.random.SeedSequence(seed)
        check_gym_id(env_name)
        try:
            self.envs = [gym.make(env_name, **options).unwrapped for _ in range(num_envs)]
        except (gym.error.Error, ImportError, TypeError) as error:
            raise ConfigError(f"cannot make {env_name}: {error}") from None
        first = self.envs[0]
        for space in (first.observation_space, first.action_space):
            if not isinstance(space, spaces.Box | spaces.Discrete):
                raise ConfigError(f"{env_name} has the space {describe(space)}, not Box, Discrete")
        self.env_name, self.horizon = env_name, horizon
        self._limit = horizon or gym.spec(env_name).max_episode_steps
        self.render_mode = None
        super().__init__(num_envs, _in_float32(first.observation_space), first.action_space)
        self._pending_seeds: list[int | None] = [
            int(child.generate_state(1)[0]) for child in seed.spawn(num_envs)
        ]
        self._returns = np.zeros(num_envs)
        self._lengths = np.zeros(num_envs, dtype=np.int64)

    def reset(self) -> np.ndarray:
        """Start new episodes; observations `(num_envs, ...)`, float32 or int64."""
        self._returns[:] = 0
        self._lengths[:] = 0
        return self._stack([self._start(env) for env in range(self.num_envs)])

    def _start(self, index: int) -> np.ndarray:
        obs, _ = self.envs[index].reset(seed=self._pending_seeds[index])
        self._pending_seeds[index] = None
        return obs

    def _stack(self, rows: list[np.ndarray]) -> np.ndarray:
        return np.array(rows, dtype=self.observation_space.dtype)

    def step_async(self, actions: np.ndarray) -> None:
        """Take actions `(num_envs, ...)`."""
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        """Play the step."""
        rows = []
        rewards, dones = np.zeros(self.num_envs, np.float32), np.zeros(self.num_envs, dtype=bool)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        self._lengths += 1
        with warnings.catch_warnings():
            if self.horizon is not None:  # some environments warn when stepped past a termination
                warnings.filterwarnings("ignore", message=".*already returned terminated")
            for i, env in enumerate(self.envs):
                obs, reward, terminated, truncated, _ = env.step(self._actions[i])
                rewards[i] = reward
                self._returns[i] += float(reward)
                if self.horizon is not None:
                    terminated = truncated = False
                truncated |= self._limit is not None and bool(self._lengths[i] >= self._limit)
                if terminated or truncated:
                    dones[i] = True
                    infos[i] = {
                        "terminal_observation": self._stack([obs])[0],
                        "TimeLimit.truncated": not terminated,
                        "episode": {"r": float(self._returns[i]), "l": int(self._lengths[i])},
                    }
                    self._returns[i] = self._lengths[i] = 0
                    obs = self._start(i)
                rows.append(obs)
        return self._stack(rows), rewards, dones, infos

    def state_dict(self) -> dict[str, Any]:
        """Physics, random generators and episodes in progress of every copy."""
        return {
            "envs": [_env_state(env) for env in self.envs],
            "pending_seeds": list(self._pending_seeds),
            "returns": self._returns.copy(),
            "lengths": self._lengths.copy(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned, for as many copies of the same environment.

        Raises:
            ConfigError: another number of copies.
        """
        if len(state["envs"]) != self.num_envs:
            raise ConfigError(f"saved with {len(state['envs'])} environments, not {self.num_envs}")
        for env, saved in zip(self.envs, state["envs"], strict=True):
            _load_env_state(env, saved)
        self._pending_seeds = list(state["pending_seeds"])
        self._returns, self._lengths = state["returns"].copy(), state["lengths"].copy()

    def close(self) -> None:
        """Close every copy."""
        for env in self.envs:
            env.close()

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """An attribute of each chosen copy."""
        return [getattr(self.envs[i], attr_name) for i in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute of each chosen copy."""
        for i in self._get_indices(indices):
            setattr(self.envs[i], attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **kwargs: Any
    ) -> list[Any]:
        """Call a method of each chosen copy."""
        chosen = [self.envs[i] for i in self._get_indices(indices)]
        return [getattr(env, method_name)(*method_args, **kwargs) for env in chosen]

    def env_is_wrapped(self, wrapper_class: type, indices: VecEnvIndices = None) -> list[bool]:
        """True for SB3's Monitor, whose reports this class makes itself."""
        return [wrapper_class is Monitor] * len(list(self._get_indices(indices)))


def check_gym_id(env_name: str) -> None:
    """Check that Gymnasium knows an environment.

    Raises:
        ConfigError: it does not; the message has the nearest names.
    """
    try:
        gym.spec(env_name)
    except gym.error.Error:
        raise unknown_name("Gymnasium environment", env_name, gym.registry) from None


def _in_float32(space: spaces.Space) -> spaces.Space:
    if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating):
        return spaces.Box(
            space.low.astype(np.float32), space.high.astype(np.float32), space.shape, np.float32
        )
    return space


def _env_state(env: Any) -> dict[str, Any]:
    """Attributes that are numbers, arrays or text; the random generator; MuJoCo's state."""
    state: dict[str, Any] = {
        "attributes": {
            name: copy.copy(value) for name, value in vars(env).items() if _is_plain(value)
        },
        "rng": env.np_random.bit_generator.state,
    }
    if _has_mujoco_state(env):
        import mujoco

        kind = mujoco.mjtState.mjSTATE_INTEGRATION
        physics = np.empty(mujoco.mj_stateSize(env.model, kind))
        mujoco.mj_getState(env.model, env.data, physics, kind)
        state["physics"] = physics
    return state


def _load_env_state(env: Any, state: dict[str, Any]) -> None:
    for name, value in state["attributes"].items():
        kind = type(getattr(env, name, None))
        setattr(env, name, tuple(value) if kind is tuple else copy.copy(value))
    env.np_random.bit_generator.state = state["rng"]
    if "physics" in state:
        import mujoco

        kind = mujoco.mjtState.mjSTATE_INTEGRATION
        mujoco.mj_setState(env.model, env.data, state["physics"], kind)


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(_is_plain(part) for part in value)
    return isinstance(value, _PLAIN)


def _has_mujoco_state(env: Any) -> bool:
    return hasattr(env, "data") and hasattr(env, "model") and hasattr(env.data, "qpos")
