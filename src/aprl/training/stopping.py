"""Stopping cleanly on Ctrl-C and SIGTERM."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType


class Interrupted(Exception):
    """The run was told to stop; its state is saved.

    Attributes:
        signum: the signal that stopped it.
        run_dir: what to resume.
    """

    def __init__(self, signum: int, run_dir: Path, steps: int) -> None:
        name = signal.Signals(signum).name
        super().__init__(
            f"stopped by {name} at {steps:,} steps; continue with: "
            f"python -m aprl.train with resume={run_dir}"
        )
        self.signum = signum
        self.run_dir = run_dir


class StopSignals:
    """Notes SIGINT and SIGTERM, so that work can stop where its state is whole.

    Attributes:
        signum: the signal that came, or None.
    """

    def __init__(self) -> None:
        self.signum: int | None = None

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Note the first signal in the block; a second one ends the work at once.

        Only the main thread is told of signals; elsewhere the block runs without listening.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def note(signum: int, frame: FrameType | None) -> None:
            if self.signum is not None:
                raise KeyboardInterrupt
            self.signum = signum

        before = {s: signal.signal(s, note) for s in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for signum, handler in before.items():
                signal.signal(signum, handler)
