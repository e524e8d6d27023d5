"""Many training runs at once on Ray Tune: `python -m aprl.multi.train with NAME ...`.

`aprl.multi.sweep` (of `aprl.multi.runner`) is the function behind the command.
"""

import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from aprl.configs.checks import with_types
from aprl.configs.multi_train import NAMED_CONFIGS
from aprl.envs import make_vec
from aprl.errors import RunError
from aprl.experiment import (
    RESUME,
    CommandExperiment,
    as_plain,
    command_line,
    output,
    user_errors,
)
from aprl.files import require_path
from aprl.locks import is_locked
from aprl.multi.config import SweepConfig
from aprl.multi.runner import (
    RESULTS_FILE,
    SWEEP_FILE,
    Plan,
    SweepResult,
    plan,
    read_sweep,
    resume_sweep,
    sweep,
)
from aprl.multi.trials import map_plain
from aprl.training.config import TrainConfig

_STEPPING_ENVS, _STEPPING_S = 64, 0.5
_SHOWN, _MISSING_SHOWN = 200, 5


def core_hours(configs: Iterable[TrainConfig]) -> float:
    """Hours of one core for the physics of runs, from a short measurement of each game."""
    rates: dict[str, float] = {}
    hours = 0.0
    for config in configs:
        if config.env_name not in rates:
            rates[config.env_name] = _steps_per_second(config.env_name)
        hours += config.total_timesteps / rates[config.env_name] / 3600
    return hours


def _steps_per_second(env_name: str) -> float:
    """Of one thread, with random actions."""
    options = {"num_threads": 1} if env_name.startswith("multicomp/") else {}
    venv = make_vec(env_name, _STEPPING_ENVS, **options)
    venv.reset()
    spaces = venv.action_spaces
    for space in spaces:
        space.seed(0)
    steps, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < _STEPPING_S:
        venv.step([np.stack([s.sample() for _ in range(_STEPPING_ENVS)]) for s in spaces])
        steps += _STEPPING_ENVS
    venv.close()
    return steps / (time.perf_counter() - begin)


def plan_tables(planned: Plan) -> list[Table | str]:
    """All trials, what they cost, and which of them lack something that they need."""
    trials = sorted([*planned.trials, *(t for t, _ in planned.lacking)], key=lambda t: t.number)
    columns = list(dict.fromkeys(key for trial in trials for key in trial.values))
    table = Table(title=f"{planned.grid.name}: {len(trials)} trials")
    for column in ("trial", *columns):
        table.add_column(column, overflow="fold")
    for trial in trials[:_SHOWN]:
        plain = map_plain(trial.values)
        table.add_row(str(trial.number), *(_cell(plain.get(column)) for column in columns))
    if len(trials) > _SHOWN:
        table.add_row("...", *("" for _ in columns))
    configs = [trial.config() for trial in trials]
    steps = sum(config.total_timesteps for config in configs)
    parts: list[Table | str] = [
        table,
        f"{len(trials)} trials, {steps:,} environment steps; the physics alone takes "
        f"{core_hours(configs):,.1f} core-hours on a machine like this one",
    ]
    missing = planned.left_out
    if missing:
        parts.append(f"{len(missing)} would be left out, for lack of what they need:")
        parts += [f"  {text}" for text in missing[:_MISSING_SHOWN]]
    if len(missing) > _MISSING_SHOWN:
        parts.append(f"  and {len(missing) - _MISSING_SHOWN} more")
    return parts


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def result_table(result: SweepResult) -> Table:
    """Each trial's end."""
    table = Table(title=str(result.directory))
    columns = [c for c in result.frame.columns if c not in ("low", "high", "run_dir", "error")]
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in result.frame[columns].head(_SHOWN).itertuples(index=False):
        table.add_row(*(_cell(value) for value in row))
    return table


def newest_sweep(root_dir: Path | str) -> Path:
    """The sweep that `resume=True` means: the newest one that no process is at work on.

    Raises:
        RunError: there is none that is unfinished.
    """
    found = [
        path.parent
        for path in Path(root_dir).glob(f"*/*/{SWEEP_FILE}")
        if not is_locked(path.parent) and not (path.parent / RESULTS_FILE).exists()
    ]
    if not found:
        raise RunError(f"no unfinished sweep in {root_dir} that no process is at work on")
    return max(found, key=lambda path: path.name)


def _checked_root(values: dict[str, Any]) -> Path:
    """Check a config before anything is recorded; the root of the sweep that it describes."""
    resumed = values.pop("resume")
    config = with_types(SweepConfig.from_dict(values))
    if resumed is None:
        config.check()
    elif resumed is not True:
        directory = require_path(str(resumed), "resume")
        read_sweep(directory)
        return directory.parent.parent
    return require_path(config.root_dir, "root_dir")


sweep_experiment = CommandExperiment(
    "multi_train", SweepConfig, NAMED_CONFIGS, extra=RESUME, checked_root=_checked_root
)


@sweep_experiment.main
def _run(_config: dict[str, Any]) -> str | None:
    """Sweep as configured; `print_config` shows every option."""
    with user_errors():
        values = as_plain(_config)
        resumed = values.pop("resume")
        config = with_types(SweepConfig.from_dict(values))
        console = output()
        if resumed is None and config.dry_run:
            _print_all(console, plan_tables(plan(config)))
            return None
        if resumed is None:
            result = sweep(config, console)
        else:
            directory = newest_sweep(config.root_dir) if resumed is True else Path(str(resumed))
            result = resume_sweep(directory, progress=config.progress)
        console.print(result_table(result))
        console.print(f"sweep: {result.directory}", soft_wrap=True)
        if result.failed:
            errors = result.frame["error"].dropna()
            raise RunError(
                f"{result.failed} of {len(result.frame)} trials failed, the first with: "
                f"{errors.iloc[0]}; resume={result.directory} tries them again"
            )
        return str(result.directory)


def _print_all(console: Console, parts: list[Table | str]) -> None:
    for part in parts:
        console.print(part, soft_wrap=isinstance(part, str))


def main() -> None:
    """Command line."""
    command_line(sweep_experiment, default_root="data/multi_train", argv=sys.argv)


if __name__ == "__main__":
    main()
