"""Locks a file while it is read, changed and written again, so that of two changes at once none is lost.

A lock belongs to the file that was opened, not to its name: a change may replace the file by a copy, and whoever waited
with the old one open would change a file that is gone. So the name is asked again once the lock is held. On file
systems without locks, and on SMB shares, a file is only replaced, and first compared with what it was. On Windows
nothing is locked: a change in place is noticed only by its undo record, which `recover` takes for that of an
interrupted one.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import IO, Literal, NamedTuple

from .._util.errors import InterruptedChangeError
from .._util.files import lock

_ATTEMPTS = 10  # to lock a file before another one has its name


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
    path, file, failure = os.fspath(path), None, ""
    if os.name != "nt" and os.path.isfile(path):  # a pipe would wait for a writer
        try:
            file = _locked(path)
        except OSError as error:  # then it is closed: some systems, like Windows, replace no open file
            failure = str(error)
    with file or nullcontext():
        yield FileLock(path, os.stat(file.fileno() if file else path), failure)


def _locked(path: str) -> IO[bytes]:
    """The file at `path`, open and locked. `InterruptedChangeError` if that is not possible now, `OSError` if never."""
    for _ in range(_ATTEMPTS):
        file = _opened(path, "rb")
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                return file
        file.close()
    raise InterruptedChangeError("another file has its name each time that it is locked", path=path)


def _opened(path: str, mode: Literal["rb", "r+b"]) -> IO[bytes]:
    """A file that was at `path`, open and locked."""
    file = open(path, mode, buffering=0)  # noqa: SIM115 - the caller closes it
    try:
        lock(file, path)
    except OSError as error:
        file.close()
        if error.errno in (errno.EAGAIN, errno.EACCES):  # the second is what SMB says
            raise InterruptedChangeError("another process is changing it", path=path) from None
        if error.errno == errno.EBADF and mode == "rb":  # NFS
            return _opened(path, "r+b")  # not at once: overlayfs then copies the whole file
        raise
    return file


def _state(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
