"""One process at a time in a directory; a lock ends with the process that holds it."""

import contextlib
import errno
import fcntl
import logging
import os
from pathlib import Path

from aprl.errors import RunError
from aprl.files import PathLike

LOCK_FILE = ".lock"

logger = logging.getLogger(__name__)


class DirectoryLock:
    """An exclusive lock on a directory, by `flock` on a file in it.

    The operating system drops it when the process ends, however it ends. The file is removed when
    the lock is released.

    Args:
        directory: an existing directory.
    """

    def __init__(self, directory: PathLike) -> None:
        self._directory = Path(directory)
        self._path = self._directory / LOCK_FILE
        self._handle: int | None = None

    def acquire(self) -> None:
        """Take the lock; nothing happens if it is held already.

        Where the file system knows no locks, a warning is logged and work goes on without.

        Raises:
            RunError: another process, or another lock in this one, holds it.
        """
        while self._handle is None:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.pread(handle, 20, 0).decode(errors="replace").strip()
                os.close(handle)
                raise RunError(
                    f"{self._directory} is in use by another process"
                    f"{f' ({holder})' if holder else ''}; wait for it or stop it first"
                ) from None
            except OSError as error:
                if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
                    os.close(handle)
                    raise
                logger.warning("%s cannot be locked: %s", self._directory, error.strerror)
            if _is_same_file(handle, self._path):
                self._handle = handle
            else:  # its last holder removed it meanwhile
                os.close(handle)
        with contextlib.suppress(OSError):  # the number only helps the reader of a message
            os.truncate(self._handle, 0)
            os.pwrite(self._handle, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Give the lock back; nothing happens if it is not held."""
        if self._handle is None:
            return
        with contextlib.suppress(OSError):
            if _is_same_file(self._handle, self._path):
                os.unlink(self._path)
        os.close(self._handle)
        self._handle = None

    def __del__(self) -> None:
        self.release()


def is_locked(directory: PathLike) -> bool:
    """Whether a process holds the `DirectoryLock` of a directory at this moment."""
    try:
        handle = os.open(Path(directory) / LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(handle)
    return False


def _is_same_file(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False
