"""What command lines share: errors of the user are one line, and exit codes mean something."""

import argparse
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from aprl.errors import AprlError, ConfigError


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
    standard error for an `AprlError` or an error of the operating system, such as a full disk; 130
    after Ctrl-C; 141 when the reader of a pipe went away. Other exceptions are bugs and propagate.

    Args:
        main: the command.
    """
    try:
        code = main() or 0
        sys.stdout.flush()
    except AprlError as error:
        code = _fail(str(error))
    except BrokenPipeError:
        code = 141
    except OSError as error:
        where = "" if error.filename is None else f"{error.filename}: "
        code = _fail(f"{where}{error.strerror}" if error.strerror else str(error))
    except KeyboardInterrupt:
        code = 130
    _drop_unwritable_output()
    sys.exit(code)


def _drop_unwritable_output() -> None:
    """Keep the interpreter from failing at exit on output that cannot be written."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str) -> int:
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    return 1
