"""Locks a file while it is read, changed and written again, so that of two changes at once none is lost.

A lock belongs to the file that was opened, not to its name: a change may replace the file by a copy, and whoever waited
with the old one open would change a file that is gone. So the name is asked again once the lock is held. Windows, and
file systems without locks, leave the comparison with the file as it was at first.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, NamedTuple

from .._util.errors import InterruptedChangeError


class FileLock(NamedTuple):
    """A file that no other process changes with ggufbpe, and its state when it was locked."""

    path: str
    status: os.stat_result
    failure: str  # why the file system did not lock it; "" if it did

    def require_unchanged(self) -> None:
        """Raise `InterruptedChangeError` if another file is at the path by now, or this one has been written to."""
        try:
            is_changed = _state(os.stat(self.path)) != _state(self.status)
        except FileNotFoundError:
            is_changed = True
        if is_changed:
            raise InterruptedChangeError("another process has changed it in the meantime", path=self.path)


@contextmanager
def locked(path: str | os.PathLike[str]) -> Iterator[FileLock]:
    """The file at `path`, locked until the end of the block. Reading it needs no lock.

    `InterruptedChangeError` at once if another process has locked it; `OSError` if it cannot be opened.
    """
    path = os.fspath(path)
    if os.name == "nt" or not os.path.isfile(
        path
    ):  # Windows replaces no open file; a pipe waits for a writer
        yield FileLock(path, os.stat(path), "")
        return
    while True:
        with _opened(path) as file:
            failure, status = _locked(file, path), os.fstat(file.fileno())
            if os.path.samestat(status, os.stat(path)):
                yield FileLock(path, status, failure)
                return


def _opened(path: str) -> IO[bytes]:
    """The file, open for writing where that is allowed: NFS locks no other."""
    try:
        return open(path, "r+b", buffering=0)
    except OSError:
        return open(path, "rb", buffering=0)


def _locked(file: IO[bytes], path: str) -> str:
    """Lock an open file. Returns why its file system cannot, or ""."""
    import fcntl

    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InterruptedChangeError("another process is changing it", path=path) from None
    except OSError as error:
        return str(error)
    return ""


def _state(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
