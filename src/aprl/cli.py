"""What command lines share: errors of the user are one line, and exit codes mean something."""

import argparse
import os
import sys
import warnings
from collections.abc import Callable
from typing import NoReturn

from aprl.errors import AprlError, AprlWarning, ConfigError


class ArgumentParser(argparse.ArgumentParser):
    """A parser whose complaints are `ConfigError`s, so that `run_cli` prints them as one line."""

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage.

        Raises:
            ConfigError: always.
        """
        raise ConfigError(f"{message} (try {self.prog} --help)")


def run_cli(main: Callable[[], int | None]) -> NoReturn:
    """Run a command and exit.

    The exit code is what `main` returns (None counts as 0); 1 with one line `error: ...` on
    standard error for an `AprlError`, an error of the operating system, such as a full disk, or too
    little memory; 130 after Ctrl-C; 141 when the reader of a pipe went away. Other exceptions are
    bugs and propagate. An `AprlWarning` is printed as one line `warning: ...`, once.

    Args:
        main: the command.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("once", AprlWarning)
            _print_in_one_line()
            code = main() or 0
        sys.stdout.flush()
    except AprlError as error:
        code = _fail(str(error))
    except BrokenPipeError:
        code = 141
    except OSError as error:
        where = "" if error.filename is None else f"{error.filename}: "
        code = _fail(f"{where}{error.strerror}" if error.strerror else str(error))
    except MemoryError as error:
        code = _fail(f"not enough memory ({str(error) or 'MemoryError'}); give smaller sizes")
    except KeyboardInterrupt:
        code = 130
    _drop_unwritable_output()
    sys.exit(code)


def _print_in_one_line() -> None:
    """Show this library's warnings without their place in the source; others as they are."""
    shown = warnings.showwarning
    printed: set[str] = set()  # whoever changes filters makes Python forget what it has shown

    def show(message, category, *rest, **more) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN002, ANN003
        if issubclass(category, AprlWarning):
            line = f"warning: {' '.join(str(message).split())}"
            if line not in printed:
                printed.add(line)
                print(line, file=sys.stderr)
        else:
            shown(message, category, *rest, **more)

    warnings.showwarning = show


def _drop_unwritable_output() -> None:
    """Keep the interpreter from failing at exit on output that cannot be written."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str) -> int:
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    return 1
