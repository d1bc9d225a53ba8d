"""Files of shards, hashed while they are written.

bytes -> [this file] -> a file in a folder, its size and SHA-256
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import IO, Any, NamedTuple

from .places import Folder

_AT_ONCE = 1 << 20  # bytes


class FileFacts(NamedTuple):
    """A file that was written."""

    name: str
    size: int
    sha256: str


class HashedFile:
    """A file that is written from its beginning to its end, and hashed on the way."""

    def __init__(self, folder: Folder, name: str) -> None:
        self.name = name
        self.size = 0
        self.closed = False
        self._unfinished = folder.create(name)
        self._hash = hashlib.sha256()

    def write(self, data: Any) -> int:
        """All of `data`, which has a buffer."""
        rest = memoryview(data).cast("B")
        self._hash.update(rest)
        size = len(rest)
        try:
            while rest:
                rest = rest[self._unfinished.file.write(rest) :]
        except OSError as error:  # of a full disk, which has no name
            raise type(error)(error.errno, error.strerror, error.filename or self.name) from error
        self.size += size
        return size

    def tell(self) -> int:
        """Where the next byte goes."""
        return self.size

    def flush(self) -> None:
        """Nothing: nothing is kept back."""

    def begin_with(self, head: bytes) -> None:
        """Write `head` over the beginning, once all else is written."""
        file = self._unfinished.file
        file.seek(0)
        file.write(head)
        file.seek(0)
        self._hash = hashlib.sha256()
        while block := file.read(_AT_ONCE):
            self._hash.update(block)

    def finish(self) -> FileFacts:
        """Put it in its place."""
        self._unfinished.finish()
        return FileFacts(self.name, self.size, self._hash.hexdigest())

    def discard(self) -> None:
        """Remove it."""
        self._unfinished.discard()


def hashed_file(folder: Folder, name: str, parts: Iterable[Any]) -> HashedFile:
    """A file of some parts, which is not in its place yet."""
    file = HashedFile(folder, name)
    try:
        for part in parts:
            file.write(part)
    except BaseException:
        file.discard()
        raise
    return file


def file_hash(file: IO[bytes]) -> str:
    """The SHA-256 of what a file has."""
    found = hashlib.sha256()
    while block := file.read(_AT_ONCE):
        found.update(block)
    return found.hexdigest()
