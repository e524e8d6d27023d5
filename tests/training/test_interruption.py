import signal
import threading
from pathlib import Path

import pytest

from aprl.training.interruption import Interrupted, StopSignal, Terminated, terminable


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_noted_and_the_second_interrupts(signum):
    before = signal.getsignal(signum)
    stop = StopSignal()
    assert stop.received is None
    with stop.listening():
        signal.raise_signal(signum)
        assert stop.received == signum
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signum)
    assert signal.getsignal(signum) is before


def test_sigterm_ends_a_terminable_block_in_order():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Terminated) as end, terminable():
        signal.raise_signal(signal.SIGTERM)
    assert end.value.code == 143 and isinstance(end.value, SystemExit)
    assert signal.getsignal(signal.SIGTERM) is before


def test_handlers_are_put_back_when_the_block_fails():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(ZeroDivisionError), StopSignal().listening():
        raise ZeroDivisionError
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("listening", [lambda: StopSignal().listening(), terminable])
def test_other_threads_leave_signals_alone(listening):
    before = signal.getsignal(signal.SIGTERM)
    seen = []

    def work():
        with listening():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]


def test_the_message_says_how_to_go_on():
    error = Interrupted(signal.SIGTERM, Path("runs/x"), 1234, "aprl.train")
    assert str(error) == (
        "stopped by SIGTERM at 1,234 steps; continue with: python -m aprl.train with resume=runs/x"
    )
    assert (error.signum, error.run_dir) == (signal.SIGTERM, Path("runs/x"))
    runs = Interrupted(signal.SIGINT, Path("x"), 3, "aprl.compare", unit="runs")
    assert "at 3 runs; continue" in str(runs)


@pytest.mark.parametrize(
    ("module", "command"),
    [("aprl.train", "python -m aprl.train with resume=whole"), (None, "the same command again")],
)
def test_what_is_stopped_is_the_whole_not_its_part(module, command):
    part = Interrupted(signal.SIGTERM, Path("whole/part"), 10, "aprl.train")
    with pytest.raises(Interrupted) as stopped, Interrupted.as_of(Path("whole"), module):
        raise part
    assert str(stopped.value) == f"stopped by SIGTERM at 10 steps; continue with: {command}"
    assert (stopped.value.signum, stopped.value.run_dir) == (part.signum, Path("whole"))
