"""Clone a victim from observed play: `python -m aprl.imitation.clone_victim with ...`.

A black-box attack: whoever sees a victim play, but not its weights, fits a clone to its actions,
trains an adversary against the clone (`python -m aprl.train with embed_type=ppo embed_path=<out>`),
and plays that adversary against the victim itself. How much of its win rate survives is its
transfer rate.
"""

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from rich.table import Table

from aprl.configs.checks import check_entries, require_at_least, with_types
from aprl.envs import check_env_id
from aprl.envs.names import victim_index
from aprl.errors import ConfigError, DemonstrationError
from aprl.experiment import CommandExperiment, as_plain, command_line, output, user_errors
from aprl.files import write_json
from aprl.imitation.bc import BCConfig, Clone, clone
from aprl.imitation.demonstrations import Demonstrations, load_demonstrations
from aprl.imitation.trajectories import flatten
from aprl.policies.store import save_policy
from aprl.score_agent import ScoreConfig, score
from aprl.stats import WinRate
from aprl.training.records import ProgressDisplay

EVALUATION_FILE = "clone.json"


@dataclass
class CloneConfig:
    """Options of `aprl.imitation.clone_victim`."""

    root_dir: str = "data/clones"  # records of the experiment go to `sacred/` in here
    out: str | None = None  # directory of the clone; None: <root_dir>/<game>
    env_name: str = "multicomp/RunToGoalAnts-v1"
    agent_idx: int | None = None  # whom to clone; None: the game's victim
    demonstrations: str | None = None  # .npz that score_agent recorded; None: play and record now

    victim_type: str = "ppo"  # the original: observed when recording, compared with when scoring
    victim_path: str | None = "data/victims/RunToGoalAnts-v1"
    opponent_type: str = "ppo"  # who plays against it
    opponent_path: str = "data/opponents/RunToGoalAnts-v1"
    zoo_dir: str = "data/agent_zoo"  # imported published policies
    episodes: int = 200  # games to observe
    num_env: int = 64  # environments in the batch

    epochs: int = 100  # at most; the best on held-out transitions counts
    batch_size: int = 256  # transitions per update
    learning_rate: float = 1e-3  # of Adam
    eval_episodes: int = 200  # games of clone and original against the opponent; 0: none
    progress: bool = True  # show progress on the terminal
    seed: int = 0

    @property
    def index(self) -> int:
        """Index in the game of the player that is cloned."""
        return victim_index(self.env_name) if self.agent_idx is None else self.agent_idx

    @property
    def out_dir(self) -> Path:
        """Where the clone is written."""
        if self.out is not None:
            return Path(self.out)
        return Path(self.root_dir) / self.env_name.split("/")[-1]

    def bc(self) -> BCConfig:
        """The part that `aprl.imitation.bc.clone` takes."""
        return BCConfig(self.epochs, self.batch_size, self.learning_rate)

    def check(self) -> "CloneConfig":
        """A copy with values of the declared types.

        Raises:
            ConfigError: anything that cannot work; no environment has been built yet.
            PolicyError: a policy that is missing or damaged.
        """
        config = with_types(self)
        check_env_id(config.env_name)
        if config.agent_idx not in (None, 0, 1):
            raise ConfigError(f"agent_idx must be 0 or 1, got {config.agent_idx!r}")
        for name, least in (("episodes", 1), ("num_env", 1), ("eval_episodes", 0), ("seed", 0)):
            require_at_least(name, getattr(config, name), least)
        config.bc().check()
        if config.victim_path is None and (config.demonstrations is None or config.eval_episodes):
            raise ConfigError("give victim_path, or demonstrations= with eval_episodes=0")
        if config.demonstrations is None or config.eval_episodes:
            config.match(config.victim_type, str(config.victim_path), 1, 0).check()
        return config

    def match(self, kind: str, path: str, episodes: int, seed: int) -> ScoreConfig:
        """A match-up of a policy in the victim's place against the opponent."""
        players = [(self.opponent_type, self.opponent_path)] * 2
        players[self.index] = (kind, path)
        (a_type, a_path), (b_type, b_path) = players
        return ScoreConfig(
            env_name=self.env_name,
            agent_a_type=a_type,
            agent_a_path=a_path,
            agent_b_type=b_type,
            agent_b_path=b_path,
            num_env=self.num_env,
            episodes=episodes,
            zoo_dir=self.zoo_dir,
            seed=seed,
        )


@dataclass(frozen=True)
class ClonedVictim:
    """A clone and how close it is.

    Attributes:
        directory: of the clone's policy.
        observed: transitions that it was fitted to.
        action_error: root mean square difference of its mean action from the observed one, in units
            of the action; for discrete actions the fraction that differs.
        clone_wins: of the clone against the opponent; None without eval_episodes.
        victim_wins: of the original against the same opponent.
    """

    directory: Path
    observed: int
    action_error: float
    clone_wins: WinRate | None
    victim_wins: WinRate | None


def clone_victim(
    config: CloneConfig, on_epoch: Callable[[int, float, float], None] | None = None
) -> ClonedVictim:
    """Observe a victim, clone it, and compare the clone with it.

    Args:
        config: checked here.
        on_epoch: see `aprl.imitation.bc.clone`.

    Raises:
        AprlError: bad input.
    """
    config = config.check()
    demonstrations = _observe(config)
    fitted = clone(demonstrations, config.bc(), config.seed, on_epoch=on_epoch)
    steps = sum(len(t) for t in demonstrations.trajectories)
    directory = save_policy(
        fitted.policy,
        config.out_dir,
        {
            "env_name": config.env_name,
            "agent_index": config.index,
            "algorithm": "bc",
            "seed": config.seed,
            "steps": 0,
            "observed_games": len(demonstrations.trajectories),
            "observed_steps": steps,
            "demonstrations": demonstrations.provenance,
        },
    )
    clone_wins = victim_wins = None
    if config.eval_episodes:
        clone_wins, victim_wins = (
            score(config.match(kind, path, config.eval_episodes, config.seed + 1)).win_rate(
                config.index
            )
            for kind, path in (
                ("ppo", str(directory)),
                (config.victim_type, str(config.victim_path)),
            )
        )
    result = ClonedVictim(
        directory, steps, _action_error(demonstrations, fitted), clone_wins, victim_wins
    )
    _write_record(config, fitted, result)
    return result


def _observe(config: CloneConfig) -> Demonstrations:
    path = config.demonstrations
    if path is None:
        path = str(config.out_dir.with_name(f"{config.out_dir.name}.npz"))
        match = config.match(
            config.victim_type, str(config.victim_path), config.episodes, config.seed
        )
        match.record, match.record_agent = path, config.index
        score(match)
    demonstrations = load_demonstrations(path)
    recorded = (
        demonstrations.provenance.get("env_name"),
        demonstrations.provenance.get("agent_index"),
    )
    if recorded[0] is not None and recorded != (config.env_name, config.index):
        raise DemonstrationError(
            f"{path} was recorded from agent {recorded[1]} of {recorded[0]}, not from agent "
            f"{config.index} of {config.env_name}"
        )
    return demonstrations


def _action_error(demonstrations: Demonstrations, fitted: Clone) -> float:
    steps = flatten(demonstrations.trajectories)
    actions, _ = fitted.policy.predict(steps.obs, deterministic=True)
    if isinstance(demonstrations.action_space, spaces.Discrete):
        return float((actions != steps.actions).mean())
    return float(np.sqrt(((actions - steps.actions) ** 2).mean()))


def _write_record(config: CloneConfig, fitted: Clone, result: ClonedVictim) -> None:
    rates = {"clone": result.clone_wins, "victim": result.victim_wins}
    write_json(
        result.directory.parent / f"{result.directory.name}.{EVALUATION_FILE}",
        {
            "config": asdict(config),
            "observed_steps": result.observed,
            "action_error": result.action_error,
            "validation_loss": fitted.validation_loss[fitted.best_epoch],
            "epochs": fitted.best_epoch + 1,
            "wins": {
                name: {"wins": rate.wins, "games": rate.games, "interval": list(rate.interval)}
                for name, rate in rates.items()
                if rate is not None
            },
        },
    )


def clone_table(config: CloneConfig, result: ClonedVictim) -> Table:
    """Wins of the clone and of the original against the opponent."""
    table = Table(title=f"{config.env_name}, against {config.opponent_type} {config.opponent_path}")
    for column in ("policy", "wins"):
        table.add_column(column)
    table.add_row("clone", str(result.clone_wins))
    table.add_row("victim", str(result.victim_wins))
    return table


clone_experiment = CommandExperiment("clone_victim", CloneConfig)


@clone_experiment.main
def _run(_config: dict[str, Any]) -> str:
    """Clone as configured; `print_config` shows every option."""
    with user_errors():
        values = as_plain(_config)
        check_entries(CloneConfig, values)
        config = CloneConfig(**values)
        display = ProgressDisplay(
            config.epochs, enabled=config.progress, verb="cloning", unit="epochs"
        )
        try:
            result = clone_victim(
                config,
                lambda epoch, train, held: display.update(epoch, f"validation loss {held:.3f}"),
            )
        finally:
            display.close()
        console = output()
        if result.clone_wins is not None:
            console.print(clone_table(config, result))
        console.print(
            f"clone of {result.observed:,} observed steps, action error "
            f"{result.action_error:.3f}: {result.directory}",
            soft_wrap=True,
        )
        return str(result.directory)


def main() -> None:
    """Command line."""
    command_line(clone_experiment, default_root="data/clones", argv=sys.argv)


if __name__ == "__main__":
    main()
