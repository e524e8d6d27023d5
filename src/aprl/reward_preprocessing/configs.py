"""Entries that the commands of reward preprocessing share, and all their named configs."""

from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from aprl.configs.checks import check_entries, require_at_least, with_types
from aprl.errors import ConfigError
from aprl.experiment import Part
from aprl.reward_preprocessing.environments import EnvConfig
from aprl.reward_preprocessing.objectives import get_objective

_Config = TypeVar("_Config")

RUNS_DIR = "runs/reward_preprocessing"  # records and trained policies, unless root_dir says else
RESULTS_DIR = "results"  # what a later step reads: models, rollouts, figures


@dataclass
class RolloutsConfig:
    """Which transitions, as in the `rollouts` entries of a command."""

    rollouts: list[Any] | None = None  # sources; see `aprl.reward_preprocessing.rollouts`
    steps: int | None = None  # transitions to preprocess on; None: all of a single saved file
    test_steps: int | None = None  # further transitions, to judge the result on; None: none

    def check(self) -> None:
        """Refuse counts below 1.

        Raises:
            ConfigError: such a count.
        """
        for name in ("steps", "test_steps"):
            if getattr(self, name) is not None:
                require_at_least(f"rollouts.{name}", getattr(self, name), 1)


def check_objectives(objectives: list[str], known_too: tuple[str, ...] = ()) -> None:
    """Check a list of names of objectives.

    Args:
        objectives: the names.
        known_too: further names that are allowed, such as "unmodified".

    Raises:
        ConfigError: the list is empty, or a name is unknown.
    """
    if not objectives:
        raise ConfigError("objectives is empty; name at least one")
    for name in objectives:
        if name not in known_too:
            get_objective(str(name))


def read_config(config_class: type[_Config], values: dict[str, Any]) -> _Config:
    """Build a command's config from Sacred's dict; parts become configs of their own.

    Raises:
        ConfigError: unknown entries, or values of the wrong type.
    """
    values = dict(values)
    for name, part_class in (("env", EnvConfig), ("rollouts", RolloutsConfig)):
        if isinstance(values.get(name), dict):
            part = {k: v for k, v in values[name].items() if k != "seed"}  # Sacred's own
            check_entries(part_class, part)
            values[name] = with_types(part_class(**part))
    check_entries(config_class, values)
    return with_types(config_class(**values))


ENV_NAMED: dict[str, dict[str, Any]] = {
    "empty_maze_10": {"name": "aprl/EmptyMaze10-v0"},
    "empty_maze_4": {"name": "aprl/EmptyMaze4-v0"},
    "empty_maze_100": {"name": "aprl/EmptyMaze100-v0"},
    "key_maze_6": {"name": "aprl/KeyMaze6-v0"},
    "key_maze_10": {"name": "aprl/KeyMaze10-v0"},
    "mountain_car": {"name": "aprl/MountainCar-v0"},
    "shaped_mountain_car": {"name": "aprl/MountainCar-v0", "options": {"shaping": "dense"}},
    "pendulum": {"name": "Pendulum-v1"},
    # The position belongs to the state, so that a potential can depend on it.
    "half_cheetah": {
        "name": "HalfCheetah-v5",
        "options": {"exclude_current_positions_from_observation": False},
    },
    "hopper": {
        "name": "Hopper-v5",
        "options": {"exclude_current_positions_from_observation": False},
    },
    "sparse_reacher": {"name": "aprl/SparseReacher-v0"},
    **{
        shaping: {"options": {"shaping": shaping}}
        for shaping in ("unshaped", "dense", "antidense", "random")
    },
    **{reward: {"options": {"reward": reward}} for reward in ("goal", "path")},
}

ROLLOUTS_NAMED: dict[str, dict[str, Any]] = {"random_rollouts": {"rollouts": [(1.0,)]}}

ENV_PART = Part(asdict(EnvConfig()), ENV_NAMED)
ROLLOUTS_PART = Part(asdict(RolloutsConfig()), ROLLOUTS_NAMED)

# The environment and its flavour in one word, for the commands that train.
FLAVOURS: dict[str, dict[str, Any]] = {
    name: {"env": ENV_NAMED[name]}
    for name in ("unshaped", "dense", "antidense", "random", "goal", "path")
}
_TRAINED = {
    # name: steps of reinforcement learning, fragment length, comparisons in all and per iteration
    "empty_maze_10": (500_000, 4, 5000, 300),
    "empty_maze_4": (100_000, 3, 1000, 100),
    "key_maze_10": (500_000, 4, 5000, 300),
    "key_maze_6": (500_000, 4, 5000, 300),
}
RL_NAMED: dict[str, dict[str, Any]] = {
    **{
        name: {"env": ENV_NAMED[name], "total_timesteps": steps, "normalize": False}
        for name, (steps, *_) in _TRAINED.items()
    },
    **FLAVOURS,
}
DRLHP_NAMED: dict[str, dict[str, Any]] = {
    **{
        name: {
            "env": ENV_NAMED[name],
            "total_timesteps": steps,
            "fragment_length": length,
            "random_frac": 0.5,
            "total_comparisons": comparisons,
            "comparisons_per_iteration": per_iteration,
            "normalize": False,
            "reward_type": "tabular",
        }
        for name, (steps, length, comparisons, per_iteration) in _TRAINED.items()
    },
    **FLAVOURS,
    "tabular": {"reward_type": "tabular"},
}

PREPROCESS_NAMED: dict[str, dict[str, Any]] = {
    "tabular": {"epochs": 10_000},
    "fast": {"epochs": 1},
    "linear": {"potential": "linear"},
    "mlp": {"potential": "mlp", "potential_options": {"num_hidden": 4, "hidden_size": 128}},
}

OBJECTIVE_SETS: dict[str, dict[str, Any]] = {
    "log": {"objectives": ["unmodified", "sparse_log", "smooth_log"]},
    "l1": {"objectives": ["unmodified", "sparse_l1", "smooth_l1"]},
}
