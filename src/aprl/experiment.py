"""What the Sacred command lines share: plain configs, records, errors as one line, exit codes."""

import contextlib
import logging
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

with warnings.catch_warnings():
    # Sacred 0.8.7 imports pkg_resources, which warns; pyproject.toml pins setuptools for it.
    warnings.simplefilter("ignore")
    from sacred import SETTINGS, Experiment, Ingredient
    from sacred.arg_parser import get_config_updates
    from sacred.observers import FileStorageObserver

from rich.console import Console

from aprl.cli import run_cli
from aprl.configs.checks import MAX_SEED, require_between
from aprl.configs.describe import describe_entries, describe_entry, describe_named_configs
from aprl.errors import AprlError, ConfigError, unknown_name
from aprl.files import read_json, require_path, require_writable_directory
from aprl.training.interruption import Interrupted

SETTINGS.CONFIG.ENFORCE_KEYS_MONGO_COMPATIBLE = False  # axes are named "rl_args.gamma"
SETTINGS.CAPTURE_MODE = "sys"  # "fd" would hide from progress bars that they are on a terminal

CheckedRoot = Callable[[dict[str, Any]], Path]


class Part(NamedTuple):
    """A group of entries that several experiments share, as in `env.name=...`.

    Attributes:
        config: defaults.
        named_configs: chosen as `<part>.<named config>`.
    """

    config: dict[str, Any]
    named_configs: Mapping[str, dict[str, Any]]


class Entry(NamedTuple):
    """An entry of a command's configuration that its config dataclass does not have.

    Attributes:
        default: its value unless given.
        comment: what it does.
    """

    default: Any
    comment: str


RESUME = {"resume": Entry(None, "run directory to continue; True: the newest unfinished one")}


class CommandExperiment(Experiment):
    """A Sacred experiment that is a command: it can explain itself, and checks before it records.

    Args:
        name: of the experiment, and of the directory of its records.
        config_class: dataclass that declares the configuration, a comment per field.
        named_configs: by name, the entries that each sets.
        parts: by name, groups of entries; they take the place of the fields of these names.
        extra: by name, entries beyond the dataclass.
        checked_root: checks a config as far as is possible without writing anything, and returns
            the directory in which the run is to be recorded; None: its `root_dir`.
    """

    def __init__(
        self,
        name: str,
        config_class: type,
        named_configs: Mapping[str, dict[str, Any]] | None = None,
        *,
        parts: Mapping[str, Part] | None = None,
        extra: Mapping[str, Entry] | None = None,
        checked_root: CheckedRoot | None = None,
    ) -> None:
        self.config_class, self.named = config_class, dict(named_configs or {})
        self.parts, self.extra = dict(parts or {}), dict(extra or {})
        ingredients = []
        for part_name, part in self.parts.items():
            ingredients.append(Ingredient(part_name, save_git_info=False))
            ingredients[-1].add_config(part.config)
            for config_name, values in part.named_configs.items():
                ingredients[-1].add_named_config(config_name, values)
        super().__init__(name, ingredients=ingredients, save_git_info=False)
        self.logger = _quiet_logger()  # type: ignore[assignment]
        defaults = {k: v for k, v in asdict(config_class()).items() if k not in self.parts}
        self.add_config(defaults | {k: entry.default for k, entry in self.extra.items()})
        for config_name, values in self.named.items():
            self.add_named_config(config_name, values)
        self.records = _Records(name, checked_root)
        self.observers.append(self.records)

    def known_named_configs(self) -> dict[str, Mapping[str, Any]]:
        """What may follow `with`, beside entries and files: the entries that each name sets."""
        known: dict[str, Mapping[str, Any]] = dict(self.named)
        for part_name, part in self.parts.items():
            known |= {f"{part_name}.{name}": v for name, v in part.named_configs.items()}
        return known

    def usage(self) -> str:
        """What `--help` prints."""
        spec = sys.modules["__main__"].__spec__
        program = f"python -m {spec.name if spec else '...'}"
        named = self.known_named_configs()
        parts = [
            f"usage: {program} [with NAME | FILE.json | ENTRY=VALUE ...]",
            f"       {program} print_config [with ...]    show the configuration, do nothing",
            *(["", "named configs (NAME):", describe_named_configs(named)] * bool(named)),
            *("", "configuration (ENTRY = default):"),
            describe_entries(self.config_class, without=self.parts),
            *(describe_entry(name, *entry) for name, entry in self.extra.items()),
            *(
                describe_entry(f"{part_name}.{name}", value)
                for part_name, part in self.parts.items()
                for name, value in part.config.items()
            ),
        ]
        return "\n".join(parts)


class _Records(FileStorageObserver):
    """Sacred's records of a run, in `<root>/sacred/<name>`; the config says what the root is."""

    def __init__(self, name: str, checked_root: CheckedRoot | None) -> None:
        super().__init__(".")
        self.template = None
        self.default_root = "."
        self._name = name
        self._checked_root = checked_root or self._root_dir

    def _root_dir(self, config: dict[str, Any]) -> Path:
        root = config.get("root_dir", self.default_root)
        if not isinstance(root, str | Path):
            raise ConfigError(f"root_dir must be a path, got {root!r}")
        return require_path(root, "root_dir")

    def started_event(self, **event: Any) -> str:  # type: ignore[override]
        """Check the config and begin the records, before the experiment runs."""
        with user_errors():
            self._open(event["config"])
            return super().started_event(**event)

    def queued_event(self, **event: Any) -> str:  # type: ignore[override]
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


def _check_arguments(experiment: CommandExperiment, arguments: Sequence[str]) -> None:
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
    named = experiment.known_named_configs()
    first = arguments[0] if arguments else "with"
    if not (first.startswith("-") or first == "with" or first in commands):
        if "=" in first or first in named or Path(first).is_file():
            raise ConfigError(f"{first!r} is no command; did you mean: with {first}?")
        raise unknown_name("command", first, ["with", "help", *commands])
    if position == len(arguments) - 1 or ("with" in arguments and not updates):
        raise ConfigError("nothing follows 'with'; give named configs, or entries as name=value")
    for name in (update for update in updates if "=" not in update):
        if Path(name).is_file():
            _check_config_file(name)
        elif name not in named:
            if Path(name).is_dir():
                raise ConfigError(f"{name!r} after 'with' is a directory, not a named config")
            raise unknown_name("named config", name, named)
    try:
        given, _ = get_config_updates(updates)
    except (TypeError, ValueError, KeyError):
        raise ConfigError(f"entries contradict each other: {' '.join(updates)}") from None
    if "resume" in experiment.extra and given.get("resume") is not None:
        names = [u for u in updates if "=" not in u]
        other = [*names, *(k for k in given if k not in ("resume", "progress", "root_dir"))]
        if other:
            raise ConfigError(
                f"a run is resumed under its own config; {', '.join(other)} cannot be given too"
            )
        if given["resume"] is not True and "root_dir" in given:
            raise ConfigError("root_dir is for resume=True; a run directory was given")
        if given["resume"] is False or not str(given["resume"]).strip():
            raise ConfigError("resume is empty; give a run directory, or True for the newest")
    if "seed" in given:  # Sacred would use it before the experiment can check it
        require_between("seed", given["seed"], 0, MAX_SEED)


def _check_config_file(name: str) -> None:
    """Check a config file before Sacred reads it, which for other formats could run code."""
    if Path(name).suffix != ".json":
        raise ConfigError(f"config file {name!r} is not supported; give a .json file")
    values = read_json(name)
    if not isinstance(values, dict):
        raise ConfigError(f"config file {name!r} does not hold entries, but {str(values)[:50]}")
    if _has_key_with(values, ("py/", "json://")):  # jsonpickle's ways to name Python objects
        raise ConfigError(f"config file {name!r} holds Python objects, which are not supported")
    if "seed" in values:
        require_between(f"{name}: seed", values["seed"], 0, MAX_SEED)


def _has_key_with(value: Any, prefix: str | tuple[str, ...]) -> bool:
    if isinstance(value, dict):
        return any(k.startswith(prefix) or _has_key_with(v, prefix) for k, v in value.items())
    return isinstance(value, list) and any(_has_key_with(v, prefix) for v in value)


def command_line(experiment: CommandExperiment, default_root: str, argv: Sequence[str]) -> None:
    """Run an experiment's command line and exit.

    Exit codes: 0, or 1 with one line for bad input, or 128 + the signal's number after a clean
    stop.

    Args:
        experiment: with its main function wrapped in `user_errors`.
        default_root: where runs are recorded unless the configuration has a `root_dir`.
        argv: as in `sys.argv`.
    """
    experiment.records.default_root = default_root

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
