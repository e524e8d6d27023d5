"""Compare methods: `python -m aprl.stackelberg.compare with methods=... worlds=... seeds=...`.

`compare` is the function behind the command; it knows nothing of Sacred.
"""

import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from aprl.configs.checks import check_entries
from aprl.errors import RunError
from aprl.experiment import as_plain, command_line, new_experiment, output, user_errors
from aprl.files import PathLike, read_json, write_json
from aprl.runs import CONFIG_FILE
from aprl.stackelberg.comparison import make_jobs, run_jobs
from aprl.stackelberg.config import CompareConfig
from aprl.stackelberg.finished import FinishedRuns
from aprl.stackelberg.methods import DEFAULT_METHOD
from aprl.stackelberg.report import printed_table, write_report
from aprl.training.interruption import Interrupted, Terminated, terminable
from aprl.training.records import ProgressDisplay
from aprl.training.run import new_run_dir

FINISHED_FILE = "finished.jsonl"


def compare(
    config: CompareConfig, on_progress: Callable[[int], None] | None = None
) -> tuple[Path, pd.DataFrame]:
    """Run every method in every world with every seed, and write the report.

    Args:
        config: as given, not resolved.
        on_progress: told the number of finished runs.

    Returns:
        The report's directory, and its summary (`aprl.stackelberg.comparison.summary_table`).

    Raises:
        AprlError: bad input, before anything is started or written; or an output that cannot be
            written.
        Interrupted: by Ctrl-C or SIGTERM; finished runs are kept, and `resume` goes on from there.
    """
    config = config.resolve()
    directory = new_run_dir(config.root_dir, config.exp_name)
    try:
        write_json(directory / CONFIG_FILE, asdict(config))
        return _run_missing(directory, config, on_progress)
    except BaseException:
        if not (directory / FINISHED_FILE).exists():
            shutil.rmtree(directory, ignore_errors=True)
        raise


def resume(
    directory: PathLike, on_progress: Callable[[int], None] | None = None
) -> tuple[Path, pd.DataFrame]:
    """Continue a comparison that was stopped, with its own config; see `compare`."""
    return _run_missing(Path(directory), read_config(directory), on_progress)


def read_config(directory: PathLike) -> CompareConfig:
    """The config of a comparison's directory.

    Raises:
        AprlError: there is none, or it is damaged.
    """
    path = Path(directory) / CONFIG_FILE
    values = read_json(path)
    if not isinstance(values, dict):
        raise RunError(f"{path} is no comparison's config")
    check_entries(CompareConfig, values)
    return CompareConfig(**values).resolve()


def _run_missing(
    directory: Path, config: CompareConfig, on_progress: Callable[[int], None] | None
) -> tuple[Path, pd.DataFrame]:
    finished = FinishedRuns(directory / FINISHED_FILE)
    assert config.methods is not None
    seeds = range(config.seed, config.seed + config.seeds)
    jobs = make_jobs(config.methods, config.budgets, seeds)
    try:
        outcomes = run_jobs(jobs, config.processes, on_progress, finished)
        reference = DEFAULT_METHOD if DEFAULT_METHOD in config.methods else config.methods[0]
        return directory, write_report(directory, outcomes, reference)
    except (KeyboardInterrupt, Terminated) as stop:
        if not finished.outcomes:
            raise
        signum = signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT
        done = len(finished.outcomes)
        raise Interrupted(signum, directory, done, "aprl.stackelberg.compare", "runs") from None


compare_experiment = new_experiment(
    "stackelberg_compare",
    {**asdict(CompareConfig()), "resume": None},
    {"quick": {"methods": [DEFAULT_METHOD, "mal_fixed", "dyna_q_tuned", "psrl"], "seeds": 3}},
)


@compare_experiment.main
def _run(_config: dict[str, Any]) -> str:
    """Compare as configured, or continue with `resume=<directory>`."""
    with user_errors(), terminable():
        values = as_plain(_config)
        directory = values.pop("resume")
        check_entries(CompareConfig, values)
        config = CompareConfig(**values).resolve() if directory is None else read_config(directory)
        assert config.methods is not None
        total = len(config.methods) * len(config.worlds) * config.seeds
        display = ProgressDisplay(total, enabled=config.progress, verb="comparing", unit="runs")
        try:
            if directory is None:
                directory, summary = compare(config, display.update)
            else:
                directory, summary = resume(directory, display.update)
        finally:
            display.close()
        console = output()
        console.print(printed_table(summary))
        console.print(f"report: {directory / 'report.html'}", soft_wrap=True)
        return str(directory)


def main() -> None:
    """Command line."""
    command_line(compare_experiment, default_root="data/stackelberg", argv=sys.argv)


if __name__ == "__main__":
    main()
