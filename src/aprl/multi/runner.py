"""Run a sweep on Ray Tune, go on with one that was stopped, and collect what came out."""

import os
import signal
import time
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from aprl import __version__
from aprl.errors import AprlError, ConfigError, RunError
from aprl.files import read_json, require_path, require_writable_directory, write_json
from aprl.highest_win_rate import best_policies
from aprl.locks import DirectoryLock
from aprl.multi.axes import Distribution, axis_from_json, axis_to_json, spread
from aprl.multi.cluster import connected, require_cpus
from aprl.multi.config import SweepConfig
from aprl.multi.grids import Grid
from aprl.multi.trials import Trial, check_trials, expand, map_plain, trials_frame
from aprl.multi.worker import COMPLETED, METRIC, STEPS, Task, run_trial
from aprl.training.interruption import Interrupted

if TYPE_CHECKING:
    import pandas as pd

SWEEP_FILE = "sweep.json"
RESULTS_FILE = "results.csv"
FORMAT = 1
MODULE = "aprl.multi.train"
_TUNE_DIR = "tune"


@dataclass(frozen=True)
class SweepResult:
    """What a sweep left behind.

    Attributes:
        directory: of the sweep.
        frame: one row per trial: `trial`, what its axes set, `state` ("completed", "stopped" by the
            scheduler, "failed"), `win_rate` of the learner over its newest games with `low` and
            `high` of the 95 % interval and `games`, `num_timesteps`, `run_dir`, `error`.
    """

    directory: Path
    frame: "pd.DataFrame"

    @property
    def failed(self) -> int:
        """Trials that failed."""
        return int((self.frame["state"] == "failed").sum())


@dataclass(frozen=True)
class Plan:
    """A sweep that is complete and checked.

    Attributes:
        grid: what is swept.
        trials: that can run; with a search algorithm, examples of what it will draw.
        lacking: trials that lack a policy, and why.
    """

    grid: Grid
    trials: list[Trial]
    lacking: list[tuple[Trial, AprlError]]

    @property
    def left_out(self) -> list[str]:
        """What is missing, by victim or by trial."""
        return self.grid.missing + [f"trial {t.name}: {error}" for t, error in self.lacking]

    def to_frame(self) -> "pd.DataFrame":
        """One row per trial, also of those that lack something: `trial`, and what its axes set."""
        lacking = [trial for trial, _ in self.lacking]
        return trials_frame(sorted([*self.trials, *lacking], key=lambda trial: trial.number))

    @property
    def total_timesteps(self) -> int:
        """Environment steps of the trials that can run."""
        return sum(trial.config().total_timesteps for trial in self.trials)

    def require_trials(self, on_missing: str) -> None:
        """Refuse to run if something is missing.

        Raises:
            RunError: anything is missing and `on_missing` is "error", or nothing is left to run.
        """
        missing = self.left_out
        if missing and (on_missing == "error" or not self.trials):
            shown = "; ".join(missing[:3])
            more = f"; and {len(missing) - 3} more" if len(missing) > 3 else ""
            raise RunError(f"{len(missing)} trials lack what they need: {shown}{more}")


def plan(config: SweepConfig) -> Plan:
    """Expand and check a sweep without starting anything; see `Plan.require_trials`.

    Raises:
        AprlError: a config that cannot work, or a tree without runs.
    """
    config.check()
    grid = config.make_grid()
    usable, unusable = check_trials(expand(grid, config.seed))
    for trial, error in unusable:
        if isinstance(error, ConfigError):
            raise ConfigError(f"trial {trial.name}: {error}")
    return Plan(grid, usable, unusable)


def sweep(config: SweepConfig, console: Console | None = None) -> SweepResult:
    """Run all trials of a sweep.

    Args:
        config: see `SweepConfig`.
        console: is told which trials were left out.

    Raises:
        AprlError: bad input, before anything is trained, or an output that cannot be written. A
            trial that fails does not raise; see `SweepResult`.
        Interrupted: by SIGINT; `resume_sweep` goes on.
    """
    planned = plan(config)
    planned.require_trials(config.on_missing)
    if console is not None:
        for text in planned.left_out:
            console.print(f"warning: left out {text}", soft_wrap=True)
    directory = _new_directory(config, planned.grid)
    task = _task(config, planned, directory)
    record = {
        "format": FORMAT,
        "aprl_version": __version__,
        "config": config.to_dict(),
        "working_dir": task.working_dir,
        "train": planned.grid.train,
        "axes": {key: axis_to_json(axis) for key, axis in planned.grid.axes.items()},
        "num_samples": planned.grid.num_samples,
        "trials": [[trial.number, trial.values, trial.train] for trial in planned.trials],
    }
    write_json(directory / SWEEP_FILE, record)
    return _run(config, planned, task, directory)


def resume_sweep(directory: Path | str, progress: bool = True) -> SweepResult:
    """Go on with a sweep: what is complete is kept, what was begun goes on, what failed is retried.

    Ray's state in the directory is read with pickle: only resume sweeps of people you trust.

    Args:
        directory: of the sweep.
        progress: show progress on the terminal.

    Raises:
        RunError: no sweep there, one of another version, or one that a process is at work on.
        Interrupted: by SIGINT.
    """
    directory = require_path(directory, "the sweep's directory")
    config, planned, working_dir = read_sweep(directory)
    config.progress = progress
    task = _task(config, planned, directory, working_dir)
    return _run(config, planned, task, directory)


def read_sweep(directory: Path) -> tuple[SweepConfig, Plan, str]:
    """A sweep's config, plan and working directory, as it was begun.

    Raises:
        RunError: no sweep there, or one that this version cannot go on with.
    """
    path = directory / SWEEP_FILE
    if not path.is_file():
        raise RunError(f"{directory} is no sweep: it has no {SWEEP_FILE}")
    record = read_json(path)
    if not isinstance(record, dict) or "format" not in record:
        raise RunError(f"{path} does not describe a sweep")
    made_by = record.get("aprl_version")
    if record["format"] != FORMAT or made_by != __version__:
        raise RunError(
            f"{directory} was begun with aprl {made_by} (format {record['format']}), this is "
            f"{__version__} (format {FORMAT}); go on with that version, or begin a new sweep"
        )
    try:
        config = SweepConfig.from_dict(record["config"])
        axes = {key: axis_from_json(key, axis) for key, axis in record["axes"].items()}
        grid = Grid(directory.parent.name, record["train"], axes, record["num_samples"])
        trials = [Trial(*fields) for fields in record["trials"]]
    except (AprlError, KeyError, TypeError, AttributeError) as error:
        raise RunError(f"{path} is damaged: {error}") from None
    return config, Plan(grid, trials, []), str(record.get("working_dir", ""))


def _new_directory(config: SweepConfig, grid: Grid) -> Path:
    parent = require_writable_directory(Path(config.root_dir) / grid.name)
    while True:
        path = parent / f"{datetime.now():%Y%m%d_%H%M%S_%f}"
        try:
            path.mkdir()
        except FileExistsError:
            time.sleep(1e-3)
            continue
        return path


def _task(
    config: SweepConfig, planned: Plan, directory: Path, working_dir: str | None = None
) -> Task:
    base = Task(
        directory=str(directory.absolute()),
        working_dir=working_dir or os.getcwd(),
        uploads=config.storage_path is not None,
    )
    if config.search_alg is None:
        return replace(base, trials=tuple((t.name, t.train) for t in planned.trials))
    grids = {k: list(v) for k, v in planned.grid.axes.items() if not isinstance(v, Distribution)}
    return replace(base, train=planned.grid.train, grids=grids)


def _run(config: SweepConfig, planned: Plan, task: Task, directory: Path) -> SweepResult:
    lock = DirectoryLock(directory)
    lock.acquire()
    try:
        with connected(config.ray_server, config.num_cpus) as ray:
            states = _fit(ray, config, planned, task, directory)
        frame = _frame(planned, states)
        frame.to_csv(directory / RESULTS_FILE, index=False)
        if not task.uploads and (frame["state"] == "completed").any():
            _cache_lookup(directory)
    finally:
        lock.release()
    return SweepResult(directory, frame)


def _cache_lookup(directory: Path) -> None:
    try:
        best_policies(directory)
    except RunError:  # nothing is embedded, or no game was finished: nothing to look up
        return


def cpus_per_trial(planned: Plan) -> int:
    """CPUs of each trial: as many as its physics has threads."""
    threads = {trial.config().num_threads for trial in planned.trials}
    return max(os.cpu_count() or 1 if count == 0 else count for count in threads)


def _fit(
    ray: Any, config: SweepConfig, planned: Plan, task: Task, directory: Path
) -> list[dict[str, Any]]:
    """Let Ray Tune run the trials; how each of them ended."""
    from ray import tune

    from aprl.multi.progress import Watcher

    cpus = cpus_per_trial(planned)
    require_cpus(ray, cpus, "a trial")
    trainable = tune.with_resources(partial(run_trial, task=task), {"cpu": cpus})
    storage = (config.storage_path or str((directory / _TUNE_DIR).absolute())).rstrip("/")
    name = directory.name if task.uploads else "state"
    run_config = tune.RunConfig(
        name=name,
        storage_path=storage,
        failure_config=tune.FailureConfig(max_failures=config.max_failures),
        checkpoint_config=tune.CheckpointConfig(num_to_keep=1),
        verbose=0,
    )
    experiment = f"{storage}/{name}"
    watcher = Watcher(len(planned.trials), planned.total_timesteps, config.progress)
    run_config.callbacks = [watcher]
    try:
        if tune.Tuner.can_restore(experiment):
            tuner = tune.Tuner.restore(experiment, trainable, resume_errored=True)
        else:
            tuner = tune.Tuner(
                trainable,
                param_space=_space(config, planned),
                tune_config=_tune_config(config, planned),
                run_config=run_config,
            )
        results = tuner.fit()
    finally:
        watcher.display.close()
    states = [
        {
            "drawn": result.config,
            "metrics": result.metrics or {},
            "error": result.error,
            "state": _state(result, watcher.ended),
        }
        for result in (results[i] for i in range(len(results)))
    ]
    unfinished = [state for state in states if state["state"] == "unfinished"]
    if unfinished or len(states) < len(planned.trials):
        raise Interrupted(signal.SIGINT, directory, len(states) - len(unfinished), MODULE, "trials")
    return states


def _space(config: SweepConfig, planned: Plan) -> dict[str, Any]:
    """Ray's parameters: the numbers of the trials; for a search algorithm, what it may draw."""
    from ray import tune

    if config.search_alg is None:
        return {"trial": tune.grid_search(list(range(len(planned.trials))))}
    return {
        key: axis.ray_domain() if isinstance(axis, Distribution) else tune.choice(range(len(axis)))
        for key, axis in planned.grid.axes.items()
    }


def _tune_config(config: SweepConfig, planned: Plan) -> Any:
    from ray import tune
    from ray.tune.schedulers import ASHAScheduler

    scheduler = None
    if config.scheduler == "asha":
        longest = max(trial.config().total_timesteps for trial in planned.trials)
        params = config.asha_params()
        scheduler = ASHAScheduler(
            time_attr=STEPS,
            metric=METRIC,
            mode="max",
            max_t=longest + 1,  # the end of a run is its own affair
            grace_period=params["grace_period"] or max(1, longest // 8),
            reduction_factor=params["reduction_factor"],
        )
    search = None
    if config.search_alg == "optuna":
        search = _optuna(config.seed)
    searched = config.search_alg is not None
    return tune.TuneConfig(
        scheduler=scheduler,
        search_alg=search,
        num_samples=len(planned.trials) if searched else 1,
        reuse_actors=True,  # importing takes longer than many a test run
        max_concurrent_trials=config.max_concurrent,
    )


def _optuna(seed: int) -> Any:
    try:
        import optuna
    except ImportError:
        raise ConfigError(
            "search_alg=optuna needs the package optuna: pip install 'aprl[optuna]'"
        ) from None
    from ray.tune.search.optuna import OptunaSearch

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return OptunaSearch(metric=METRIC, mode="max", seed=seed)


def _state(result: Any, ended: set[str]) -> str:
    metrics = result.metrics or {}
    if result.error is not None:
        return "failed"
    if metrics.get(COMPLETED):
        return "completed"
    # Ray ends a trial whose function has not returned only if the scheduler says so.
    stopped = metrics.get("trial_id") in ended or metrics.get("done")
    return "stopped" if stopped else "unfinished"


def _frame(planned: Plan, states: list[dict[str, Any]]) -> "pd.DataFrame":
    import pandas as pd

    rows = []
    for count, state in enumerate(states):
        number = state["drawn"].get("trial")
        if number is None:
            chosen = {
                key: value if isinstance(axis, Distribution) else axis[value]
                for key, value in state["drawn"].items()
                for axis in [planned.grid.axes[key]]
            }
            number, values = count, spread(chosen)
        else:
            number, values = planned.trials[number].number, planned.trials[number].values
        metrics = state["metrics"]
        error = state["error"]
        rows.append(
            {
                "trial": number,
                **map_plain(values),
                "state": state["state"],
                "win_rate": metrics.get(METRIC),
                "low": metrics.get("win_rate_low"),
                "high": metrics.get("win_rate_high"),
                "games": metrics.get("games"),
                "num_timesteps": metrics.get(STEPS, 0),
                "run_dir": metrics.get("run_dir"),
                "error": None if error is None else str(error).strip().splitlines()[-1],
            }
        )
    return pd.DataFrame(rows).sort_values("trial", ignore_index=True)


def download(storage: str, directory: Path | str) -> Path:
    """Copy the runs of a sweep from a `storage_path` to this machine, for the lookup.

    Args:
        storage: `<storage_path>/<name of the sweep's directory>`.
        directory: to copy to.

    Returns:
        The directory, with a run directory for each trial.

    Raises:
        RunError: there is nothing.
    """
    from pyarrow import fs

    try:
        source, path = fs.FileSystem.from_uri(storage)
        found = source.get_file_info(fs.FileSelector(path, recursive=True))
    except (OSError, ValueError) as error:
        raise RunError(f"cannot read {storage}: {error}") from None
    target = Path(directory)
    copied = 0
    for info in found:
        inside = info.path[len(path) :].strip("/").split("/")
        marks = [i for i, part in enumerate(inside) if part.startswith("checkpoint_")]
        if info.type != fs.FileType.File or not marks:
            continue
        place = target.joinpath(inside[0], *inside[marks[0] + 1 :])
        place.parent.mkdir(parents=True, exist_ok=True)
        fs.copy_files(
            info.path,
            str(place),
            source_filesystem=source,
            destination_filesystem=fs.LocalFileSystem(),
        )
        copied += 1
    if not copied:
        raise RunError(f"{storage} holds no runs")
    return target
