"""Everything that a round of match-ups can be told, declared once."""

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from aprl.configs.checks import (
    MAX_SEED,
    check_entries,
    require_at_least,
    require_between,
    require_nonempty,
    require_within,
)
from aprl.errors import ConfigError, unknown_name
from aprl.multi.grids import GOOD_GAMES
from aprl.multi.matchups import Matchup, cross
from aprl.score_agent import ScoreConfig

SIDES = ("victim", "adversary")
NOISES = ("observations", "victim_actions", "adversary_actions")
NOISE_DISTRIBUTIONS = {"lognormal": 2, "exponential": 1}  # number of parameters
_TEXTS = ("root_dir", "exp_name", "save_path", "adversaries", "activations", "ray_server")


@dataclass
class MatchupsConfig:
    """Options of `aprl.multi.score`."""

    root_dir: str = "data/multi_score"  # scores go to <root_dir>/<exp_name>/<time>/scores.json
    exp_name: str | None = None  # None: <victims>_vs_<opponents>
    # .json for the scores; games that it has already are not played again. None: see root_dir
    save_path: str | None = None
    envs: list[str] | None = None  # environment ids; None: the four games with adversaries known
    version: str = "v1"  # physics of the games, if envs is None
    # sets of players for the victim's side: zoo, fixed, adversary:<run dir>, json:<path>, or a
    # single player as ppo:<path> or zoo:<tag>
    victims: list[str] = field(default_factory=list)
    opponents: list[str] = field(default_factory=list)  # for the other side
    adversaries: str = "data/adversaries"  # the run directory of the set `adversary`
    score: dict[str, Any] = field(default_factory=dict)  # entries of aprl.score_agent for all games
    episodes: int = 1000  # games per match-up
    ci_width: float | None = None  # stop a match-up when the 95 % interval is as narrow as this
    ci_of: str = "adversary"  # whose win rate it is about: adversary or victim
    look_games: int = 64  # games between looks at the interval
    # folder for what the victims' networks compute, one .npz per match-up; None: not recorded
    activations: str | None = None

    mask: str | None = None  # hide the other player from the victim or from the adversary
    masking_type: str = "initialization"  # or zeros, additive_noise, debug
    noise: str | None = None  # observations (additive, of mask), victim_actions, adversary_actions
    noise_distribution: str = "lognormal"  # of the noise's size; or exponential
    # lognormal: mean and standard deviation of the logarithm; exponential: the mean
    noise_params: list[float] = field(default_factory=lambda: [0.5, 1.5])
    noise_samples: int = 25  # sizes drawn per match-up

    ray_server: str | None = None  # None: Ray on this machine; auto; or address host:port
    num_cpus: int | None = None  # of Ray on this machine; None: all
    progress: bool = True  # show progress on the terminal
    seed: int = 0

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "MatchupsConfig":
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
    def name(self) -> str:
        """Of the experiment."""
        if self.exp_name is not None:
            return self.exp_name
        victims, opponents = (
            "_".join(_words(s) for s in sets) for sets in (self.victims, self.opponents)
        )
        return f"{victims}_vs_{opponents}"[:120]

    def check(self) -> None:
        """Refuse what cannot work.

        Raises:
            ConfigError: names the entry.
        """
        require_nonempty(self, _TEXTS)
        for name in ("victims", "opponents"):
            if not getattr(self, name):
                raise ConfigError(f"{name} is empty; name at least one set, such as zoo")
        for name, known in (
            ("mask", SIDES),
            ("ci_of", SIDES),
            ("noise", NOISES),
            ("noise_distribution", NOISE_DISTRIBUTIONS),
        ):
            value = getattr(self, name)
            if value is not None and value not in known:
                raise unknown_name(name, value, known)
        for name in ("episodes", "look_games", "noise_samples"):
            require_at_least(name, getattr(self, name), 1)
        require_between("seed", self.seed, 0, MAX_SEED)
        if self.ci_width is not None:
            require_within("ci_width", self.ci_width, 0, 1, open_low=True, open_high=True)
            if self.files:
                raise ConfigError(
                    "ci_width plays as many games as it needs; videos and activations are of a "
                    "fixed number: leave out one or the other"
                )
        if self.noise == "observations" and self.mask is None:
            raise ConfigError("noise=observations needs mask, which says whose")
        wanted = NOISE_DISTRIBUTIONS[self.noise_distribution]
        if len(self.noise_params) != wanted or not all(p > 0 for p in self.noise_params):
            raise ConfigError(
                f"noise_distribution={self.noise_distribution} needs {wanted} noise_params above "
                f"0, got {self.noise_params}"
            )
        if self.save_path is not None and not self.save_path.endswith(".json"):
            raise ConfigError(f"save_path must name a .json file, got {self.save_path}")
        check_entries(ScoreConfig, self.score)
        ours = {"env_name", "agent_a_type", "agent_a_path", "agent_b_type", "agent_b_path", "seed"}
        taken = ours | {"root_dir", "episodes", "mask_agent_index", "mask_agent_masking_type"}
        taken |= {"record", "record_agent", "activations"}
        for name in sorted(taken & set(self.score)):
            if not (name == "episodes" and self.files):
                raise ConfigError(f"score.{name} is chosen by the match-ups; leave it out")

    @property
    def files(self) -> bool:
        """Whether a match-up leaves more than its scores."""
        return self.activations is not None or bool(self.score.get("videos"))

    def env_names(self) -> list[str]:
        """Environment ids."""
        if self.envs is not None:
            return list(self.envs)
        return [f"multicomp/{game}-{self.version}" for game in GOOD_GAMES]

    def matchups(self) -> list[Matchup]:
        """Who plays whom.

        Raises:
            AprlError: see `aprl.multi.matchups.cross`.
        """
        return cross(self.victims, self.opponents, self.env_names(), self.adversaries)

    def noise_sizes(self) -> list[float | None]:
        """Sizes of the noise, the same for every match-up; one None without noise."""
        if self.noise is None:
            return [None]
        rng = np.random.default_rng(self.seed)
        if self.noise_distribution == "lognormal":
            mean, sigma = self.noise_params
            drawn = rng.lognormal(mean, sigma, self.noise_samples)
        else:
            drawn = rng.exponential(self.noise_params[0], self.noise_samples)
        return [float(size) for size in drawn]


def _words(text: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in text).strip("-")
