"""What the Sacred command lines share: plain configs, observers, errors as one line, exit codes."""

import contextlib
import logging
import signal
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

with warnings.catch_warnings():
    # Sacred 0.8.7 imports pkg_resources, which warns; pyproject.toml pins setuptools for it.
    warnings.simplefilter("ignore")
    from sacred import SETTINGS, Experiment, Ingredient
    from sacred.observers import FileStorageObserver

from rich.console import Console

from aprl.cli import run_cli
from aprl.errors import AprlError, ConfigError, unknown_name
from aprl.files import require_writable_directory
from aprl.training.interruption import Interrupted

SETTINGS.CAPTURE_MODE = "sys"  # "fd" would hide from progress bars that they are on a terminal


class Part(NamedTuple):
    """A group of entries that several experiments share, as in `env.name=...`.

    Attributes:
        config: defaults.
        named_configs: chosen as `<part>.<named config>`.
    """

    config: dict[str, Any]
    named_configs: Mapping[str, dict[str, Any]]


def new_experiment(
    name: str,
    config: dict[str, Any],
    named_configs: Mapping[str, dict[str, Any]],
    parts: Mapping[str, Part] | None = None,
) -> Experiment:
    """A Sacred experiment with its defaults, its named configs and its parts, by their names."""
    ingredients = []
    for part_name, part in (parts or {}).items():
        ingredients.append(Ingredient(part_name, save_git_info=False))
        ingredients[-1].add_config(part.config)
        for config_name, values in part.named_configs.items():
            ingredients[-1].add_named_config(config_name, values)
    experiment = Experiment(name, ingredients=ingredients, save_git_info=False)
    experiment.logger = _quiet_logger()  # type: ignore[assignment]
    experiment.add_config(config)
    for config_name, values in named_configs.items():
        experiment.add_named_config(config_name, values)
    return experiment


def _quiet_logger() -> logging.Logger:
    """For Sacred's own messages: silent unless `--loglevel` asks; other loggers are left alone."""
    logger = logging.getLogger("aprl.sacred")
    logger.propagate = False
    logger.setLevel(logging.CRITICAL)
    if not logger.handlers:
        logger.addHandler(logging.StreamHandler())
    return logger


class _UserExit(SystemExit):
    """Carries an expected end through Sacred, which would print a stack trace for an exception."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(1)
        self.cause = cause


@contextlib.contextmanager
def user_errors() -> Iterator[None]:
    """Let `AprlError`s, operating system errors and interruptions pass Sacred as a plain exit."""
    try:
        yield
    except (AprlError, OSError, Interrupted, KeyboardInterrupt) as error:
        raise _UserExit(error) from error


def output() -> Console:
    """Standard output for tables; wide where no terminal limits it, as in a log file."""
    return Console(width=None if sys.stdout.isatty() else 120)


def as_plain(value: Any) -> Any:
    """Copy Sacred's read-only containers into plain dicts and lists."""
    if isinstance(value, Mapping):
        return {key: as_plain(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [as_plain(v) for v in value]
    return value


def _given(argv: Sequence[str], name: str) -> str | None:
    """The value of the last `name=value` on the command line, as text."""
    values = [a.split("=", 1)[1].strip("'\"") for a in argv if a.startswith(f"{name}=")]
    return values[-1] if values else None


def _check_named_configs(experiment: Experiment, argv: Sequence[str]) -> None:
    """Refuse names after `with` that Sacred does not know, as its own message has no near ones."""
    updates = argv[argv.index("with") + 1 :] if "with" in argv else ()
    known = set(experiment.named_configs)
    for part in experiment.ingredients:
        known |= {f"{part.path!s}.{named}" for named in part.named_configs}
    for name in updates:
        named = "=" not in name and not name.startswith("-") and not Path(name).exists()
        if named and name not in known:
            raise unknown_name("named config", name, known)


def command_line(experiment: Experiment, default_root: str, argv: Sequence[str]) -> None:
    """Run an experiment's command line and exit.

    Sacred's records go to `<root>/sacred/<experiment>`. Exit codes: 0, or 1 with
    one line for bad input, or 128 + the signal's number after a clean stop.

    Args:
        experiment: with its main function wrapped in `user_errors`.
        default_root: output root unless `root_dir=` is given.
        argv: as in `sys.argv`.
    """

    def run() -> int:
        root = Path(_given(argv, "root_dir") or default_root)
        seed = _given(argv, "seed")
        if seed is not None and not seed.isdigit():  # Sacred would fail on it with a stack trace
            raise ConfigError(f"seed must be a whole number of at least 0, got {seed}")
        _check_named_configs(experiment, argv)
        runs_something = not any(
            a in ("-h", "--help", "help") or a.startswith("print_") for a in argv
        )
        if runs_something:
            require_writable_directory(root)
            records = require_writable_directory(root / "sacred" / str(experiment.path))
            experiment.observers.append(FileStorageObserver(records))
        try:
            # --force: unknown entries are left to the experiment, whose errors name near matches.
            experiment.run_commandline([*argv, "--force"])
        except _UserExit as end:
            if isinstance(end.cause, Interrupted):
                print(end.cause, file=sys.stderr)
                return 128 + end.cause.signum
            if isinstance(end.cause, KeyboardInterrupt):
                return 128 + signal.SIGINT
            raise end.cause from None
        return 0

    run_cli(run)
