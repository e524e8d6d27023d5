"""Everything that a sweep can be told, declared once."""

from dataclasses import asdict, dataclass, field, fields
from typing import Any

from aprl.configs.checks import (
    MAX_SEED,
    MAX_THREADS,
    check_entries,
    require_at_least,
    require_between,
    require_nonempty,
    require_within,
)
from aprl.envs.mujoco import PROFILES
from aprl.errors import ConfigError, unknown_name
from aprl.multi.axes import Axis, axis_from_json, flat_axes
from aprl.multi.grids import (
    AGAINST_GRIDS,
    DEFENCE_GRIDS,
    GRID_ALIASES,
    GRIDS,
    Choice,
    Grid,
)
from aprl.training.config import TrainConfig

SCHEDULERS = ("asha",)
SEARCHERS = ("optuna",)
MISSING = ("warn", "error")
_TEXTS = ("root_dir", "exp_name", "grid", "adversaries", "hardened", "ray_server", "storage_path")


@dataclass
class SweepConfig:
    """Options of `aprl.multi.train`."""

    root_dir: str = "data/multi_train"  # sweeps go to <root_dir>/<exp_name>/<time>
    exp_name: str | None = None  # None: the grid's name
    grid: str | None = None  # a named grid, see aprl.multi.grids; None: only the axes below
    version: str = "v1"  # physics of a named grid's games: v0 as published, v1 fast
    # further axes; they take the place of the grid's axes for the same entries: {entry: [values]},
    # {"entry:entry": [[value, value], ...]} or {entry: {"loguniform": [low, high]}} (also uniform,
    # randint, power_of_two)
    axes: dict[str, Any] = field(default_factory=dict)
    # entries of aprl.train for all trials; they take the place of the grid's. A trial has one
    # thread for the physics unless num_threads is given (0: all of the machine)
    train: dict[str, Any] = field(default_factory=dict)
    num_samples: int | None = None  # times that the axes are gone through; None: the grid's

    defense_single: bool = False  # defences train against the adversary alone (the default)
    defense_dual: bool = False  # ... and against each published normal opponent
    defense_only_mlp: bool = False  # ... in You Shall Not Pass alone
    adv_from_scratch: bool = False  # attacks on hardened victims start anew (the default)
    adv_finetune: bool = False  # ... or from the adversary against the victim before
    adversaries: str = "data/adversaries"  # tree of runs in which defences look up adversaries
    # tree of runs in which attacks look up hardened victims; None: <root_dir>/<defence's exp_name>
    hardened: str | None = None
    on_missing: str = "warn"  # trials that lack a policy: warn and skip, or error

    scheduler: str | None = None  # asha: stop trials that win least, early
    # of ASHA: grace_period (environment steps; None: an eighth of the run), reduction_factor
    scheduler_params: dict[str, Any] = field(default_factory=dict)
    search_alg: str | None = None  # optuna: draw sampled axes where others won (pip: aprl[optuna])
    max_failures: int = 2  # retries of a failed trial, each from its last checkpoint
    max_concurrent: int | None = None  # trials at a time; None: as many as there are CPUs for
    ray_server: str | None = None  # None: Ray on this machine; auto; or address host:port
    num_cpus: int | None = None  # of Ray on this machine; None: all
    # where a cluster without a shared file system keeps runs and Ray's state, such as s3://bucket/x
    storage_path: str | None = None
    dry_run: bool = False  # print the trials and what they cost, run nothing
    progress: bool = True  # show progress on the terminal
    seed: int = 0  # of the draws of sampled axes

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "SweepConfig":
        """Build from a plain dict.

        Raises:
            ConfigError: unknown keys, with the nearest known ones.
        """
        check_entries(cls, values)
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """As a plain dict of JSON types."""
        return asdict(self)

    @property
    def grid_name(self) -> str | None:
        """The grid's name, old spellings replaced."""
        return None if self.grid is None else GRID_ALIASES.get(self.grid, self.grid)

    def check(self) -> None:
        """Refuse what cannot work.

        Raises:
            ConfigError: names the entry.
        """
        require_nonempty(self, _TEXTS)
        if self.grid_name is not None and self.grid_name not in GRIDS:
            raise unknown_name("grid", self.grid_name, GRIDS)
        if self.grid is None and not self.axes:
            raise ConfigError("nothing to sweep: name a grid, or give axes")
        if self.version not in PROFILES:
            raise unknown_name("version", self.version, PROFILES)
        self._check_modifiers()
        for name, known in (
            ("scheduler", SCHEDULERS),
            ("search_alg", SEARCHERS),
            ("on_missing", MISSING),
        ):
            value = getattr(self, name)
            if value is not None and value not in known:
                raise unknown_name(name, value, known)
        for name, least in (("num_samples", 1), ("max_concurrent", 1), ("num_cpus", 1)):
            if getattr(self, name) is not None:
                require_at_least(name, getattr(self, name), least)
        require_at_least("max_failures", self.max_failures, 0)
        require_between("seed", self.seed, 0, MAX_SEED)
        check_entries(TrainConfig, self.train)
        if "num_threads" in self.train:
            require_between("train.num_threads", self.train["num_threads"], 0, MAX_THREADS)
        for name in ("root_dir", "exp_name"):
            if name in self.train:
                raise ConfigError(f"train.{name} is chosen by the sweep; leave it out")
        self.asha_params()
        self._axes()

    def _check_modifiers(self) -> None:
        for one, other in (
            ("defense_single", "defense_dual"),
            ("adv_from_scratch", "adv_finetune"),
        ):
            if getattr(self, one) and getattr(self, other):
                raise ConfigError(f"{one} and {other} contradict each other; give one")
        for prefix, grids in (("defense_", DEFENCE_GRIDS), ("adv_", AGAINST_GRIDS)):
            given = [f.name for f in fields(self) if f.name.startswith(prefix)]
            for name in given:
                if getattr(self, name) is True and self.grid_name not in grids:
                    raise ConfigError(
                        f"{name} is for {', '.join(grids)}; the grid is {self.grid!r}"
                    )

    def asha_params(self) -> dict[str, Any]:
        """Parameters of the scheduler, defaults filled in.

        Raises:
            ConfigError: unknown or unusable ones, or any without a scheduler.
        """
        params = {"grace_period": None, "reduction_factor": 3} | self.scheduler_params
        if self.scheduler is None and self.scheduler_params:
            raise ConfigError("scheduler_params was given without scheduler")
        unknown = set(params) - {"grace_period", "reduction_factor"}
        if unknown:
            raise unknown_name(
                "scheduler_params entry", min(unknown), ["grace_period", "reduction_factor"]
            )
        if params["grace_period"] is not None:
            require_at_least("scheduler_params.grace_period", params["grace_period"], 1)
        require_within(
            "scheduler_params.reduction_factor",
            params["reduction_factor"],
            1,
            float("inf"),
            open_low=True,
            open_high=True,
        )
        return params

    def choice(self) -> Choice:
        """What a named grid needs to know."""
        choice = Choice(
            version=self.version,
            dual=self.defense_dual,
            only_mlp=self.defense_only_mlp,
            from_scratch=not self.adv_finetune,
            adversaries=self.adversaries,
        )
        searched = "hyper_" if (self.grid_name or "").startswith("hyper_") else ""
        default = f"{self.root_dir}/{searched}{choice.defence_name}"
        return Choice(**{**asdict(choice), "hardened": self.hardened or default})

    def _axes(self) -> dict[str, Axis]:
        return {key: axis_from_json(key, value) for key, value in flat_axes(self.axes).items()}

    def make_grid(self) -> Grid:
        """The complete grid: the named one, with the entries and axes given here.

        Raises:
            AprlError: a policy that it is about cannot be found.
        """
        name = self.grid_name
        named = Grid("sweep", {}, {}) if name is None else GRIDS[name](self.choice())
        axes = dict(named.axes)
        for key, axis in self._axes().items():
            entries = set(key.split(":"))
            axes = {k: v for k, v in axes.items() if not entries & set(k.split(":"))}
            axes[key] = axis
        return Grid(
            name=self.exp_name or named.name,
            train={"num_threads": 1, "progress": False, **named.train} | self.train,
            axes=axes,
            num_samples=self.num_samples or named.num_samples,
            missing=named.missing,
        )
