"""Ways to harden a victim by fine-tuning, behind one interface: `defence=`, `defence_params=`."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from aprl.configs.checks import (
    check_entries,
    require_at_least,
    require_within,
    with_types,
)
from aprl.envs.names import victim_index
from aprl.errors import ConfigError, RunError, unknown_name
from aprl.highest_win_rate import Best, best_policies
from aprl.policies.loader import resolve_policy_directory
from aprl.policies.store import fingerprint
from aprl.runs import find_runs, read_run
from aprl.training.config import TrainConfig


@dataclass(frozen=True)
class Sparring:
    """Who a victim is fine-tuned against.

    Attributes:
        types: kinds of the embedded policies.
        paths: their paths.
        weights: how often each plays, in proportion; None for a single one.
        best: the adversary that was looked up, if one was.
    """

    types: list[str]
    paths: list[str]
    weights: list[float] | None = None
    best: Best | None = None


class Defence(ABC):
    """One way to harden a victim. Subclasses are dataclasses of their parameters."""

    name: ClassVar[str]

    def check(self) -> None:  # noqa: B027 - not every defence has something to check
        """Refuse parameters that cannot work.

        Raises:
            ConfigError: one of them, by name.
        """

    @abstractmethod
    def sparring(self, config: TrainConfig) -> Sparring:
        """Choose whom the victim of `config` is fine-tuned against.

        Raises:
            AprlError: there is nobody, or a policy is missing.
        """


@dataclass(frozen=True)
class Single(Defence):
    """Against the best adversary alone (Gleave et al., ICLR 2020, section 6)."""

    name: ClassVar[str] = "single"

    def sparring(self, config: TrainConfig) -> Sparring:
        """See `Defence.sparring`."""
        best = best_adversary(config)
        return Sparring(["ppo"], [str(best.policy_dir)], None, best)


@dataclass(frozen=True)
class Dual(Defence):
    """Against the best adversary and a normal opponent in turn, so that normal play is not lost.

    Attributes:
        normal_ratio: fraction of the episodes with the normal opponent, in (0, 1).
    """

    name: ClassVar[str] = "dual"
    normal_ratio: float = 0.5

    def check(self) -> None:
        """See `Defence.check`."""
        _check_ratio(self.normal_ratio)

    def sparring(self, config: TrainConfig) -> Sparring:
        """See `Defence.sparring`."""
        best = best_adversary(config)
        kind, path = normal_opponent(config)
        weights = [1 - self.normal_ratio, self.normal_ratio]
        return Sparring(["ppo", kind], [str(best.policy_dir), path], weights, best)


@dataclass(frozen=True)
class Population(Defence):
    """Against several adversaries and opponents, one per episode.

    Attributes:
        adversaries: directories of policies or runs; empty: every finished run in the config's
            `adversaries` that attacked this victim.
        opponents: directories of normal opponents; empty: the config's `normal_opponent`.
        normal_ratio: fraction of the episodes with normal opponents, in (0, 1).
    """

    name: ClassVar[str] = "population"
    adversaries: tuple[str, ...] | list[str] = ()
    opponents: tuple[str, ...] | list[str] = ()
    normal_ratio: float = 0.5

    def check(self) -> None:
        """See `Defence.check`."""
        _check_ratio(self.normal_ratio)

    def sparring(self, config: TrainConfig) -> Sparring:
        """See `Defence.sparring`."""
        adversaries = list(self.adversaries) or all_adversaries(config)
        normal = [("ppo", path) for path in self.opponents] or [normal_opponent(config)]
        return mixed(adversaries, normal, self.normal_ratio)


@dataclass(frozen=True)
class Alternating(Defence):
    """Rounds of attack and defence: a new adversary joins the pool, the victim trains against it.

    See `aprl.alternating`, which runs the rounds; within one, the victim's opponents are the pool
    and the normal opponent.

    Attributes:
        rounds: of attack and defence.
        attack_timesteps: environment steps of each attack; None: as many as of each defence.
        attack_start: policy that each adversary starts from; None: the normal opponent; "": none.
        attack_config: further entries of the attack's `TrainConfig`.
        normal_ratio: fraction of the victim's episodes with the normal opponent, in (0, 1).
    """

    name: ClassVar[str] = "alternating"
    rounds: int = 3
    attack_timesteps: int | None = None
    attack_start: str | None = None
    attack_config: dict[str, Any] | None = None
    normal_ratio: float = 0.5

    def check(self) -> None:
        """See `Defence.check`."""
        require_at_least("rounds", self.rounds, 1)
        if self.attack_timesteps is not None:
            require_at_least("attack_timesteps", self.attack_timesteps, 1)
        _check_ratio(self.normal_ratio)

    def sparring(self, config: TrainConfig) -> Sparring:
        """Against what the rounds begin with: nobody yet but the normal opponent."""
        kind, path = normal_opponent(config)
        return Sparring([kind], [path])


DEFENCES: dict[str, type[Defence]] = {
    defence.name: defence for defence in (Single, Dual, Population, Alternating)
}


def make_defence(name: str, params: dict[str, Any]) -> Defence:
    """A checked defence.

    Args:
        name: one of `DEFENCES`.
        params: its parameters; the rest keep their defaults.

    Raises:
        ConfigError: unknown name, or parameters that it has not or cannot use.
    """
    if name not in DEFENCES:
        raise unknown_name("defence", name, DEFENCES)
    check_entries(DEFENCES[name], params)
    defence = with_types(DEFENCES[name](**params))
    defence.check()
    return defence


def defend(config: TrainConfig, sparring: Sparring) -> TrainConfig:
    """The config with its opponents filled in.

    Raises:
        ConfigError: it names embedded policies of its own.
    """
    for name in ("embed_type", "embed_path", "embed_types", "embed_paths", "embed_index"):
        if getattr(config, name) is not None:
            raise ConfigError(f"{name} does not go with a defence, which chooses the opponents")
    return replace(
        config,
        embed_index=1 - victim_index(config.env_name),
        embed_types=sparring.types,
        embed_paths=sparring.paths,
        embed_weights=sparring.weights,
    )


def mixed(
    adversaries: Sequence[str], normal: Sequence[tuple[str, str]], normal_ratio: float
) -> Sparring:
    """Adversaries and normal opponents, each group's share divided equally within it."""
    hostile = [(1 - normal_ratio) / len(adversaries)] * len(adversaries)
    friendly = [normal_ratio / len(normal)] * len(normal)
    return Sparring(
        ["ppo"] * len(adversaries) + [kind for kind, _ in normal],
        [*adversaries, *(path for _, path in normal)],
        [*hostile, *friendly],
    )


def victim_of(config: TrainConfig) -> tuple[str, str]:
    """Type and path of the victim to defend: the loaded policy.

    Raises:
        ConfigError: none is loaded.
    """
    kind, path = config.load_policy.get("type") or "ppo", config.load_policy.get("path")
    if path is None:
        raise ConfigError("a defence needs a victim: set load_policy.type and load_policy.path")
    return kind, str(path)


def normal_opponent(config: TrainConfig) -> tuple[str, str]:
    """Type and path of the config's normal opponent.

    Raises:
        ConfigError: it names none.
    """
    reference = config.normal_opponent
    if reference.get("path") is None:
        raise ConfigError("this defence needs normal_opponent.type and normal_opponent.path")
    return reference.get("type") or "ppo", str(reference["path"])


def best_adversary(config: TrainConfig) -> Best:
    """The best adversary for the victim in `config.adversaries`.

    It is searched by the victim's path, or failing that by its weights, so that trees and victims
    may move.

    Raises:
        ConfigError: no victim, or no tree to search.
        RunError: no such tree, or it holds no adversary for this victim.
    """
    victim, path, digest = _victim_identity(config)
    return best_policies(str(config.adversaries)).lookup(
        config.env_name, victim, path, fingerprint=digest
    )


def all_adversaries(config: TrainConfig) -> list[str]:
    """Final policies of all finished runs in `config.adversaries` that attacked the victim.

    Raises:
        ConfigError: no victim, or no tree to search.
        RunError: no such tree, or it holds no adversary for this victim.
    """
    victim, path, digest = _victim_identity(config)
    assert config.adversaries is not None
    found = []
    for run in find_runs(config.adversaries):
        try:
            record = read_run(run)
        except RunError:
            continue
        same_game = record.env_name == config.env_name and record.embed_index == victim
        known = record.config.get("fingerprints")
        hashes = known.get("embedded") if isinstance(known, dict) else None
        victims = {p for _, p in record.embedded}
        attacked = path in victims or (digest is not None and digest in (hashes or ()))
        if record.finished and same_game and attacked:
            found.append(str(run))
    if not found:
        raise RunError(f"{config.adversaries} holds no finished run against {path}")
    return found


def _victim_identity(config: TrainConfig) -> tuple[int, str, str | None]:
    if config.adversaries is None:
        raise ConfigError("this defence needs adversaries, a tree of runs to search")
    kind, path = victim_of(config)
    victim = victim_index(config.env_name)
    directory = resolve_policy_directory(kind, path, config.env_name, victim, config.zoo_dir)
    return victim, path, None if directory is None else fingerprint(Path(directory))


def _check_ratio(value: Any) -> None:
    require_within("normal_ratio", value, 0, 1, open_low=True, open_high=True)
