"""What a Ray worker does with one trial: train it, or go on where it was left."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aprl.files import write_json
from aprl.highest_win_rate import EPISODE_WINDOW
from aprl.locks import is_locked
from aprl.multi.axes import merged, spread
from aprl.multi.trials import trial_name
from aprl.runs import CHECKPOINT_DIR, CONFIG_FILE, STATUS_FILE, read_run
from aprl.stats import WinRate
from aprl.train import is_unfinished, resume, train
from aprl.training.config import TrainConfig
from aprl.training.run import TrainingRun

RUNS_DIR = "runs"
TRIAL_FILE = "trial.json"
METRIC, STEPS = "win_rate", "num_timesteps"
COMPLETED = "completed"
_PATIENCE_S = 60.0  # until a process that was killed has let go of its run


@dataclass(frozen=True)
class Task:
    """What all trials of a sweep share.

    Attributes:
        directory: of the sweep.
        working_dir: in which relative paths of policies hold.
        uploads: runs go through Ray's storage, since workers do not share a file system.
        trials: name and `TrainConfig` entries of each trial, by number; empty if a search algorithm
            makes them up.
        train: entries of all trials, if a search algorithm makes them up.
        grids: per key, the values of the axes that are lists; the search draws positions in them.
    """

    directory: str
    working_dir: str
    uploads: bool
    trials: tuple[tuple[str, dict[str, Any]], ...] = ()
    train: dict[str, Any] = field(default_factory=dict)
    grids: dict[str, list[Any]] = field(default_factory=dict)

    def trial(self, drawn: Mapping[str, Any], trial_id: str) -> tuple[str, dict[str, Any]]:
        """Name and entries of the trial that Ray's parameters stand for."""
        if self.trials:
            return self.trials[drawn["trial"]]
        chosen = {key: self.grids[key][v] if key in self.grids else v for key, v in drawn.items()}
        values = spread(chosen)
        return trial_name(trial_id, values), merged(self.train, values)


def run_trial(drawn: dict[str, Any], task: Task) -> None:
    """Train one trial to its end, reporting the learner's win rate after each rollout.

    A run of this trial that is there already is continued from its last checkpoint; one that is
    complete is only reported.

    Args:
        drawn: Ray's parameters.
        task: see `Task`.
    """
    from ray import tune

    if Path(task.working_dir).is_dir():
        os.chdir(task.working_dir)
    context = tune.get_context()
    name, entries = task.trial(drawn, context.get_trial_id())
    home = Path(context.get_trial_dir()) if task.uploads else Path(task.directory) / RUNS_DIR
    root = home / name
    root.mkdir(parents=True, exist_ok=True)
    reporter = _Reporter(root, task.uploads)
    if task.uploads:
        _download(root)
    config = TrainConfig.from_dict({**entries, "root_dir": str(root), "exp_name": "run"})
    write_json(root / TRIAL_FILE, entries)
    run_dir = _newest_run(root)
    if run_dir is None:
        run_dir = train(config, on_rollout=reporter).run_dir
    else:
        _wait_for(run_dir)
        if is_unfinished(run_dir):
            resume(run_dir, progress=False, on_rollout=reporter)
    reporter.finish(run_dir)


def _newest_run(root: Path) -> Path | None:
    """The run to continue; one that was killed before it began to learn is none."""
    runs = sorted(path.parent for path in root.glob(f"*/{CONFIG_FILE}"))
    begun = [r for r in runs if (r / STATUS_FILE).exists() or (r / CHECKPOINT_DIR).is_dir()]
    return begun[-1] if begun else None


def _wait_for(run_dir: Path) -> None:
    end = time.monotonic() + _PATIENCE_S
    while is_locked(run_dir) and time.monotonic() < end:
        time.sleep(0.5)


def _download(root: Path) -> None:
    """Bring the run's last upload here, unless this machine has it."""
    from ray import tune

    checkpoint = tune.get_checkpoint()
    if checkpoint is not None and _newest_run(root) is None:
        checkpoint.to_directory(root)


class _Reporter:
    """Tells Ray Tune how a run goes; uploads the run after each of its checkpoints if asked to."""

    def __init__(self, root: Path, uploads: bool) -> None:
        self._root = root
        self._uploads = uploads
        self._uploaded: str | None = None

    def __call__(self, run: TrainingRun) -> None:
        """After a rollout."""
        newest = next((path.name for path in run.directory.checkpoints()), None)
        due = newest != self._uploaded
        self._uploaded = newest
        steps = run.learner.num_timesteps
        self._report(run.outcomes, {STEPS: steps, COMPLETED: False}, due)

    def finish(self, run_dir: Path) -> None:
        """At the end; the win rate is that of the newest games, as in the lookup."""
        record = read_run(run_dir)
        outcome = WinRate(0, 0)
        if record.embed_index is not None:
            games = record.newest_games(EPISODE_WINDOW)
            outcome = WinRate(games[1 - record.embed_index], games.games)
        where = run_dir.relative_to(self._root.parent.parent)
        final = {STEPS: record.num_timesteps, COMPLETED: True, "run_dir": where.as_posix()}
        self._report(outcome, final, due=True)

    def _report(self, outcome: WinRate, more: dict[str, Any], due: bool) -> None:
        from ray import tune

        low, high = outcome.interval
        metrics = {
            METRIC: outcome.rate if outcome.games else 0.0,
            "win_rate_low": low,
            "win_rate_high": high,
            "games": outcome.games,
            **more,
        }
        checkpoint = None
        if self._uploads and due:
            checkpoint = tune.Checkpoint.from_directory(self._root)
        tune.report(metrics, checkpoint=checkpoint)
