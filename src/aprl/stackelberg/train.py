"""Train one method in one world: `python -m aprl.stackelberg.train with [method] world=...`.

`train` is the function behind the command; it takes a `StackelbergConfig` and knows nothing of
Sacred.
"""

import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.table import Table

from aprl.configs.checks import check_entries
from aprl.experiment import CommandExperiment, as_plain, command_line, output, user_errors
from aprl.files import atomic_path, write_json
from aprl.runs import CONFIG_FILE, STATUS_FILE, new_run_dir
from aprl.stackelberg.config import StackelbergConfig
from aprl.stackelberg.mdp import Task
from aprl.stackelberg.methods import METHODS, make_method
from aprl.stackelberg.oracle import LearnedOracle, pretrain_oracle
from aprl.stackelberg.runner import Run, run_method
from aprl.training.interruption import terminable
from aprl.training.records import ProgressDisplay

CURVE_FILE = "curve.csv"
RESULT_FILE = "result.json"
ORACLE_DIR = "oracle"


@dataclass(frozen=True, eq=False)
class StackelbergRun:
    """What a run left behind.

    Attributes:
        run_dir: with config.json, status.json, curve.csv, result.json, and the learned follower, if
            one was trained, in `oracle`.
        run: the learning curve, exact.
    """

    run_dir: Path
    run: Run


def train(
    config: StackelbergConfig, on_progress: Callable[[int], None] | None = None
) -> StackelbergRun:
    """Run a method from its config to its learning curve.

    Args:
        config: as given, not resolved.
        on_progress: told the number of real samples so far.

    Raises:
        AprlError: bad input, before anything is started or written; or an output that cannot be
            written.
    """
    config = config.resolve()
    assert config.exp_name is not None and config.budget is not None
    world = config.make_world()
    saved = None
    if config.oracle_path is not None:
        saved = LearnedOracle.load(world.task, config.oracle_path)
    run_dir = new_run_dir(config.root_dir, config.exp_name)
    try:
        write_json(run_dir / CONFIG_FILE, asdict(config))
        oracle_seed, run_seed = np.random.SeedSequence(config.seed).spawn(2)
        make_oracle: Callable[[Task], LearnedOracle] | None = None
        if config.oracle == "learned":
            oracle = saved or pretrain_oracle(world.task, config.pretrain_config(), oracle_seed)
            if saved is None:
                provenance = {"world": config.world, "seed": config.seed, **config.pretrain}
                oracle.save(run_dir / ORACLE_DIR, provenance)
            make_oracle = lambda task: oracle  # noqa: E731
        method = make_method(config.method, config.options, make_oracle)
        run = run_method(method, world, config.budget, run_seed, on_progress=on_progress)
        _write_run(run_dir, run)
    except BaseException:  # a run of minutes is begun anew, not continued
        shutil.rmtree(run_dir, ignore_errors=True)
        raise
    return StackelbergRun(run_dir, run)


def _write_run(run_dir: Path, run: Run) -> None:
    curve = pd.DataFrame({"samples": run.samples, "return": run.returns})
    with atomic_path(run_dir / CURVE_FILE) as staged:
        curve.to_csv(staged, index=False)
    solved = run.solved_at
    result: dict[str, Any] = {
        "optimum": run.optimum,
        "final_return": run.final_return,
        "solved_at": int(solved) if np.isfinite(solved) else None,
        "samples_used": run.used,
        "budget": run.budget,
        "ended_by": "budget" if run.used == run.budget else "method",
        "policy": run.policy.tolist(),
    }
    model = getattr(run.result, "model", None)
    if model is not None:
        result["model"] = model.transitions.tolist()
    write_json(run_dir / RESULT_FILE, result)
    status = {"status": "completed", "num_timesteps": run.used, "wall_time_s": run.wall_time_s}
    write_json(run_dir / STATUS_FILE, status)


def result_table(config: StackelbergConfig, run: Run) -> Table:
    """Returns and samples of one run."""
    table = Table(title=f"{config.method} in {config.world}, seed {config.seed}")
    for column in ("real samples", "final return", "optimum", "within 1 % from", "guarantee"):
        table.add_column(column)
    solved = f"{run.solved_at:,.0f} samples" if np.isfinite(run.solved_at) else "never"
    table.add_row(
        f"{run.used:,} of {run.budget:,}",
        f"{run.final_return:.4f}",
        f"{run.optimum:.4f}",
        solved,
        METHODS[config.method].claim,
    )
    return table


# A named config per method. The published ones take far more samples than tabular MAL.
NAMED_CONFIGS: dict[str, dict[str, Any]] = {name: {"method": name} for name in METHODS}
NAMED_CONFIGS["mal_published"]["budget"] = 250_000
NAMED_CONFIGS["pal_published"]["budget"] = 1_250_000


def _chosen(values: dict[str, Any]) -> StackelbergConfig:
    check_entries(StackelbergConfig, values)
    return StackelbergConfig(**values).resolve()


stackelberg_experiment = CommandExperiment(
    "stackelberg_train",
    StackelbergConfig,
    NAMED_CONFIGS,
    checked_root=lambda values: Path(_chosen(values).root_dir),
)


@stackelberg_experiment.main
def _run(_config: dict[str, Any]) -> str:
    """Train as configured; `print_config` shows every option."""
    with user_errors(), terminable():
        config = _chosen(as_plain(_config))
        display = ProgressDisplay(config.budget or 1, enabled=config.progress, unit="samples")
        try:
            trained = train(config, display.update)
        finally:
            display.close()
        console = output()
        console.print(result_table(config, trained.run))
        console.print(f"run: {trained.run_dir}", soft_wrap=True)
        return str(trained.run_dir)


def main() -> None:
    """Command line."""
    command_line(stackelberg_experiment, default_root="data/stackelberg", argv=sys.argv)


if __name__ == "__main__":
    main()
