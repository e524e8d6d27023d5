"""A run's directory while a process works in it: config, lock, status, signals, checkpoints."""

import contextlib
import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from aprl import __version__
from aprl.errors import ConfigError, RunError
from aprl.files import PathLike, read_json, require_path, write_json
from aprl.locks import DirectoryLock
from aprl.runs import CHECKPOINT_DIR, CONFIG_FILE, STATUS_FILE, new_run_dir, read_status
from aprl.training.config import TrainConfig
from aprl.training.interruption import Interrupted, StopSignal

# What may differ between a checkpoint and the config that continues it: where things are written,
# how long and how fast the run goes, and what is measured beside it.
CHANGEABLE = frozenset(
    {
        *("root_dir", "exp_name", "total_timesteps", "num_threads", "zoo_dir", "adversaries"),
        *("normal_opponent", "eval_episodes", "checkpoint_interval", "keep_checkpoints"),
        "progress",
    }
)


def read_run_config(run_dir: PathLike) -> tuple[TrainConfig, dict[str, Any]]:
    """The resolved config of a run, and the fingerprints of the policies it uses.

    Raises:
        RunError: no such run, or a config that is damaged or cannot work; the file is named.
    """
    path = require_path(run_dir, "the run directory") / CONFIG_FILE
    record = read_json(path)
    if not isinstance(record, dict):
        raise RunError(f"{path} holds no settings")
    fingerprints = record.pop("fingerprints", {})
    if not isinstance(fingerprints, dict):
        raise RunError(f"{path}: fingerprints is {fingerprints!r}, expected named entries")
    try:
        return TrainConfig.from_dict(record).resolve(), fingerprints
    except ConfigError as error:
        raise RunError(f"{path}: {error}") from None


def read_progress(run_dir: Path) -> tuple[int, float]:
    """Saved environment steps and seconds spent, from `status.json`.

    Raises:
        RunError: it is damaged.
    """
    _, steps = read_status(run_dir)
    spent = read_json(run_dir / STATUS_FILE).get("wall_time_s") if steps else 0.0
    return steps, float(spent) if isinstance(spent, int | float) else 0.0


class AnyConfig(Protocol):
    """The config of a run, of whatever kind."""

    root_dir: str
    exp_name: str

    def to_dict(self) -> dict[str, Any]:
        """As a plain dict of JSON types."""
        ...


class RunDirectory:
    """A run directory that this process works in.

    Args:
        path: an existing directory.

    Attributes:
        steps: environment steps of which the result is saved, in a checkpoint or finally.
        signals: what asks the work to stop.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.steps = 0
        self.signals = StopSignal()
        self._lock = DirectoryLock(path)
        self._earlier_s = 0.0
        self._started = time.monotonic()
        self._at_work = False

    @classmethod
    def create(cls, config: AnyConfig, fingerprints: dict[str, Any]) -> "RunDirectory":
        """Make a new one, with its `config.json`.

        Args:
            config: of the run.
            fingerprints: hashes of the files that the run reads, to notice changes by.

        Raises:
            RunError: it cannot be written.
        """
        directory = cls(new_run_dir(config.root_dir, config.exp_name))
        record = {**config.to_dict(), "fingerprints": fingerprints}
        try:
            write_json(directory.path / CONFIG_FILE, record)
        except OSError as error:
            directory.remove()
            raise RunError(f"cannot write to {directory.path}: {error.strerror}") from None
        return directory

    def acquire(self) -> None:
        """Keep other processes out until `release` or the end of `at_work`.

        Raises:
            RunError: another process is at work here.
        """
        self._lock.acquire()

    def release(self) -> None:
        """Let other processes in."""
        self._lock.release()

    def remove(self) -> None:
        """Delete the directory and all that is in it."""
        self._lock.release()
        shutil.rmtree(self.path, ignore_errors=True)

    @property
    def wall_time_s(self) -> float:
        """Seconds spent on this run so far, earlier processes included."""
        return self._earlier_s + time.monotonic() - self._started

    def continue_from(self, steps: int, wall_time_s: float) -> None:
        """Tell what earlier processes did: saved environment steps, and seconds spent."""
        self.steps, self._earlier_s = steps, wall_time_s

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """Hold the lock, listen for signals and keep `status.json` while the block runs.

        The status is "running", then "completed", "interrupted" or "failed". May be nested; the
        outermost block counts.

        Raises:
            Interrupted: the block raised it.
            RunError: another process is at work here, or an output could not be written.
        """
        if self._at_work:
            yield
            return
        self.acquire()
        self._at_work = True
        try:
            with self.signals.listening():
                self.write_status("running")
                yield
                self.write_status("completed")
        except BaseException as error:
            stopped = isinstance(error, Interrupted | KeyboardInterrupt)
            with contextlib.suppress(OSError):
                self.write_status("interrupted" if stopped else "failed")
            if not isinstance(error, OSError):
                raise
            kept = "there is no checkpoint yet"
            if self.steps:
                kept = f"the last checkpoint, at {self.steps:,} steps, is intact"
            raise RunError(
                f"cannot write to {self.path}: {error.strerror or error}; {kept}"
            ) from None
        finally:
            self._at_work = False
            self.release()

    def stop_if_asked(self, module: str = "aprl.train") -> None:
        """Raise if a signal came; for work that starts anew when it is resumed.

        Args:
            module: whose command resumes it.

        Raises:
            Interrupted: a signal came.
        """
        if self.signals.received is not None:
            raise Interrupted(self.signals.received, self.path, self.steps, module)

    def write_status(self, status: str) -> None:
        """Write `status.json`."""
        write_json(
            self.path / STATUS_FILE,
            {
                "status": status,
                "num_timesteps": self.steps,
                "wall_time_s": round(self.wall_time_s, 1),
                "aprl_version": __version__,
            },
        )

    def checkpoint(self, steps: int) -> Path:
        """Where the checkpoint at a number of steps lies."""
        return self.path / CHECKPOINT_DIR / f"{steps:012d}"

    def checkpoints(self) -> list[Path]:
        """The checkpoints, newest first."""
        return sorted((self.path / CHECKPOINT_DIR).glob("[0-9]*"), reverse=True)

    def prune_checkpoints(self, keep: int | None) -> None:
        """Delete all but the newest `keep` checkpoints; None keeps all."""
        for old in self.checkpoints()[keep:] if keep is not None else ():
            shutil.rmtree(old, ignore_errors=True)


def require_same_config(saved: Any, config: TrainConfig, run_dir: Path) -> None:
    """Refuse to continue a checkpoint under settings that change what is learned.

    Args:
        saved: the config that the checkpoint was made with; anything but a dict is left to others.
        config: the config to continue with.
        run_dir: for the message.

    Raises:
        RunError: an entry outside `CHANGEABLE` differs.
    """
    present = json.loads(json.dumps(config.to_dict()))
    # An entry that the version of then did not have yet was as it is by default.
    saved = TrainConfig().to_dict() | saved if isinstance(saved, dict) else present
    for name in sorted((set(saved) | set(present)) - CHANGEABLE):
        if saved.get(name) != present.get(name):
            raise RunError(
                f"{run_dir / CONFIG_FILE} has {name}={present.get(name)!r}, but the run was made "
                f"with {saved.get(name)!r}; put the old value back"
            )
