"""Stopping a run cleanly on SIGINT and SIGTERM."""

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType


class Interrupted(Exception):
    """The run was told to stop; its state is saved.

    Attributes:
        signum: the signal that stopped it.
        run_dir: what to resume.
        steps: how far it came.
    """

    def __init__(
        self, signum: int, run_dir: Path, steps: int, module: str | None, unit: str = "steps"
    ) -> None:
        """`module` is the command that takes `resume`; None if the command as given goes on."""
        name = signal.Signals(signum).name
        again = "the same command again"
        command = again if module is None else f"python -m {module} with resume={run_dir}"
        super().__init__(f"stopped by {name} at {steps:,} {unit}; continue with: {command}")
        self.signum = signum
        self.run_dir = run_dir
        self.steps = steps

    @staticmethod
    @contextlib.contextmanager
    def as_of(run_dir: Path, module: str | None) -> Iterator[None]:
        """Within the block, a part of `run_dir` that is stopped stops the whole of it."""
        try:
            yield
        except Interrupted as part:
            raise Interrupted(part.signum, run_dir, part.steps, module) from None


class Terminated(SystemExit):
    """SIGTERM, where `terminable` is in force; the exit code is 128 + its number."""

    def __init__(self) -> None:
        super().__init__(128 + signal.SIGTERM)


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM raise `Terminated` within the block, in the main thread, for an orderly end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(signum: int, frame: FrameType | None) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class StopSignal:
    """Notes the first SIGINT or SIGTERM; a second one interrupts at once.

    Attributes:
        received: the signal; None before it.
    """

    def __init__(self) -> None:
        self.received: int | None = None

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Take note within the block, in the main thread; elsewhere signals go their usual way."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def stop(signum: int, frame: FrameType | None) -> None:
            if self.received is not None:
                raise KeyboardInterrupt
            self.received = signum
            if sys.stderr.isatty():
                print("stopping at the next safe point; once more stops at once", file=sys.stderr)

        before = {s: signal.signal(s, stop) for s in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for signum, handler in before.items():
                signal.signal(signum, handler)
