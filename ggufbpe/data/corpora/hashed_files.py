"""Writes the files of shards and hashes them (SHA-256) on the way."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import IO, Any, NamedTuple

from .storage import Folder

AT_ONCE = 1 << 20  # bytes


class FileFacts(NamedTuple):
    """A file that was written: its `name`, its `size` in bytes, and its SHA-256 in hex (`sha256`)."""

    name: str
    size: int
    sha256: str


class HashedFile:
    """A file that is hashed while it is written, from beginning to end."""

    def __init__(self, folder: Folder, name: str) -> None:
        self.name = name
        self.size = 0
        self.closed = False
        self._unfinished = folder.create(name)
        self._hash = hashlib.sha256()

    def write(self, data: Any) -> int:
        """Write all of `data`, a buffer."""
        rest = memoryview(data).cast("B")
        self._hash.update(rest)
        size = len(rest)
        try:
            while rest:
                rest = rest[self._unfinished.file.write(rest) :]
        except OSError as error:  # such as a full disk; the error has no file name
            raise type(error)(error.errno, error.strerror, error.filename or self.name) from error
        self.size += size
        return size

    def tell(self) -> int:
        """The current position."""
        return self.size

    def flush(self) -> None:
        """Does nothing: writes are not buffered."""

    def begin_with(self, head: bytes) -> None:
        """Overwrite the beginning with `head`, after everything else is written, and hash again."""
        file = self._unfinished.file
        file.seek(0)
        file.write(head)
        file.seek(0)
        self._hash = hashlib.sha256()
        while block := file.read(AT_ONCE):
            self._hash.update(block)

    def finish(self) -> FileFacts:
        """Sync it, and give it its name."""
        self._unfinished.finish()
        return FileFacts(self.name, self.size, self._hash.hexdigest())

    def discard(self) -> None:
        """Remove it."""
        self._unfinished.discard()


def hashed_file(folder: Folder, name: str, parts: Iterable[Any]) -> HashedFile:
    """A file with these parts, not finished yet."""
    file = HashedFile(folder, name)
    try:
        for part in parts:
            file.write(part)
    except BaseException:
        file.discard()
        raise
    return file


def file_hash(file: IO[bytes]) -> str:
    """The SHA-256 of a file."""
    digest = hashlib.sha256()
    while block := file.read(AT_ONCE):
        digest.update(block)
    return digest.hexdigest()
