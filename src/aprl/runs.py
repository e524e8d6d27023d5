"""Run directories: the names of their files, finding them in a tree, and reading them.

A run is a directory with `config.json` and at least one of `rl/`, `final_model/`, `status.json`.
"""

import csv
import hashlib
import io
import itertools
import logging
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from aprl.errors import RunError
from aprl.files import PathLike, read_json, require_writable_directory, sha256

CONFIG_FILE = "config.json"
STATUS_FILE = "status.json"
PROGRESS_FILE = "rl/progress.csv"
TENSORBOARD_DIR = "rl/tb"
EVALUATION_FILE = "evaluation.json"
FINAL_MODEL_DIR = "final_model"
CHECKPOINT_DIR = "checkpoint"
POLICY_FILES = (f"{FINAL_MODEL_DIR}/policy.json", f"{FINAL_MODEL_DIR}/policy.safetensors")

COUNT_COLUMNS = ("game_count_win0", "game_count_win1", "game_count_tie")
PROPORTION_COLUMNS = ("game_win0", "game_win1", "game_total")

_PRUNED = {CHECKPOINT_DIR, "mon", "tb"}

logger = logging.getLogger(__name__)


class GameCounts(NamedTuple):
    """Finished games by outcome."""

    win0: int
    win1: int
    tie: int

    @property
    def games(self) -> int:
        """Number of finished games."""
        return sum(self)


@dataclass(frozen=True)
class RunRecord:
    """What a run directory says about its run.

    Attributes:
        path: the run directory.
        config: the whole config.
        env_name: environment id.
        embed_index: index of the embedded agent in the game; None when nothing is embedded.
        embedded: type and path of each embedded policy.
        load_path: the policy that training started from; None for a fresh one.
        status: "running", "completed", "interrupted", "failed"; None without a status file.
        num_timesteps: environment steps made; 0 without a status file.
        finished: whether the final policy is there.
        rollouts: games that finished in each rollout, oldest first; empty when nothing is embedded,
            since such games have one player and no winner between two.
    """

    path: Path
    config: dict[str, Any]
    env_name: str
    embed_index: int | None
    embedded: tuple[tuple[str, str], ...]
    load_path: str | None
    status: str | None
    num_timesteps: int
    finished: bool
    rollouts: tuple[GameCounts, ...]

    def newest_games(self, window: int) -> GameCounts:
        """Sum the newest rollouts that together hold at least `window` finished games.

        Rollouts are taken whole. All are taken when the run has fewer games.
        """
        total = GameCounts(0, 0, 0)
        for rollout in reversed(self.rollouts):
            if total.games >= window:
                break
            total = GameCounts(*(a + b for a, b in zip(total, rollout, strict=True)))
        return total


def new_run_dir(root_dir: str, exp_name: str) -> Path:
    """Make an empty run directory `<root_dir>/<time>-<exp_name>`; never one that exists.

    Raises:
        RunError: `root_dir` is not writable.
    """
    root = require_writable_directory(root_dir)
    stem = f"{datetime.now():%Y%m%d_%H%M%S}-{exp_name.replace('/', '_')}"[:240]
    for suffix in itertools.chain([""], (f"-{i}" for i in itertools.count(2))):
        path = root / f"{stem}{suffix}"
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path
    raise AssertionError("unreachable")


def find_runs(root: PathLike) -> list[Path]:
    """Find the run directories at and below `root`, sorted.

    Symbolic links are followed; a directory that can be reached in several ways is visited once,
    preferably by a way without links. Directories named `checkpoint`, `mon` or `tb`, and those of
    unfinished atomic writes, are not searched, nor is the inside of a run.

    Args:
        root: directory to search.

    Returns:
        Paths that start with `root` as it was given.

    Raises:
        RunError: `root` is no directory.
    """
    root = Path(root)
    if not root.is_dir():
        found = "is not a directory" if root.exists() else "does not exist"
        raise RunError(f"run directory {root} {found}")
    runs: list[Path] = []
    seen: set[tuple[int, int]] = set()
    pending = [str(root)]
    while pending:
        links: list[str] = []
        for start in sorted(pending):
            for where, names, files in os.walk(start, onerror=_report_unreadable):
                if not _first_visit(where, seen):
                    names.clear()
                elif CONFIG_FILE in files and _looks_like_run(names, files):
                    runs.append(Path(where))
                    names.clear()
                names[:] = sorted(name for name in names if not _is_pruned(name))
                paths = (os.path.join(where, name) for name in names)
                links += [path for path in paths if os.path.islink(path)]
        pending = links
    return sorted(runs)


def _looks_like_run(directories: Sequence[str], files: Sequence[str]) -> bool:
    return "rl" in directories or FINAL_MODEL_DIR in directories or STATUS_FILE in files


def _is_pruned(name: str) -> bool:
    return name in _PRUNED or (name.startswith(".") and ".tmp-" in name)


def _first_visit(directory: str, seen: set[tuple[int, int]]) -> bool:
    try:
        status = os.stat(directory)
    except OSError:  # deleted meanwhile
        return False
    identity = (status.st_dev, status.st_ino)
    if identity in seen:
        return False
    seen.add(identity)
    return True


def _report_unreadable(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        logger.warning("cannot search %s: %s", error.filename, error.strerror)


def is_finished(run: PathLike) -> bool:
    """Whether the run's final policy is there."""
    return all((Path(run) / name).is_file() for name in POLICY_FILES)


def read_status(run: PathLike) -> tuple[str | None, int]:
    """Read a run's status and its number of environment steps; (None, 0) without a status file.

    Raises:
        RunError: the status file is damaged.
    """
    path = Path(run) / STATUS_FILE
    if not path.exists():
        return None, 0
    record = read_json(path)
    status = record.get("status") if isinstance(record, dict) else None
    steps = record.get("num_timesteps", 0) if isinstance(record, dict) else None
    if not isinstance(status, str) or type(steps) is not int:
        raise RunError(f"{path} lacks a status and a whole num_timesteps")
    return status, steps


def read_run(path: PathLike) -> RunRecord:
    """Read a run directory.

    A last line of the log that was cut short by a kill is left out. Logs that hold proportions of
    games but no counts are read too.

    Raises:
        RunError: a file is missing or damaged; the message names it.
    """
    path = Path(path)
    config_path = path / CONFIG_FILE
    config = read_json(config_path)
    if not isinstance(config, dict) or not isinstance(config.get("env_name"), str):
        raise RunError(f"{config_path} does not name the game (env_name)")
    embedded = _embedded(config, config_path)
    embed_index = config.get("embed_index")
    if embedded and (type(embed_index) is not int or embed_index not in (0, 1)):
        raise RunError(f"{config_path}: embed_index is {embed_index!r}, expected 0 or 1")
    load_policy = config.get("load_policy") or {}
    load_path = load_policy.get("path") if isinstance(load_policy, dict) else None
    status, num_timesteps = read_status(path)
    finished = is_finished(path)
    if finished:
        _check_weights(path)
    return RunRecord(
        path=path,
        config=config,
        env_name=config["env_name"],
        embed_index=embed_index if embedded else None,
        embedded=embedded,
        load_path=None if load_path is None else str(load_path),
        status=status,
        num_timesteps=num_timesteps,
        finished=finished,
        rollouts=_read_progress(path / PROGRESS_FILE) if embedded else (),
    )


def _embedded(config: dict[str, Any], config_path: Path) -> tuple[tuple[str, str], ...]:
    """Pairs of type and path, from the lists or else from the single entries."""
    types, paths = config.get("embed_types"), config.get("embed_paths")
    if types is None and paths is None:
        if config.get("embed_path") is None and config.get("embed_type") is None:
            return ()
        types, paths = [config.get("embed_type") or "zoo"], [config.get("embed_path")]
    if not isinstance(types, list) or not isinstance(paths, list) or len(types) != len(paths):
        raise RunError(
            f"{config_path}: embed_types and embed_paths must be lists of the same length, "
            f"got {types!r} and {paths!r}"
        )
    return tuple((str(kind), str(where)) for kind, where in zip(types, paths, strict=True))


def _check_weights(run: Path) -> None:
    """Raise if the final policy's weights are not those that its header describes."""
    header_path, weights_path = (run / name for name in POLICY_FILES)
    header = read_json(header_path)
    expected = header.get("weights_sha256") if isinstance(header, dict) else None
    try:
        damaged = expected is not None and sha256(weights_path) != expected
    except OSError as error:
        raise RunError(f"{weights_path} cannot be read: {error.strerror}") from None
    if damaged:
        raise RunError(f"{weights_path} is damaged: its hash is not the one in {header_path.name}")


def _read_progress(path: Path) -> tuple[GameCounts, ...]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}") from None
    complete = content[: content.rfind(b"\n") + 1]
    if len(complete) < len(content):
        logger.warning("%s: the last line is cut short; left out", path)
    try:
        reader = csv.reader(io.StringIO(complete.decode("utf-8"), newline=""), strict=True)
        header = next(reader, [])
        parse = _row_parser(header, path)
        rollouts = []
        for row in reader:
            if len(row) != len(header):
                raise ValueError(f"{len(row)} fields, expected {len(header)}")
            rollouts.append(parse(row))
    except UnicodeDecodeError:
        raise RunError(f"{path} is not text") from None
    except (csv.Error, ValueError) as error:
        raise RunError(f"{path}, line {reader.line_num}: {error}") from None
    return tuple(rollouts)


def _row_parser(header: Sequence[str], path: Path) -> Callable[[Sequence[str]], GameCounts]:
    """Reader of one row; it uses the counts where the row has them, else the proportions."""

    def columns(names: Sequence[str]) -> list[int] | None:
        return [header.index(n) for n in names] if set(names) <= set(header) else None

    counts, proportions = columns(COUNT_COLUMNS), columns(PROPORTION_COLUMNS)
    if counts is None and proportions is None:
        raise RunError(f"{path} has no game columns such as {COUNT_COLUMNS[0]}")

    def parse(row: Sequence[str]) -> GameCounts:
        if counts is not None:
            cells = [_number(row[i]) for i in counts]
            if not all(cell is None for cell in cells):
                return _counts(cells)
        if proportions is not None:
            win0, win1, total = (_number(row[i]) for i in proportions)
            if total:
                if win0 is None or win1 is None:
                    raise ValueError(f"{total:g} games but no proportion of wins")
                won = [float(round(win0 * total)), float(round(win1 * total))]
                return _counts([*won, total - sum(won)])
        return GameCounts(0, 0, 0)

    return parse


def _number(cell: str) -> float | None:
    """Value of a cell; None when it is empty or NaN."""
    value = float(cell) if cell else math.nan
    return None if math.isnan(value) else value


def _counts(cells: Sequence[float | None]) -> GameCounts:
    if not all(cell is not None and 0 <= cell < 2**53 and cell.is_integer() for cell in cells):
        raise ValueError(f"game counts {list(cells)} are not all whole and non-negative")
    return GameCounts(*(int(cell) for cell in cells if cell is not None))


def run_stamp(run: PathLike) -> str:
    """Digest (SHA-256, hex) of the files that a finished run is judged by.

    Equal for equal content, whatever the modification times.
    """
    digest = hashlib.sha256()
    for name in (CONFIG_FILE, STATUS_FILE, PROGRESS_FILE, *POLICY_FILES):
        try:
            content = (Path(run) / name).read_bytes()
        except OSError:
            digest.update(f"{name} absent\n".encode())
        else:
            digest.update(f"{name} {len(content)}\n".encode())
            digest.update(content)
    return digest.hexdigest()
