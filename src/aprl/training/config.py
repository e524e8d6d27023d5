"""Everything that a training run can be told, declared once."""

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from aprl.configs.checks import check_entries, require_at_least, with_types
from aprl.envs import check_env_id, is_mujoco_game, opponent_mask
from aprl.envs.names import victim_index
from aprl.errors import ConfigError, unknown_name
from aprl.policies.loader import POLICY_TYPES
from aprl.training.learner import ppo_arguments
from aprl.training.schedules import EpisodeStatistics
from aprl.training.shaping import annealer_from_params, check_weights

ALGORITHMS = ("ppo",)
ALIASES = {"ppo2": "ppo"}
_MASK_STREAM = 3  # spawn key of the mask's noise, beside the run's other streams
DEFAULT_WEIGHTS = {"dense": {"reward_move": 0.1}, "sparse": {"reward_remaining": 0.01}}


@dataclass
class TrainConfig:
    """Options of `aprl.train`; the names are those of the original library where it had them."""

    root_dir: str = "data/baselines"  # run directories are made in here
    exp_name: str = "default"  # ends the run directory's name
    env_name: str = "multicomp/YouShallNotPassHumans-v1"
    num_env: int = 64  # environments in the batch
    num_threads: int = 0  # of the physics; 0: every logical CPU
    total_timesteps: int = 1_000_000  # environment steps of the whole run
    max_episode_steps: int | None = None  # None: the game's default limit
    aside: float = 0.0  # training aid: fraction of episodes with the embedded agent out of the way
    end_when_down: bool = False  # training aid: the learner's episode ends, lost, when it is down

    embed_index: int | None = None  # the embedded agent's index; None: the game's victim
    embed_type: str | None = None  # kind of the embedded policy; None: "zoo"
    embed_path: str | None = None  # its path, or tag in the zoo; None: "1"
    embed_types: list[str] | None = None  # one entry per embedded policy; [] embeds nobody
    embed_paths: list[str] | None = None
    embed_deterministic: bool = False  # the embedded agent plays its mode instead of sampling
    mask_embed: bool = False  # hide the learner from the embedded agent
    # of aprl.envs.OpponentMask: masking_type (initialization, zeros, additive_noise, debug) and
    # noise_magnitude
    mask_embed_kwargs: dict[str, Any] = field(
        default_factory=lambda: {"masking_type": "initialization"}
    )

    rl_algo: str = "ppo"
    batch_size: int = 16384  # environment steps per update, over all environments
    learning_rate: float = 3e-4  # constant
    rl_args: dict[str, Any] = field(default_factory=dict)  # of the algorithm; SB2 names accepted
    normalize: bool = True  # running normalisation of rewards, and of observations if next is set
    normalize_observations: bool = True
    load_policy: dict[str, Any] = field(default_factory=lambda: {"path": None, "type": None})

    rew_shape: bool = True  # train on the weighted terms below instead of the game's raw reward
    # anneal_frac: fraction of the run over which the dense part fades out (0: sparse only; absent:
    # half and half). weights: {dense: {term: w}, sparse: {term: w}}; absent: as published.
    rew_shape_params: dict[str, Any] = field(default_factory=dict)

    adversaries: str | None = None  # tree of runs in which to look up the adversary to embed
    normal_opponent: dict[str, Any] = field(default_factory=lambda: {"path": None, "type": None})
    # normal_opponent above: scored before and after beside the adversary, never trained against
    eval_episodes: int = 0  # games per match-up in the table before and after; 0: no table

    zoo_dir: str = "data/agent_zoo"  # imported published policies
    checkpoint_interval: int = 131_072  # environment steps
    progress: bool = True  # show progress on the terminal
    seed: int = 0

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "TrainConfig":
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
    def agent_idx(self) -> int:
        """The learner's index in the game."""
        nobody = self.embed_types is not None and not self.embed_types  # None: the default victim
        return 0 if nobody else 1 - self.resolved_embed_index

    @property
    def resolved_embed_index(self) -> int:
        """`embed_index`, or the game's victim."""
        return victim_index(self.env_name) if self.embed_index is None else self.embed_index

    def env_options(self) -> dict[str, Any]:
        """Arguments for `make_vec` beyond id, size and seed."""
        options: dict[str, Any] = {}
        if self.max_episode_steps is not None:
            options["max_episode_steps"] = self.max_episode_steps
        if is_mujoco_game(self.env_name):
            options["num_threads"] = self.num_threads
            options["end_when_down"] = self.agent_idx if self.end_when_down else None
            options["aside"] = (self.resolved_embed_index, self.aside) if self.aside else None
            if self.mask_embed:
                seed = np.random.SeedSequence(self.seed, spawn_key=(_MASK_STREAM,))
                mask = opponent_mask(self.mask_embed_kwargs, seed)
                options["masks"] = {self.resolved_embed_index: mask}
        return options

    def resolve(self) -> "TrainConfig":
        """A complete, checked copy: aliases replaced, embedded policies as lists.

        Raises:
            ConfigError: anything that cannot work; no environment has been built yet.
        """
        given = with_types(self)
        values = given.to_dict()
        values["rl_algo"] = ALIASES.get(given.rl_algo, given.rl_algo)
        values["embed_types"], values["embed_paths"] = given._embedded()
        values["embed_type"] = values["embed_path"] = None
        values["embed_index"] = given.resolved_embed_index
        for name in ("load_policy", "normal_opponent"):
            values[name] = _policy_reference(name, getattr(given, name))
        weights = given.rew_shape_params.get("weights", DEFAULT_WEIGHTS)
        values["rew_shape_params"] = {**given.rew_shape_params, "weights": weights}
        resolved = TrainConfig(**values)
        resolved._check()
        return resolved

    def _embedded(self) -> tuple[list[str], list[str]]:
        types, paths = self.embed_types, self.embed_paths
        if types is None and paths is None:
            types = [self.embed_type or "zoo"]
            paths = [self.embed_path if self.embed_path is not None else "1"]
        elif types is None or paths is None:
            given, missing = (
                ("embed_paths", "embed_types") if types is None else ("embed_types", "embed_paths")
            )
            raise ConfigError(f"{given} was given without {missing}; give both or neither")
        assert types is not None and paths is not None
        if len(types) != len(paths):
            raise ConfigError(
                f"embed_types has {len(types)} entries and embed_paths {len(paths)}; need as many"
            )
        kinds = [_policy_type(kind, "embed_types") for kind in types]
        return kinds, [str(path) for path in paths]

    def _check(self) -> None:
        check_env_id(self.env_name)
        for name in ("num_env", "total_timesteps", "batch_size", "checkpoint_interval"):
            require_at_least(name, getattr(self, name), 1)
        for name in ("num_threads", "eval_episodes", "seed"):
            require_at_least(name, getattr(self, name), 0)
        if self.max_episode_steps is not None:
            require_at_least("max_episode_steps", self.max_episode_steps, 1)
        if not isinstance(self.aside, int | float) or not 0 <= self.aside <= 1:
            raise ConfigError(f"aside must be in [0, 1], got {self.aside!r}")
        if self.mask_embed:
            opponent_mask(self.mask_embed_kwargs)
        for name in ("aside", "end_when_down", "mask_embed"):
            if getattr(self, name) and not is_mujoco_game(self.env_name):
                raise ConfigError(f"{name} is for MuJoCo games only, not {self.env_name}")
        if self.embed_index not in (0, 1):
            raise ConfigError(f"embed_index must be 0 or 1, got {self.embed_index!r}")
        if self.rl_algo not in ALGORITHMS:
            raise ConfigError(f"unknown rl_algo {self.rl_algo!r}; known: {', '.join(ALGORITHMS)}")
        if not isinstance(self.learning_rate, int | float) or not 0 <= self.learning_rate < 1:
            raise ConfigError(f"learning_rate must be in [0, 1), got {self.learning_rate!r}")
        if self.embed_types is not None and len(self.embed_types) > 1:
            raise ConfigError("several embedded policies are not supported yet; give one")
        ppo_arguments(self.rl_args, self.batch_size, self.num_env)
        if self.rew_shape:
            check_weights(self.rew_shape_params["weights"])
            annealer_from_params(self.rew_shape_params, EpisodeStatistics(1))
        if self.normalize and self.normalize_observations and self.load_policy["path"] is not None:
            raise ConfigError(
                "a loaded policy keeps its own observation normaliser while it is fine-tuned; "
                "set normalize_observations=False"
            )


def _policy_reference(name: str, value: dict[str, Any]) -> dict[str, Any]:
    """A checked `{type, path}`; both None if there is no path."""
    reference = {"path": None, "type": None, **value}
    if set(reference) != {"path", "type"}:
        raise ConfigError(f"{name} has the entries path and type, got {sorted(reference)}")
    if reference["path"] is None:
        return {"path": None, "type": None}
    kind = _policy_type(reference["type"] or "ppo", f"{name}.type")
    return {"path": str(reference["path"]), "type": kind}


def _policy_type(kind: Any, where: str) -> str:
    kind = ALIASES.get(str(kind), str(kind))
    if kind not in POLICY_TYPES:
        raise unknown_name(f"policy type in {where}:", kind, POLICY_TYPES)
    return kind
