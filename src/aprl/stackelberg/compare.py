"""Compare methods: `python -m aprl.stackelberg.compare with methods=... worlds=... seeds=...`.

`compare` is the function behind the command; it knows nothing of Sacred.
"""

import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from aprl.configs.checks import check_entries
from aprl.experiment import CommandExperiment, as_plain, command_line, output, user_errors
from aprl.files import write_json
from aprl.runs import CONFIG_FILE, new_run_dir
from aprl.stackelberg.comparison import make_jobs, run_jobs
from aprl.stackelberg.config import CompareConfig
from aprl.stackelberg.methods import DEFAULT_METHOD
from aprl.stackelberg.report import printed_table, write_report
from aprl.training.records import ProgressDisplay


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
    """
    config = config.resolve()
    assert config.methods is not None
    directory = new_run_dir(config.root_dir, config.exp_name)
    try:
        write_json(directory / CONFIG_FILE, asdict(config))
        seeds = range(config.seed, config.seed + config.seeds)
        jobs = make_jobs(config.methods, config.budgets, seeds)
        outcomes = run_jobs(jobs, config.processes, on_progress)
        reference = DEFAULT_METHOD if DEFAULT_METHOD in config.methods else config.methods[0]
        return directory, write_report(directory, outcomes, reference)
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise


compare_experiment = CommandExperiment(
    "stackelberg_compare",
    CompareConfig,
    {"quick": {"methods": [DEFAULT_METHOD, "mal_fixed", "dyna_q_tuned", "psrl"], "seeds": 3}},
)


@compare_experiment.main
def _run(_config: dict[str, Any]) -> str:
    """Compare as configured; `print_config` shows every option."""
    with user_errors():
        values = as_plain(_config)
        check_entries(CompareConfig, values)
        config = CompareConfig(**values).resolve()
        assert config.methods is not None
        total = len(config.methods) * len(config.worlds) * config.seeds
        display = ProgressDisplay(total, enabled=config.progress, verb="comparing", unit="runs")
        try:
            directory, summary = compare(config, display.update)
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
