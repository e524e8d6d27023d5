"""Learn a policy from demonstrations: `python -m aprl.imitation.train with gail|airl|bc ...`.

`imitate` is the function behind the command; it takes an `ImitationConfig` and knows nothing of
Sacred.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from aprl.configs.imitation import NAMED_CONFIGS
from aprl.experiment import (
    RESUME,
    CommandExperiment,
    as_plain,
    command_line,
    output,
    user_errors,
)
from aprl.imitation.config import ImitationConfig
from aprl.imitation.evaluate import Comparison
from aprl.imitation.run import ImitationRun, resume_run, start_run
from aprl.train import newest_unfinished


@dataclass(frozen=True)
class ImitationResult:
    """What a run left behind.

    Attributes:
        run_dir: the run directory.
        policy_dir: the final policy, `<run_dir>/final_model`.
        comparison: returns beside the expert's; None unless `eval_episodes` asked for episodes.
    """

    run_dir: Path
    policy_dir: Path
    comparison: Comparison | None


def imitate(config: ImitationConfig, console: Console | None = None) -> ImitationResult:
    """Learn from demonstrations, from a config to the final policy and its table.

    Args:
        config: as given by the user.
        console: where the table is printed; None prints nothing.

    Raises:
        AprlError: bad input, before training starts; or a training that failed.
        Interrupted: by SIGINT or SIGTERM, with a checkpoint saved.
    """
    return _finish(start_run(config), console)


def resume(run_dir: Path | str, console: Console | None = None) -> ImitationResult:
    """Continue an interrupted run from its last checkpoint; see `imitate`."""
    return _finish(resume_run(run_dir), console)


def _finish(run: ImitationRun, console: Console | None) -> ImitationResult:
    policy_dir = run.train()
    comparison = run.evaluate() if run.config.eval_episodes else None
    if console is not None and comparison is not None:
        title = f"{run.config.algorithm} on {run.config.env_name}"
        console.print(comparison.table(title))
    return ImitationResult(run.run_dir, policy_dir, comparison)


imitation_experiment = CommandExperiment("imitation", ImitationConfig, NAMED_CONFIGS, extra=RESUME)


@imitation_experiment.main
def _run(_config: dict[str, Any]) -> str:
    """Imitate as configured; `print_config` shows every option."""
    with user_errors():
        values = as_plain(_config)
        resumed = values.pop("resume")
        config = ImitationConfig.from_dict(values)
        console = output()
        if resumed:
            path = str(resumed)
            if resumed is True:
                path = str(newest_unfinished(config.root_dir))
            result = resume(path, console)
        else:
            result = imitate(config, console)
        console.print(f"policy: {result.policy_dir}", soft_wrap=True)
        return str(result.policy_dir)


def main() -> None:
    """Command line."""
    command_line(imitation_experiment, default_root="data/imitation", argv=sys.argv)


if __name__ == "__main__":
    main()
