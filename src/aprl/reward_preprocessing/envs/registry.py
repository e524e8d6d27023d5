"""Which environments there are, by id, and the potential that suits each.

Importing this module registers them with Gymnasium.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium

from aprl.errors import ConfigError, unknown_name
from aprl.reward_preprocessing.envs.mazes import Maze, MazeEnv
from aprl.reward_preprocessing.envs.mountain_car import mountain_car_reward_net
from aprl.reward_preprocessing.mdp import TabularMDP
from aprl.rewards import RewardNet

_PACKAGE = "aprl.reward_preprocessing.envs"


@dataclass(frozen=True)
class EnvSpec:
    """An environment that reward preprocessing knows.

    Attributes:
        env_id: Gymnasium id.
        potential: kind of potential that is used unless another is asked for.
        reward_net: builds the true reward from the environment's options; None if it is not a
            function of state, action and next state that is known here.
    """

    env_id: str
    potential: str
    reward_net: Callable[..., RewardNet] | None = None


_MAZES = {
    "aprl/EmptyMaze4-v0": ({"size": 4}, 8),
    "aprl/EmptyMaze10-v0": ({"size": 10}, 20),
    "aprl/EmptyMaze100-v0": ({"size": 100}, 200),
    "aprl/KeyMaze6-v0": ({"size": 6, "key": True}, 20),
    "aprl/KeyMaze10-v0": ({"size": 10, "key": True}, 30),
}


def _maze_reward_net(layout: dict[str, Any]) -> Callable[..., RewardNet]:
    def build(random_start: bool = True, **options: Any) -> RewardNet:
        return Maze(**{**layout, **options}).reward_net()

    return build


ENVIRONMENTS = {
    spec.env_id: spec
    for spec in (
        *(EnvSpec(i, "tabular", _maze_reward_net(layout)) for i, (layout, _) in _MAZES.items()),
        EnvSpec("aprl/MountainCar-v0", "linear", mountain_car_reward_net),
        EnvSpec("aprl/SparseReacher-v0", "mlp"),
        EnvSpec("MountainCar-v0", "mlp"),
        EnvSpec("Pendulum-v1", "mlp"),
        EnvSpec("HalfCheetah-v5", "linear"),
        EnvSpec("Hopper-v5", "linear"),
    )
}

# Ids of the older libraries, and what plays their part here.
_OLD_IDS = {
    **{
        f"{prefix}/{env_id.removeprefix('aprl/')}": env_id
        for prefix in ("reward_preprocessing", "imitation")
        for env_id in ("aprl/MountainCar-v0", *_MAZES)
    },
    "seals/MountainCar-v0": "aprl/MountainCar-v0",
    "seals/HalfCheetah-v0": "HalfCheetah-v5",
    "seals/Hopper-v0": "Hopper-v5",
    "imitation/SparseReacher-v0": "aprl/SparseReacher-v0",
}


def _register() -> None:
    for env_id, (layout, steps) in _MAZES.items():
        if env_id not in gymnasium.registry:
            gymnasium.register(
                env_id, f"{_PACKAGE}.mazes:MazeEnv", max_episode_steps=steps, kwargs=layout
            )
    for env_id, entry, steps in (
        ("aprl/MountainCar-v0", "mountain_car:MountainCarEnv", 200),
        ("aprl/SparseReacher-v0", "reacher:SparseReacherEnv", 50),
    ):
        if env_id not in gymnasium.registry:
            gymnasium.register(env_id, f"{_PACKAGE}.{entry}", max_episode_steps=steps)


_register()


def canonical_id(name: str) -> str:
    """The id of an environment; ids of the older libraries are translated, with a warning.

    Raises:
        ConfigError: neither this package nor Gymnasium knows it.
    """
    if name in _OLD_IDS:
        current = _OLD_IDS[name]
        warnings.warn(
            f"environment {name!r} is called {current!r} here", DeprecationWarning, stacklevel=2
        )
        return current
    if name not in ENVIRONMENTS and name not in gymnasium.registry:
        raise unknown_name("environment", name, ENVIRONMENTS)
    return name


def default_potential(env_id: str) -> str:
    """Kind of potential that suits an environment: an MLP where nothing better is known."""
    spec = ENVIRONMENTS.get(env_id)
    return "mlp" if spec is None else spec.potential


def true_reward_net(env_id: str, options: dict[str, Any]) -> RewardNet:
    """The environment's own reward as a net.

    Raises:
        ConfigError: it is not known here, or the options are wrong.
    """
    spec = ENVIRONMENTS.get(env_id)
    if spec is None or spec.reward_net is None:
        known = [name for name, entry in ENVIRONMENTS.items() if entry.reward_net is not None]
        raise ConfigError(f"the reward of {env_id} is not known as a net, only of {known}")
    try:
        return spec.reward_net(**options)
    except TypeError as error:
        raise ConfigError(f"options {options} do not fit {env_id}: {error}") from None


def tabular_mdp(env: gymnasium.Env) -> TabularMDP | None:
    """The exact dynamics of an environment with numbered states; None for any other."""
    inner = env.unwrapped
    return inner.maze.mdp() if isinstance(inner, MazeEnv) else None


def maze_of(env: gymnasium.Env) -> Maze | None:
    """The layout of a maze; None for any other environment."""
    inner = env.unwrapped
    return inner.maze if isinstance(inner, MazeEnv) else None


__all__ = [
    "ENVIRONMENTS",
    "EnvSpec",
    "canonical_id",
    "default_potential",
    "maze_of",
    "tabular_mdp",
    "true_reward_net",
]
