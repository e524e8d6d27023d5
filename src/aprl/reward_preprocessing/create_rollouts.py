"""Play and save trajectories: `python -m aprl.reward_preprocessing.create_rollouts with env....`.

`create_rollouts` is the function behind the command; it knows nothing of Sacred.
"""

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from aprl.configs.checks import require_at_least
from aprl.errors import ConfigError
from aprl.experiment import CommandExperiment, as_plain, command_line, output, user_errors
from aprl.files import require_writable_directory
from aprl.reward_preprocessing.configs import ENV_PART, RESULTS_DIR, RUNS_DIR, read_config
from aprl.reward_preprocessing.environments import EnvConfig
from aprl.reward_preprocessing.rollouts import RolloutSource, collect, parse_sources
from aprl.reward_preprocessing.trajectories import save_trajectories


@dataclass
class CreateRolloutsConfig:
    """Options of `aprl.reward_preprocessing.create_rollouts`."""

    root_dir: str = RUNS_DIR  # records of the experiment go to `sacred/create_rollouts` in here
    env: EnvConfig = field(default_factory=EnvConfig)
    rollouts: list[Any] = field(default_factory=list)  # sources, each with a name of its own
    min_timesteps: int | list[int] = 10_000  # steps at least, of whole episodes; or one per source
    out_dir: str = f"{RESULTS_DIR}/rollouts"  # gets <name>.npz per source
    seed: int = 0

    def check(self) -> tuple[list[RolloutSource], list[int]]:
        """Refuse what cannot work; return the sources and the steps of each.

        Raises:
            ConfigError: a wrong value.
        """
        self.env.check()
        require_at_least("seed", self.seed, 0)
        sources = parse_sources(self.rollouts)
        steps = self.min_timesteps
        counts = list(steps) if isinstance(steps, list) else [steps] * len(sources)
        if len(counts) != len(sources):
            raise ConfigError(
                f"min_timesteps has {len(counts)} entries for {len(sources)} rollouts; give one "
                "number, or one per rollout"
            )
        for count in counts:
            require_at_least("min_timesteps", count, 1)
        names = [source.name for source in sources]
        for name in names:
            if not re.fullmatch(r"[\w.+-]+", name):
                raise ConfigError(
                    f"rollout {name!r} needs a name that a file can have (letters, digits, . _ + -)"
                )
        if len(set(names)) < len(names):
            raise ConfigError(f"two rollouts have the same name, of {names}")
        return sources, counts


def create_rollouts(config: CreateRolloutsConfig) -> list[Path]:
    """Play each source and save its trajectories.

    Args:
        config: see `CreateRolloutsConfig`.

    Returns:
        One `.npz` file per source.

    Raises:
        AprlError: bad input; files of sources that came before the bad one may have been written.
    """
    sources, counts = config.check()
    folder = require_writable_directory(config.out_dir)
    seeds = np.random.SeedSequence(config.seed).spawn(len(sources))
    return [
        save_trajectories(
            folder / f"{source.name}.npz",
            collect(source, config.env.make, count, seed, config.env.n_envs),
        )
        for source, count, seed in zip(sources, counts, seeds, strict=True)
    ]


create_rollouts_experiment = CommandExperiment(
    "create_rollouts",
    CreateRolloutsConfig,
    {"random_rollouts": {"rollouts": [{"random_prob": 1.0, "name": "random"}]}},
    parts={"env": ENV_PART},
)


@create_rollouts_experiment.main
def _run(_config: dict[str, Any]) -> list[str]:
    """Play and save; `print_config` shows every option."""
    with user_errors():
        config = read_config(CreateRolloutsConfig, as_plain(_config))
        paths = create_rollouts(config)
        for path in paths:
            output().print(f"rollouts: {path}", soft_wrap=True)
        return [str(path) for path in paths]


def main() -> None:
    """Command line."""
    command_line(create_rollouts_experiment, default_root=RUNS_DIR, argv=sys.argv)


if __name__ == "__main__":
    main()
