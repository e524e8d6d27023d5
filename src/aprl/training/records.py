"""What a run writes while it learns: a CSV that survives kills, progress on the terminal."""

import csv
import io
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from stable_baselines3.common.logger import KVWriter

from aprl.errors import RunError
from aprl.files import atomic_path

STEPS_COLUMN = "time/total_timesteps"

_SPEED_WINDOW = 60.0  # seconds that the speed on the terminal is measured over


class CsvLog(KVWriter):
    """Appends one row per rollout to a CSV file; columns that appear later widen the file.

    Args:
        path: file to continue, or to begin.
        until: rows beyond this number of steps are dropped: they come from after the checkpoint
            that the run is resumed from. A last line cut short by a kill is dropped too.

    Raises:
        RunError: the file is damaged.
    """

    def __init__(self, path: Path, until: int = 0) -> None:
        self.path = path
        self._columns: list[str] = []
        self._rows: list[dict[str, str]] = []
        if path.exists():
            self._read(until)
        self._rewrite()

    def _read(self, until: int) -> None:
        try:
            with open(self.path, newline="", encoding="utf-8") as file:
                lines = file.readlines()
        except UnicodeDecodeError:
            raise _damaged(self.path, "it is not text") from None
        if lines and not lines[-1].endswith("\n"):
            lines.pop()  # cut short; it may still have all columns, the last one wrong
        reader = csv.DictReader(lines)
        try:
            self._columns = list(reader.fieldnames or [])
            for row in reader:
                steps = row.get(STEPS_COLUMN)
                if None in row.values() or not steps or int(steps) > until:
                    break
                self._rows.append(row)
        except (csv.Error, ValueError) as error:
            raise _damaged(self.path, f"line {reader.line_num}: {error}") from None

    def _rewrite(self) -> None:
        text = io.StringIO()
        writer = csv.DictWriter(text, self._columns)
        if self._columns:
            writer.writeheader()
        writer.writerows(self._rows)
        with atomic_path(self.path) as staged:
            staged.write_text(text.getvalue(), encoding="utf-8")

    def write(
        self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0
    ) -> None:
        """Add a row."""
        row = {name: _text(value) for name, value in sorted(key_values.items())}
        new = [name for name in row if name not in self._columns]
        if new:
            self._columns += new
            for old in self._rows:
                old.update(dict.fromkeys(new, ""))
        full = {name: row.get(name, "") for name in self._columns}
        self._rows.append(full)
        try:
            if new:
                self._rewrite()
            else:
                with open(self.path, "a", newline="", encoding="utf-8") as file:
                    csv.DictWriter(file, self._columns).writerow(full)
        except OSError as error:
            raise RunError(f"cannot write {self.path}: {error.strerror}") from None

    def close(self) -> None:
        """Nothing is held open."""


def _damaged(path: Path, what: str) -> RunError:
    return RunError(
        f"{path} is damaged, {what}; mend it, or move it away to go on without earlier metrics"
    )


def _text(value: Any) -> str:
    """The same text for a NumPy scalar and for the Python number it becomes in a checkpoint."""
    return str(value.item() if isinstance(value, np.generic) else value)


class ProgressDisplay:
    """Progress of a run: a bar on a terminal, a line every `interval` seconds elsewhere.

    Speed and time left are those of the last minute: work beside it may begin or end.

    Args:
        total: steps of the whole run.
        done: steps already made before this process started.
        enabled: show anything at all.
        verb: what is being done.
        unit: what is being counted.
        interval: seconds between lines when standard error is not a terminal.
    """

    def __init__(
        self,
        total: int,
        done: int = 0,
        enabled: bool = True,
        interval: float = 15,
        verb: str = "training",
        unit: str = "steps",
    ) -> None:
        self._total = total
        now = time.monotonic()
        self._recent = deque([(now, done)])  # when how many steps were made, at most two a second
        self._interval, self._last = interval, now
        self._status = ""
        self._unit = unit
        self._verb = verb
        self._enabled = enabled
        self._bar: Progress | None = None
        if enabled and sys.stderr.isatty():
            self._bar = Progress(
                TextColumn(verb),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[status]}"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
            )
            self._task = self._bar.add_task(verb, total=total, completed=done, status="")
            self._bar.start()

    def update(self, steps: int, status: str | None = None) -> None:
        """Show that `steps` steps of the run are made; `status` is text such as the win rate."""
        if status is not None:
            self._status = status
        now = time.monotonic()
        rate = self._rate(now, steps)
        speed = f"{rate:,.0f}" if rate >= 10 or rate == 0 else f"{rate:.2g}"
        text = f"{speed} {self._unit}/s  {self._status}".rstrip()
        if self._bar is not None:
            self._bar.update(self._task, completed=min(steps, self._total), status=text)
        elif self._enabled and now - self._last >= self._interval:
            self._last = now
            left = ""
            if rate > 0 and steps < self._total:
                left = f"  {(self._total - steps) / rate / 60:.1f} min left"
            print(
                f"{self._verb}: {steps:,}/{self._total:,} {self._unit}  {text}{left}",
                file=sys.stderr,
                flush=True,
            )

    def _rate(self, now: float, steps: int) -> float:
        """Steps a second over the last minute."""
        while len(self._recent) > 1 and now - self._recent[1][0] >= _SPEED_WINDOW:
            self._recent.popleft()
        then, done = self._recent[0]
        if now - self._recent[-1][0] >= 0.5:
            self._recent.append((now, steps))
        return (steps - done) / max(now - then, 1e-9)

    def close(self) -> None:
        """Leave the terminal in order."""
        if self._bar is not None:
            self._bar.stop()
