"""Compare methods: `python -m aprl.stackelberg.compare with methods=... worlds=... seeds=...`.

`compare` and `resume` are the functions behind the command; they know nothing of Sacred.
"""

import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pandas as pd

from aprl.configs.checks import check_entries
from aprl.errors import RunError
from aprl.experiment import (
    RESUME,
    CommandExperiment,
    as_plain,
    command_line,
    output,
    user_errors,
)
from aprl.files import PathLike, read_json, require_path, write_json
from aprl.locks import DirectoryLock, is_locked
from aprl.runs import CONFIG_FILE, new_run_dir
from aprl.stackelberg.comparison import make_jobs, run_jobs
from aprl.stackelberg.config import CompareConfig
from aprl.stackelberg.finished import FinishedRuns
from aprl.stackelberg.methods import DEFAULT_METHOD
from aprl.stackelberg.report import REPORT_FILE, printed_table, write_report
from aprl.training.interruption import Interrupted, Terminated, terminable
from aprl.training.records import ProgressDisplay

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
        file = directory / FINISHED_FILE
        if not file.exists() or b"\n" not in file.read_bytes():  # nothing to continue from
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


def newest_unfinished(root_dir: PathLike) -> Path:
    """The comparison that `resume=True` means: the newest in `root_dir` that can be continued.

    Raises:
        RunError: there is none.
    """
    candidates = [
        file.parent
        for file in Path(root_dir).glob(f"*/{FINISHED_FILE}")
        if not (file.parent / REPORT_FILE).exists() and not is_locked(file.parent)
    ]
    if not candidates:
        raise RunError(f"no unfinished comparison in {root_dir} that no process is at work on")
    return max(candidates, key=lambda directory: directory.name)  # names begin with the time


def _run_missing(
    directory: Path, config: CompareConfig, on_progress: Callable[[int], None] | None
) -> tuple[Path, pd.DataFrame]:
    assert config.methods is not None
    lock = DirectoryLock(directory)
    lock.acquire()
    finished = FinishedRuns(directory / FINISHED_FILE)
    try:
        seeds = range(config.seed, config.seed + config.seeds)
        jobs = make_jobs(config.methods, config.budgets, seeds)
        outcomes = run_jobs(jobs, config.processes, on_progress, finished)
        reference = DEFAULT_METHOD if DEFAULT_METHOD in config.methods else config.methods[0]
        return directory, write_report(directory, outcomes, reference)
    except (KeyboardInterrupt, Terminated) as stop:
        if not finished.outcomes:
            raise
        signum = signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT
        done = len(finished.outcomes)
        raise Interrupted(signum, directory, done, "aprl.stackelberg.compare", "runs") from None
    finally:
        lock.release()


def _chosen(values: dict[str, Any]) -> tuple[CompareConfig, Path | None]:
    """The config that a command line means, and the directory to continue in, if any."""
    resumed = values.pop("resume")
    check_entries(CompareConfig, values)
    config = CompareConfig(**values)
    if resumed is None:
        return config.resolve(), None
    root = require_path(config.root_dir, "root_dir")
    directory = newest_unfinished(root) if resumed is True else Path(str(resumed))
    return replace(read_config(directory), progress=config.progress), directory


def _checked_root(values: dict[str, Any]) -> Path:
    config, directory = _chosen(values)
    return Path(config.root_dir) if directory is None else directory.parent


compare_experiment = CommandExperiment(
    "stackelberg_compare",
    CompareConfig,
    {"quick": {"methods": [DEFAULT_METHOD, "mal_fixed", "dyna_q_tuned", "psrl"], "seeds": 3}},
    extra=RESUME,
    checked_root=_checked_root,
)


@compare_experiment.main
def _run(_config: dict[str, Any]) -> str:
    """Compare as configured, or continue; `print_config` shows every option."""
    with user_errors(), terminable():
        config, directory = _chosen(as_plain(_config))
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
        console.print(f"report: {directory / REPORT_FILE}", soft_wrap=True)
        return str(directory)


def main() -> None:
    """Command line."""
    command_line(compare_experiment, default_root="data/stackelberg", argv=sys.argv)


if __name__ == "__main__":
    main()
