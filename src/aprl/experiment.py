"""What the Sacred command lines share: plain configs, records, errors as one line, exit codes."""

import contextlib
import logging
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

with warnings.catch_warnings():
    # Sacred 0.8.7 imports pkg_resources, which warns; pyproject.toml pins setuptools for it.
    warnings.simplefilter("ignore")
    from sacred import SETTINGS, Experiment
    from sacred.arg_parser import get_config_updates
    from sacred.observers import FileStorageObserver

from rich.console import Console

from aprl.cli import run_cli
from aprl.configs.checks import MAX_SEED, require_between
from aprl.configs.describe import describe_entries, describe_named_configs
from aprl.errors import AprlError, ConfigError, unknown_name
from aprl.files import read_json, require_writable_directory
from aprl.training.stopping import Interrupted

SETTINGS.CAPTURE_MODE = "sys"  # "fd" would hide from progress bars that they are on a terminal

CheckedRoot = Callable[[dict[str, Any]], Path]


class CommandExperiment(Experiment):
    """A Sacred experiment that is a command: it can explain itself, and checks before it records.

    Args:
        name: of the experiment, and of the directory of its records.
        module: that is run as the command.
        config_class: dataclass that declares the configuration, a comment per field.
        named_configs: by name, the entries that each sets.
        checked_root: checks a config as far as is possible without writing anything, and returns
            the directory under which the run is to be recorded.
    """

    def __init__(
        self,
        name: str,
        module: str,
        config_class: type,
        named_configs: Mapping[str, dict[str, Any]],
        checked_root: CheckedRoot,
    ) -> None:
        super().__init__(name, save_git_info=False)
        self.logger = _quiet_logger()  # type: ignore[assignment]
        self.module = module
        self.config_class = config_class
        self.named = dict(named_configs)
        self.add_config(vars(config_class()))
        for config_name, values in named_configs.items():
            self.add_named_config(config_name, **values)
        self.observers.append(_Records(name, checked_root))

    def usage(self) -> str:
        """What `--help` prints."""
        program = f"python -m {self.module}"
        parts = [
            f"usage: {program} [with NAME | FILE.json | ENTRY=VALUE ...]",
            f"       {program} print_config [with ...]    show the configuration, do nothing",
            *(["", "named configs (NAME):", describe_named_configs(self.named)] * bool(self.named)),
            *("", "configuration (ENTRY = default):", describe_entries(self.config_class)),
        ]
        return "\n".join(parts)


class _Records(FileStorageObserver):
    """Sacred's records of a run, in `<root>/sacred/<name>`; the config says what the root is."""

    def __init__(self, name: str, checked_root: CheckedRoot) -> None:
        super().__init__(".")
        self.template = None
        self._name = name
        self._checked_root = checked_root

    def started_event(self, **event: Any) -> str:
        """Check the config and begin the records, before the experiment runs."""
        with user_errors():
            self._open(event["config"])
            return super().started_event(**event)

    def queued_event(self, **event: Any) -> str:
        """Check the config and record it for later."""
        with user_errors():
            self._open(event["config"])
            return super().queued_event(**event)

    def _open(self, config: Mapping[str, Any]) -> None:
        root = self._checked_root(as_plain(config))
        records = require_writable_directory(root / "sacred" / self._name)
        self.basedir = str(records)
        self.resource_dir, self.source_dir = records / "_resources", records / "_sources"


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
    """Let errors that are the user's to mend, and interruptions, pass Sacred as a plain exit."""
    try:
        yield
    except (AprlError, OSError, MemoryError, Interrupted, KeyboardInterrupt) as error:
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


def _check_arguments(experiment: Experiment, arguments: Sequence[str]) -> None:
    """Refuse what Sacred would answer with its usage or a stack trace.

    Raises:
        ConfigError: an unknown command, option or named config, an unusable file, or a seed that
            no random generator takes.
    """
    position = arguments.index("with") if "with" in arguments else len(arguments)
    updates = [a for a in arguments[position + 1 :] if not a.startswith("-")]
    options = [a for a in arguments if a.startswith("-")]
    known = {flag for option in experiment.all_cli_options for flag in option.get_flags()}
    for option in options:
        if option.partition("=")[0] not in known:
            raise unknown_name("option", option, known)
    commands = dict(experiment.gather_commands())
    first = arguments[0] if arguments else "with"
    if not (first.startswith("-") or first == "with" or first in commands):
        if "=" in first or first in experiment.named_configs or Path(first).is_file():
            raise ConfigError(f"{first!r} is no command; did you mean: with {first}?")
        raise unknown_name("command", first, ["with", "help", *commands])
    if position == len(arguments) - 1 or ("with" in arguments and not updates):
        raise ConfigError("nothing follows 'with'; give named configs, or entries as name=value")
    for name in (update for update in updates if "=" not in update):
        if Path(name).is_file():
            _check_config_file(name)
        elif name not in experiment.named_configs:
            if Path(name).is_dir():
                raise ConfigError(f"{name!r} after 'with' is a directory, not a named config")
            raise unknown_name("named config", name, experiment.named_configs)
    try:
        given, _ = get_config_updates(updates)
    except (TypeError, ValueError, KeyError):
        raise ConfigError(f"entries contradict each other: {' '.join(updates)}") from None
    if "seed" in given:  # Sacred would use it before the experiment can check it
        require_between("seed", given["seed"], 0, MAX_SEED)


def _check_config_file(name: str) -> None:
    """Check a config file before Sacred reads it, which for other formats could run code."""
    if Path(name).suffix != ".json":
        raise ConfigError(f"config file {name!r} is not supported; give a .json file")
    values = read_json(name)
    if not isinstance(values, dict):
        raise ConfigError(f"config file {name!r} does not hold entries, but {str(values)[:50]}")
    if _has_key_with(values, "py/"):  # jsonpickle's way to name Python objects
        raise ConfigError(f"config file {name!r} holds Python objects, which are not supported")
    if "seed" in values:
        require_between(f"{name}: seed", values["seed"], 0, MAX_SEED)


def _has_key_with(value: Any, prefix: str) -> bool:
    if isinstance(value, dict):
        return any(k.startswith(prefix) or _has_key_with(v, prefix) for k, v in value.items())
    return isinstance(value, list) and any(_has_key_with(v, prefix) for v in value)


def command_line(experiment: CommandExperiment, argv: Sequence[str]) -> None:
    """Run an experiment's command line and exit.

    Exit codes: 0, or 1 with one line for bad input, or 128 + the signal's number after a clean
    stop.

    Args:
        experiment: with its main function wrapped in `user_errors`.
        argv: as in `sys.argv`.
    """

    def run() -> int:
        arguments = list(argv[1:])
        if "--help" in arguments or "-h" in arguments or arguments[:1] == ["help"]:
            print(experiment.usage())
            return 0
        _check_arguments(experiment, arguments)
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
