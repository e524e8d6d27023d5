"""Everything that a training run can be told, declared once."""

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from aprl.configs.checks import (
    MAX_SEED,
    MAX_THREADS,
    as_text,
    check_entries,
    current_name,
    require_at_least,
    require_between,
    require_nonempty,
    require_within,
    with_types,
)
from aprl.envs import check_env_id, is_mujoco_game, opponent_mask
from aprl.envs.names import victim_index
from aprl.errors import ConfigError, unknown_name
from aprl.policies.loader import ALIASES, POLICY_TYPES
from aprl.training.algorithms import ALGORITHM_ALIASES, ALGORITHMS
from aprl.training.attacks import Attack, make_attack
from aprl.training.learning_rate import check_learning_rate
from aprl.training.mixture import mixture_probabilities
from aprl.training.schedules import EpisodeStatistics
from aprl.training.shaping import (
    annealer_from_params,
    check_weights,
    noise_annealer_from_params,
)
from aprl.training.transparent import TRANSPARENCY_KEYS

_MASK_STREAM = 3  # spawn key of the mask's noise, beside the run's other streams
_TEXTS = ("root_dir", "exp_name", "env_name", "embed_type", "embed_path", "adversaries", "zoo_dir")


def default_weights() -> dict[str, dict[str, float]]:
    """Weights of the reward terms, as published."""
    return {"dense": {"reward_move": 0.1}, "sparse": {"reward_remaining": 0.01}}


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
    embed_weights: list[float] | None = None  # how often each of several is drawn; None: equally
    embed_deterministic: bool = False  # the embedded agent plays its mode instead of sampling
    mask_embed: bool = False  # hide the learner from the embedded agent
    # of aprl.envs.OpponentMask: masking_type (initialization, zeros, additive_noise, debug) and
    # noise_magnitude
    mask_embed_kwargs: dict[str, Any] = field(
        default_factory=lambda: {"masking_type": "initialization"}
    )
    embed_noise: bool = False  # the embedded agent's actions are noisy, less and less so
    # param: standard deviation at the start, relative to the action; anneal_frac: fraction of the
    # run over which it falls to 0; or the entries of a conditional annealer, see rew_shape_params
    embed_noise_params: dict[str, Any] = field(
        default_factory=lambda: {"param": 0.5, "anneal_frac": 0.5}
    )
    # what the infos show of the embedded agent in each step: obs, ff_policy, ff_value, hid
    transparent_params: list[str] | None = None

    attack: str | None = None  # baseline, value_difference, intrinsic, noise_ball or lookback
    attack_params: dict[str, Any] = field(default_factory=dict)  # see aprl.training.attacks
    defence: str | None = None  # single, dual, population or alternating; see aprl.defences
    defence_params: dict[str, Any] = field(default_factory=dict)

    self_play: bool = False  # both sides learn, each against past versions of the other
    # of aprl.self_play: round_timesteps (of one side before it is the other's turn), window (newest
    # fraction of the snapshots that opponents are drawn from), members (opponents at a time)
    self_play_params: dict[str, Any] = field(default_factory=dict)

    rl_algo: str = "ppo"  # or recurrent_ppo, sac
    batch_size: int = 16384  # environment steps per update, over all environments
    learning_rate: float = 3e-4  # at the start
    learning_rate_schedule: str = "constant"  # or linear: to 0 at the end of the whole run
    rl_args: dict[str, Any] = field(default_factory=dict)  # of the algorithm; SB2 names accepted
    normalize: bool = True  # running normalisation of rewards, and of observations if next is set
    normalize_observations: bool = True
    load_policy: dict[str, Any] = field(default_factory=lambda: {"path": None, "type": None})

    rew_shape: bool = True  # train on the weighted terms below instead of the game's raw reward
    # anneal_frac: fraction of the run over which the dense part fades out (0: sparse only; absent:
    # half and half); or metric, thresh, operator, window_size, min_wait, max_wait, decay_factor,
    # start_val, end_val: it decays each time that the metric passes the threshold.
    # weights: {dense: {term: w}, sparse: {term: w}}; absent: as published.
    rew_shape_params: dict[str, Any] = field(default_factory=dict)

    adversaries: str | None = None  # tree of runs in which to look up the adversary to embed
    normal_opponent: dict[str, Any] = field(default_factory=lambda: {"path": None, "type": None})
    # normal_opponent above: scored before and after beside the adversary, never trained against
    eval_episodes: int = 0  # games per match-up in the table before and after; 0: no table

    zoo_dir: str = "data/agent_zoo"  # imported published policies
    checkpoint_interval: int = 131_072  # environment steps
    keep_checkpoints: int | None = 3  # the newest ones; None: all
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

    def make_attack(self) -> Attack | None:
        """The attack, or None if none is named.

        Raises:
            ConfigError: unknown name, or hyperparameters that cannot work.
        """
        return None if self.attack is None else make_attack(self.attack, self.attack_params)

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
        require_nonempty(given, _TEXTS)
        values = given.to_dict()
        values["rl_algo"] = current_name(given.rl_algo, ALGORITHM_ALIASES, "rl_algo")
        values["embed_types"], values["embed_paths"] = given._embedded()
        values["embed_type"] = values["embed_path"] = None
        values["embed_index"] = given.resolved_embed_index
        for name in ("load_policy", "normal_opponent"):
            values[name] = _policy_reference(name, getattr(given, name))
        shaping = {"weights": default_weights(), **given.rew_shape_params}
        if given.attack is not None and not {"anneal_frac", "metric"} & set(shaping):
            shaping["anneal_frac"] = 0.0  # attacks start from the sparse reward
        values["rew_shape_params"] = shaping
        resolved = TrainConfig(**values)
        resolved._check()
        return resolved

    def _embedded(self) -> tuple[list[str], list[str]]:
        types, paths = self.embed_types, self.embed_paths
        for name in ("embed_type", "embed_path"):
            if getattr(self, name) is not None and (types is not None or paths is not None):
                raise ConfigError(f"{name} was given beside embed_types and embed_paths; drop one")
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
        return kinds, [_policy_path(path, "embed_paths") for path in paths]

    def _check(self) -> None:
        check_env_id(self.env_name)
        for name in ("num_env", "total_timesteps", "batch_size", "checkpoint_interval"):
            require_at_least(name, getattr(self, name), 1)
        require_between("num_threads", self.num_threads, 0, MAX_THREADS)
        require_at_least("eval_episodes", self.eval_episodes, 0)
        require_between("seed", self.seed, 0, MAX_SEED)
        for name in ("max_episode_steps", "keep_checkpoints"):
            if getattr(self, name) is not None:
                require_at_least(name, getattr(self, name), 1)
        require_within("aside", self.aside, 0, 1)
        if self.self_play_params and not self.self_play:
            raise ConfigError("self_play_params was given without self_play=True")
        if self.embed_index not in (0, 1):
            raise ConfigError(f"embed_index must be 0 or 1, got {self.embed_index!r}")
        for name in ("aside", "end_when_down", "mask_embed"):
            if getattr(self, name) and not is_mujoco_game(self.env_name):
                raise ConfigError(f"{name} is for MuJoCo games only, not {self.env_name}")
        self._check_embedded()
        self._check_learner()
        self._check_rewards()

    def _check_embedded(self) -> None:
        assert self.embed_types is not None
        if self.mask_embed:
            opponent_mask(self.mask_embed_kwargs)
        if self.embed_weights is not None:
            if len(self.embed_types) < 2:
                raise ConfigError("embed_weights is for several embedded policies")
            mixture_probabilities(self.embed_weights, len(self.embed_types))
        if self.embed_noise:
            noise_annealer_from_params(self.embed_noise_params, EpisodeStatistics(1))
            if "metric" in self.embed_noise_params and not self.rew_shape:
                raise ConfigError("conditional embed_noise_params needs rew_shape=True")
        for key in self.transparent_params or ():
            if key not in TRANSPARENCY_KEYS:
                raise unknown_name("transparency key", str(key), TRANSPARENCY_KEYS)
        looks_inside = [
            *(["transparent_params"] if self.transparent_params is not None else []),
            *(["attack=lookback"] if self.attack == "lookback" else []),
            *(["estimator=victim"] if self.attack_params.get("estimator") == "victim" else []),
        ]
        for name in looks_inside:
            if len(self.embed_types) != 1:
                raise ConfigError(f"{name} needs one embedded policy, got {len(self.embed_types)}")
            if self.embed_noise:
                raise ConfigError(f"{name} does not go with embed_noise=True")

    def _check_learner(self) -> None:
        if self.rl_algo not in ALGORITHMS:
            raise unknown_name("rl_algo", self.rl_algo, ALGORITHMS)
        check_learning_rate(self.learning_rate, self.learning_rate_schedule)
        ALGORITHMS[self.rl_algo].arguments(self.rl_args, self.batch_size, self.num_env)
        if self.load_policy["path"] is None:
            return
        for name in ("net_arch", "log_std_init", "lstm_units"):
            if name in self.rl_args:
                raise ConfigError(f"rl_args entry {name!r} is the loaded policy's; leave it out")
        if self.normalize and self.normalize_observations:
            raise ConfigError(
                "a loaded policy keeps its own observation normaliser while it is fine-tuned; "
                "set normalize_observations=False"
            )

    def _check_rewards(self) -> None:
        if self.rew_shape:
            check_weights(self.rew_shape_params["weights"])
            annealer_from_params(self.rew_shape_params, EpisodeStatistics(1))
        if self.attack is None:
            if self.attack_params:
                raise ConfigError("attack_params was given without attack")
            return
        self.make_attack()
        if not self.rew_shape:
            raise ConfigError("an attack starts from the sparse reward; it needs rew_shape=True")
        if not self.embed_types:
            raise ConfigError("an attack needs a victim; nobody is embedded")


def _policy_reference(name: str, value: dict[str, Any]) -> dict[str, Any]:
    """A checked `{type, path}`; both None if there is no path."""
    reference = {"path": None, "type": None, **value}
    if set(reference) != {"path", "type"}:
        raise ConfigError(f"{name} has the entries path and type, got {sorted(reference)}")
    if reference["path"] is None:
        if reference["type"] not in (None, "ppo"):
            raise ConfigError(f"{name}.type is {reference['type']!r}, but {name}.path is missing")
        return {"path": None, "type": None}
    kind = _policy_type(reference["type"] or "ppo", f"{name}.type")
    return {"path": _policy_path(reference["path"], f"{name}.path"), "type": kind}


def _policy_type(kind: Any, where: str) -> str:
    kind = current_name(kind, ALIASES, f"policy type in {where}:")
    if kind not in POLICY_TYPES:
        raise unknown_name(f"policy type in {where}:", str(kind), POLICY_TYPES)
    return kind


def _policy_path(path: Any, where: str) -> str:
    text = as_text(path)
    if text is None or not text.strip():
        raise ConfigError(f"{where} must be a path, a tag or numbers, got {path!r}")
    return text
