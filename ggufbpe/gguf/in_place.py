"""Some bytes of a file written anew where they stand, with an undo record beside it until they are whole.

    file, offset, new bytes -> [this file] -> the same file

The record holds what stood there and what is to stand there. It is on the disk before the file is touched, and goes
when the file is whole on the disk; so whoever finds one finds a change that was interrupted, or is under way, and
`recover` ends it. A file with a record is not opened (source.py): it may be half of each.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Literal, NamedTuple

from ..errors import InterruptedChangeError
from ..files import replacing, sync, sync_folder
from .source import undo_record

_MAGIC = b"ggufbpe undo 1\n"
_LENGTHS = struct.Struct("<QQ")  # where the bytes stand, and how many there are
_BLOCK = 1 << 16


class _Record(NamedTuple):
    offset: int
    before: bytes
    after: bytes


def rewrite(path: str | os.PathLike[str], offset: int, before: bytes, after: bytes) -> None:
    """Write `after` over `before`, which is as long and stands at `offset` of the file.

    An error and an interruption write `before` again; where that cannot be done either, the record stays, and
    `recover` does it later. Raises `OSError`, and `InterruptedChangeError` where another process is at it.
    """
    first, last = _differing(before, after)
    if first == last:
        return
    change = _Record(offset + first, before[first:last], after[first:last])
    with _open_alone(path) as file:
        record = undo_record(path)
        with replacing(record) as (written, _):
            written.write(_packed(change))
        try:
            _write(file, change.offset, change.after)
        except BaseException:  # an interruption, too
            _write(file, change.offset, change.before)
            _remove(record)
            raise
        _remove(record)


def recover(path: str | os.PathLike[str]) -> Literal["undone", "finished"] | None:
    """End a change of the file that was interrupted: what was not yet written whole is undone. None: there was none.

    Raises `OSError`, and `InterruptedChangeError` where the change is under way, or the file is another one by now.
    """
    record = undo_record(path)
    if not os.path.exists(record):
        return None
    with _open_alone(path) as file:
        with open(record, "rb") as written:
            change = _unpacked(written.read(), record)
        file.seek(change.offset)
        found = file.read(len(change.before))
        if len(found) != len(change.before) or not _is_mixed(found, change):
            raise InterruptedChangeError(
                f"{os.path.basename(record)} beside it is of another file than this one is by now",
                path=os.fspath(path),
                remedy="if the file is sound, remove the record",
            )
        if found != change.after:
            _write(file, change.offset, change.before)
        _remove(record)
    return "finished" if found == change.after else "undone"


@contextmanager
def _open_alone(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """The file, to be changed by nobody else who asks in this way."""
    with open(path, "r+b", buffering=0) as file:
        try:
            import fcntl
        except ImportError:  # Windows
            yield file
            return
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InterruptedChangeError("another process is changing it", path=os.fspath(path)) from None
        yield file


def _write(file: IO[bytes], offset: int, data: bytes) -> None:
    file.seek(offset)
    left = memoryview(data)
    while left:
        left = left[file.write(left[: 1 << 20]) :]
    sync(file)


def _remove(record: str) -> None:
    os.unlink(record)
    with suppress(OSError):
        sync_folder(os.path.dirname(record))


def _packed(change: _Record) -> bytes:
    content = _LENGTHS.pack(change.offset, len(change.before)) + change.before + change.after
    return _MAGIC + hashlib.sha256(content).digest() + content


def _unpacked(data: bytes, path: str) -> _Record:
    start = len(_MAGIC) + 32
    content = data[start:]
    if data[: len(_MAGIC)] != _MAGIC or hashlib.sha256(content).digest() != data[len(_MAGIC) : start]:
        raise InterruptedChangeError("this is no undo record, or a damaged one", path=path)
    offset, size = _LENGTHS.unpack_from(content)
    both = content[_LENGTHS.size :]
    return _Record(offset, both[:size], both[size:])


def _is_mixed(found: bytes, change: _Record) -> bool:
    """Whether each byte is one of those before or one of those after."""
    for start in range(0, len(found), _BLOCK):
        parts = [data[start : start + _BLOCK] for data in (found, change.before, change.after)]
        if parts[0] not in parts[1:] and not all(byte in either for byte, *either in zip(*parts)):
            return False
    return True


def _differing(a: bytes, b: bytes) -> tuple[int, int]:
    """From where to where two texts of one length differ.

    >>> _differing(b"abcd", b"aXYd"), _differing(b"a", b"a")
    ((1, 3), (1, 1))
    """
    first = 0
    while first < len(a) and a[first : first + _BLOCK] == b[first : first + _BLOCK]:
        first += _BLOCK
    first = min(first, len(a))
    while first < len(a) and a[first] == b[first]:
        first += 1
    last = len(a)
    while last - _BLOCK > first and a[last - _BLOCK : last] == b[last - _BLOCK : last]:
        last -= _BLOCK
    while last > first and a[last - 1] == b[last - 1]:
        last -= 1
    return first, last
