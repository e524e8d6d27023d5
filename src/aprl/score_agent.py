"""Score a match-up: `python -m aprl.score_agent with env_name=... agent_a_type=... ...`.

`score` is the function behind the command; it knows nothing of Sacred.
"""

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from aprl.configs.checks import check_entries, require_at_least, with_types
from aprl.envs import check_env_id, make_vec
from aprl.envs.names import victim_index
from aprl.errors import ConfigError
from aprl.experiment import as_plain, command_line, new_experiment, output, user_errors
from aprl.imitation.demonstrations import Demonstrations, save_demonstrations
from aprl.imitation.rollouts import GameRecorder
from aprl.policies.loader import load_policy, resolve_policy_directory
from aprl.policies.store import read_header
from aprl.scoring import Score, play_games
from aprl.training.records import ProgressDisplay


@dataclass
class ScoreConfig:
    """Options of `aprl.score_agent`; names as in the original library where it had them."""

    root_dir: str = "data/scores"  # records of the experiment go to `sacred/score` in here
    env_name: str = "multicomp/YouShallNotPassHumans-v1"
    agent_a_type: str = "zoo"  # player 0
    agent_a_path: str = "1"
    agent_b_type: str = "zoo"  # player 1
    agent_b_path: str = "1"
    num_env: int = 64  # environments in the batch
    num_threads: int = 0  # of the physics; 0: every logical CPU
    episodes: int | None = 20  # games, counted exactly; None: as many as fit into timesteps
    timesteps: int | None = None  # bound on environment steps; None: no bound
    max_episode_steps: int | None = None  # None: the game's default limit
    deterministic: bool = False  # both play their modes instead of sampling
    zoo_dir: str = "data/agent_zoo"  # imported published policies
    record: str | None = None  # .npz to write one player's episodes to, as demonstrations
    record_agent: int | None = None  # whose episodes; None: the game's victim
    progress: bool = True  # show progress on the terminal
    seed: int = 0

    def check(self) -> None:
        """Refuse what cannot work, before any environment is built.

        Raises:
            ConfigError: a wrong value.
            PolicyError: a policy that is missing or damaged.
        """
        check_env_id(self.env_name)
        for name, least in (("num_env", 1), ("num_threads", 0), ("seed", 0)):
            require_at_least(name, getattr(self, name), least)
        for name in ("episodes", "timesteps", "max_episode_steps"):
            if getattr(self, name) is not None:
                require_at_least(name, getattr(self, name), 1)
        if self.episodes is None and self.timesteps is None:
            raise ConfigError("give episodes or timesteps; both are None")
        if self.record is not None and Path(self.record).suffix != ".npz":
            raise ConfigError(f"record must name an .npz file, got {self.record}")
        if self.record_agent not in (None, 0, 1):
            raise ConfigError(f"record_agent must be 0 or 1, got {self.record_agent!r}")
        for index, (kind, path) in enumerate(self.agents):
            directory = resolve_policy_directory(kind, path, self.env_name, index, self.zoo_dir)
            if directory is not None:
                read_header(directory)

    @property
    def agents(self) -> list[tuple[str, str]]:
        """Type and path of players 0 and 1."""
        return [
            (self.agent_a_type, str(self.agent_a_path)),
            (self.agent_b_type, str(self.agent_b_path)),
        ]

    @property
    def recorded(self) -> int:
        """Index of the player whose episodes are recorded."""
        return victim_index(self.env_name) if self.record_agent is None else self.record_agent


def score(config: ScoreConfig, on_progress: Callable[[int], None] | None = None) -> Score:
    """Play the match-up that `config` describes.

    Args:
        config: checked here.
        on_progress: told the number of finished games after each step.

    Raises:
        AprlError: bad input.
    """
    config = with_types(config)
    config.check()
    env_seed, *agent_seeds = np.random.SeedSequence(config.seed).spawn(3)
    num_env = config.num_env if config.episodes is None else min(config.num_env, config.episodes)
    options: dict[str, Any] = {}
    if config.max_episode_steps is not None:
        options["max_episode_steps"] = config.max_episode_steps
    if config.env_name.startswith("multicomp/"):
        options["num_threads"] = config.num_threads
    venv = make_vec(config.env_name, num_env, env_seed, **options)
    policies = [
        load_policy(
            kind,
            path,
            observation_space=venv.observation_spaces[index],
            action_space=venv.action_spaces[index],
            env_name=config.env_name,
            index=index,
            seed=agent_seeds[index],
            zoo_dir=config.zoo_dir,
        )
        for index, (kind, path) in enumerate(config.agents)
    ]
    recorder = GameRecorder(venv.num_envs, config.recorded) if config.record else None
    result = play_games(
        venv,
        policies,
        config.episodes,
        config.timesteps,
        config.deterministic,
        on_progress,
        recorder,
    )
    venv.close()
    if recorder is not None and config.record is not None:
        kind, path = config.agents[config.recorded]
        provenance = {
            "env_name": config.env_name,
            "agent_index": config.recorded,
            "policy": {"type": kind, "path": path},
            "seed": config.seed,
        }
        spaces = venv.observation_spaces[config.recorded], venv.action_spaces[config.recorded]
        episodes = Demonstrations(tuple(recorder.finished), *spaces, provenance)
        save_demonstrations(episodes, config.record)
    return result


def score_table(config: ScoreConfig, result: Score) -> Table:
    """Wins of each player and ties, with counts and 95 % Wilson intervals."""
    table = Table(title=f"{config.env_name}, {result.games} games")
    for column in ("player", "policy", "wins"):
        table.add_column(column)
    for index, (kind, path) in enumerate(config.agents):
        table.add_row(str(index), f"{kind} {path}", str(result.win_rate(index)))
    table.add_row("", "ties", f"{result.ties}/{result.games}")
    return table


score_experiment = new_experiment("score", asdict(ScoreConfig()), {})


@score_experiment.main
def _run(_config: dict[str, Any]) -> dict[str, Any]:
    """Score as configured; `print_config` shows every option."""
    with user_errors():
        values = as_plain(_config)
        check_entries(ScoreConfig, values)
        config = with_types(ScoreConfig(**values))
        enabled = config.progress and config.episodes is not None
        display = ProgressDisplay(
            config.episodes or 1, enabled=enabled, verb="scoring", unit="games"
        )
        try:
            result = score(config, on_progress=display.update)
        finally:
            display.close()
        output().print(score_table(config, result))
        return result.to_dict()


def main() -> None:
    """Command line."""
    command_line(score_experiment, default_root="data/scores", argv=sys.argv)


if __name__ == "__main__":
    main()
