"""Building an environment from its config: options, wrappers, normalised observations."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import TransformObservation

from aprl.configs.checks import require_at_least
from aprl.errors import AprlError, ConfigError, RunError, first_line
from aprl.files import read_json
from aprl.reward_preprocessing.envs import canonical_id


@dataclass
class EnvConfig:
    """Which environment, as in the `env` entries of a command."""

    name: str | None = None  # Gymnasium id, such as aprl/EmptyMaze10-v0
    options: dict[str, Any] = field(default_factory=dict)  # passed to the environment
    wrappers: list[str] = field(default_factory=list)  # dotted class names, the inner one first
    n_envs: int = 1  # environments stepped side by side
    normalize: bool = False  # standardise observations by the statistics in stats_path
    stats_path: str | None = None  # JSON with `mean` and `std`, one number per component

    @property
    def env_id(self) -> str:
        """The environment's id.

        Raises:
            ConfigError: none is named, or it is unknown.
        """
        if self.name is None:
            raise ConfigError(
                "no environment: name one, as in `with env.empty_maze_10` or env.name=..."
            )
        return canonical_id(self.name)

    def check(self) -> None:
        """Refuse what cannot work, before any environment is built.

        Raises:
            ConfigError: a wrong value.
        """
        _ = self.env_id
        require_at_least("env.n_envs", self.n_envs, 1)
        for wrapper in self.wrappers:
            _wrapper_class(wrapper)
        if self.normalize and self.stats_path is None:
            raise ConfigError(
                "env.normalize=True needs env.stats_path, a JSON with mean and std of the "
                "observations"
            )

    def make(self) -> gymnasium.Env:
        """Build one environment.

        Raises:
            ConfigError: unknown name, or options that the environment refuses.
            RunError: the statistics cannot be read or do not fit.
        """
        self.check()
        try:
            env = gymnasium.make(self.env_id, **self.options)
        except AprlError:
            raise
        except (
            ImportError,
            TypeError,
            ValueError,
            AssertionError,
            gymnasium.error.Error,
        ) as error:
            reason = first_line(error)
            raise ConfigError(
                f"{self.env_id} cannot be built with options {self.options}: {reason}"
            ) from None
        for wrapper in self.wrappers:
            env = _wrapped(env, wrapper)
        if self.normalize:
            assert self.stats_path is not None
            env = _standardised(env, self.stats_path)
        return env


def _wrapper_class(name: str) -> Callable[[gymnasium.Env], gymnasium.Env]:
    module, _, attribute = name.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"env.wrappers: cannot import {name!r} ({error})") from None
    if not (isinstance(found, type) and issubclass(found, gymnasium.Wrapper)):
        raise ConfigError(f"env.wrappers: {name} is not a gymnasium.Wrapper")
    return found


def _wrapped(env: gymnasium.Env, name: str) -> gymnasium.Env:
    try:
        return _wrapper_class(name)(env)
    except (TypeError, ValueError, AssertionError, gymnasium.error.Error) as error:
        raise ConfigError(f"env.wrappers: {name} cannot wrap the environment: {error}") from None


def _standardised(env: gymnasium.Env, stats_path: str) -> gymnasium.Env:
    space = env.observation_space
    if not isinstance(space, spaces.Box):
        raise ConfigError(f"env.normalize needs observations that are vectors, not {space}")
    stats = read_json(stats_path)
    try:
        mean, std = (np.asarray(stats[name], np.float64) for name in ("mean", "std"))
    except (KeyError, TypeError, ValueError):
        raise RunError(f"{stats_path} does not hold the lists mean and std") from None
    if mean.shape != space.shape or std.shape != space.shape or not (std > 0).all():
        raise RunError(
            f"{stats_path}: mean and std have shapes {mean.shape} and {std.shape} and std must be "
            f"positive; the observations are of shape {space.shape}"
        )
    wide = spaces.Box(-np.inf, np.inf, space.shape, np.float32)
    return TransformObservation(env, lambda obs: ((obs - mean) / std).astype(np.float32), wide)
