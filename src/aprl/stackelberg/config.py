"""Options of the two commands, declared once."""

import os
from dataclasses import dataclass, field
from typing import Any

from aprl.configs.checks import (
    MAX_SEED,
    check_entries,
    require_at_least,
    require_between,
    require_nonempty,
    with_types,
)
from aprl.errors import ConfigError, unknown_name
from aprl.stackelberg.mal_tabular import TabularMal
from aprl.stackelberg.mdp import FiniteMDP
from aprl.stackelberg.methods import DEFAULT_METHOD, METHODS, check_method_name, make_method
from aprl.stackelberg.oracle import PretrainConfig
from aprl.stackelberg.runner import check_budget
from aprl.stackelberg.worlds import HORIZON, RANDOM_WORLD, check_world_name, make_world

ORACLES = ("exact", "learned")
SMALL_BUDGET = 400
BUDGETS = {"riverswim6": 2000, "trap": 2000, RANDOM_WORLD: 3000}


def default_budget(world: str) -> int:
    """Real samples that a world's results are quoted for."""
    return BUDGETS.get(world, 3000 if world.startswith("random_") else SMALL_BUDGET)


@dataclass
class StackelbergConfig:
    """Options of `aprl.stackelberg.train`."""

    root_dir: str = "data/stackelberg"  # run directories are made in here
    exp_name: str | None = None  # ends the run directory's name; None: method and world
    method: str = DEFAULT_METHOD  # one of aprl.stackelberg.methods.METHODS
    options: dict[str, Any] = field(default_factory=dict)  # of the method, over its own
    world: str = "simple_mdp_2"
    world_seed: int = 0  # of a random world
    horizon: int | None = None  # steps per episode; None: the world's own
    budget: int | None = None  # real samples; None: what the world's results are quoted for
    oracle: str = "exact"  # the follower: exact (a planner), or learned (contextual PPO)
    oracle_path: str | None = None  # a saved learned follower; None: pretrain one
    pretrain: dict[str, Any] = field(default_factory=dict)  # options of PretrainConfig
    progress: bool = True  # show progress on the terminal
    seed: int = 0

    def resolve(self) -> "StackelbergConfig":
        """A complete, checked copy.

        Raises:
            ConfigError: what cannot work; nothing has been started or written.
        """
        config = with_types(self)
        require_nonempty(config, ("root_dir", "exp_name"))
        check_method_name(config.method)
        check_world_name(config.world)
        for name in ("seed", "world_seed"):
            require_between(name, getattr(config, name), 0, MAX_SEED)
        if config.horizon is not None:
            require_at_least("horizon", config.horizon, 1)
        if config.budget is None:
            config.budget = default_budget(config.world)
        require_at_least("budget", config.budget, 1)
        check_budget(config.budget, config.make_world().task.horizon)
        if config.oracle not in ORACLES:
            raise unknown_name("oracle", config.oracle, ORACLES)
        if config.oracle_path is not None and config.oracle != "learned":
            raise ConfigError("oracle_path is of a learned follower; set oracle=learned")
        config.pretrain_config()
        method = make_method(
            config.method, config.options, None if config.oracle == "exact" else _never_called
        )
        if isinstance(method, TabularMal) and method.config.initial_models > config.budget:
            raise ConfigError(
                f"{method.config.initial_models:,} initial models (K) cannot be rolled out with "
                f"{config.budget:,} samples; an episode takes one at least"
            )
        if config.exp_name is None:
            config.exp_name = f"{config.method}-{config.world}"
        return config

    def make_world(self) -> FiniteMDP:
        """The true world."""
        return make_world(self.world, self.world_seed, self.horizon)

    def pretrain_config(self) -> PretrainConfig:
        """Options of pretraining the learned follower.

        Raises:
            ConfigError: an unknown one, or a value out of range.
        """
        check_entries(PretrainConfig, self.pretrain)
        return with_types(PretrainConfig(**self.pretrain))


def _never_called(task: Any) -> Any:
    raise AssertionError("only the options are checked")


@dataclass
class CompareConfig:
    """Options of `aprl.stackelberg.compare`."""

    root_dir: str = "data/stackelberg"  # the report's directory is made in here
    exp_name: str = "comparison"  # ends the directory's name
    methods: list[str] | None = None  # names; None: all but those of published length
    worlds: list[str] = field(
        default_factory=lambda: [
            "simple_mdp_1",
            "simple_mdp_2",
            "ergodic_mdp_1",
            "riverswim6",
            RANDOM_WORLD,
        ]
    )
    budgets: dict[str, int] = field(default_factory=dict)  # real samples by world, over the usual
    seeds: int = 20  # runs per method and world; a random world differs from seed to seed
    seed: int = 0  # the first of them
    processes: int = 0  # at once; 0: one per logical CPU
    progress: bool = True  # show progress on the terminal

    def resolve(self) -> "CompareConfig":
        """A complete, checked copy.

        Raises:
            ConfigError: what cannot work; nothing has been started or written.
        """
        config = with_types(self)
        require_nonempty(config, ("root_dir", "exp_name"))
        if config.methods is None:
            config.methods = [name for name, spec in METHODS.items() if spec.compared]
        for name in config.methods:
            check_method_name(name)
        for name in config.worlds:
            check_world_name(name)
        if not config.methods or not config.worlds:
            raise ConfigError("methods and worlds must each name at least one")
        for name in ("methods", "worlds"):
            names = getattr(config, name)
            if len(set(names)) < len(names):
                raise ConfigError(f"{name} names something twice: {', '.join(names)}")
        for name in config.budgets:
            if name not in config.worlds:
                raise unknown_name("world in budgets", name, config.worlds)
        config.budgets = {w: config.budgets.get(w, default_budget(w)) for w in config.worlds}
        for budget in config.budgets.values():
            require_at_least("budget", budget, 1)
            check_budget(budget, HORIZON)
        require_at_least("seeds", config.seeds, 1)
        require_between("seed", config.seed, 0, MAX_SEED - config.seeds + 1)
        require_at_least("processes", config.processes, 0)
        if config.processes == 0:
            config.processes = _usable_cpus()
        return config


def _usable_cpus() -> int:
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
