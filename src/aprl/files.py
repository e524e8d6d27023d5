"""Writing that loses nothing: a reader sees the old file or the new one, never half of one."""

import contextlib
import errno
import hashlib
import itertools
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aprl.errors import RunError

PathLike = str | os.PathLike[str]


@contextlib.contextmanager
def atomic_path(target: PathLike) -> Iterator[Path]:
    """Yield a temporary path beside `target`; on success it replaces `target`, else it is removed.

    Works for a file and for a directory (the block creates either at the yielded path). The
    content is flushed to disk before the replacement, so that a full disk or a kill leaves the old
    content intact. Two writers at once: the later one wins whole. A file is replaced in one step;
    between an old directory and the new one there is an instant without either.
    """
    target = Path(target)
    with _blaming(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        holder = Path(tempfile.mkdtemp(prefix=f".{target.name}.tmp-", dir=target.parent))
    try:
        with _blaming(target):
            staged = holder / target.name
            yield staged
            _flush(staged)
            if staged.is_dir():
                _replace_directory(staged, target, holder)
            else:
                os.replace(staged, target)
    finally:
        shutil.rmtree(holder, ignore_errors=True)


@contextlib.contextmanager
def _blaming(target: Path) -> Iterator[None]:
    """Let errors of the operating system name `target` rather than nothing or a temporary path."""
    try:
        yield
    except OSError as error:
        if error.filename is None or f".{target.name}.tmp-" in str(error.filename):
            error.filename, error.filename2 = str(target), None
        raise


def _flush(path: Path) -> None:
    for file in [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]:
        with open(file, "rb") as handle:
            os.fsync(handle.fileno())


def _replace_directory(staged: Path, target: Path, holder: Path) -> None:
    """Swap a directory in; `rename` cannot replace a non-empty one, so the old one steps aside."""
    for attempt in itertools.count():
        aside = holder / f".replaced-{attempt}"
        with contextlib.suppress(FileNotFoundError):
            os.rename(target, aside)
        try:
            os.rename(staged, target)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                continue  # another writer put its version there first: replace that one
            if os.path.lexists(aside) and not os.path.lexists(target):
                os.rename(aside, target)
            raise
        return


def write_json(path: PathLike, value: Any) -> None:
    """Write JSON atomically: sorted keys, indented, NaN refused (it is not JSON)."""
    text = json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n"
    with atomic_path(path) as staged:
        staged.write_text(text, encoding="utf-8")


def read_json(path: PathLike) -> Any:
    """Read a JSON file.

    Raises:
        RunError: missing, unreadable or not JSON; the message names the file.
    """
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunError(f"{path} does not exist") from None
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"{path} is not readable JSON: {error}") from None


def require_path(path: PathLike, what: str) -> Path:
    """Refuse an empty path, which would silently mean the working directory.

    Args:
        path: as the user gave it.
        what: its name in the message.

    Raises:
        RunError: it is empty.
    """
    if not str(path).strip():
        raise RunError(f"{what} is empty; give a path ('.' is the working directory)")
    return Path(path)


def require_writable_directory(path: PathLike) -> Path:
    """Create `path` if needed and check that files can be made in it.

    Raises:
        RunError: it is no directory, or not writable.
    """
    path = Path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise RunError(f"output directory {path} is not writable: {error.strerror}") from None
    return path


def sha256(path: PathLike) -> str:
    """Hex digest of a file's content."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
