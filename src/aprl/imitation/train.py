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
from aprl.imitation.run import ImitationRun, evaluate_complete_run, resume_run, start_run
from aprl.runs import FINAL_MODEL_DIR
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
    """Continue an interrupted run, from its last checkpoint or in its evaluation; see `imitate`."""
    evaluated = evaluate_complete_run(run_dir)
    if evaluated is None:
        return _finish(resume_run(run_dir), console)
    config, comparison = evaluated
    return _result(Path(run_dir), config, comparison, console)


def _finish(run: ImitationRun, console: Console | None) -> ImitationResult:
    run.train()
    comparison = run.evaluate() if run.config.eval_episodes else None
    return _result(run.run_dir, run.config, comparison, console)


def _result(
    run_dir: Path, config: ImitationConfig, comparison: Comparison | None, console: Console | None
) -> ImitationResult:
    if console is not None and comparison is not None:
        console.print(comparison.table(f"{config.algorithm} on {config.env_name}"))
    return ImitationResult(run_dir, run_dir / FINAL_MODEL_DIR, comparison)


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
