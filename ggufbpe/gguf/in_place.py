"""Overwrites some bytes of a GGUF in place, with an undo record beside the file until all of them are written.

Three writes are synced to disk in order: the record, with the old bytes and the new ones; a magic that no program
takes for a GGUF's; the new bytes. Then the magic is restored and the record removed. So a crash at any moment
leaves a file that is whole, or one that no program loads and that `recover` makes whole. A record belongs to the
file whose inode number it has: a copy, or another download with that name, is not touched.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
from contextlib import suppress
from typing import IO, Literal, NamedTuple

from .._util.errors import InterruptedChangeError, printable
from .._util.files import opened_regular, replacing, sync, sync_folder, undo_record
from .constants import GGUF_MAGIC
from .file_lock import FileLock, locked

_MAGIC = b"ggufbpe undo 1\n"
_HEAD = struct.Struct("<QQQQ")  # inode and size of the file, offset and number of the bytes
_START = len(_MAGIC) + 32  # after the magic and the hash of all that follows
_BLOCK = 1 << 16
HALF_WRITTEN = b"\0GGU"  # in the place of the magic


class CannotRewriteError(OSError):
    """The file cannot be changed in place, and is unchanged: a copy may replace it."""


class _Record(NamedTuple):
    number: int  # of the file: its inode
    file_size: int
    offset: int
    before: bytes
    after: bytes


def is_half_written(path: str | os.PathLike[str]) -> bool:
    """Whether a change of the file was interrupted, or is under way. A record of another file does not count."""
    change = _record_of(path)
    if change is None:
        return False
    with open(path, "rb", buffering=0) as file:
        magic, data = _found(file, change)
    return magic != GGUF_MAGIC or data not in (change.before, change.after)


def rewrite(lock: FileLock, offset: int, before: bytes, after: bytes) -> None:
    """Write `after` over `before`, which has the same length and stands at `offset` of the locked file.

    An error or an interruption writes `before` again; if that fails, too, the record stays, and `recover` does it
    later. Raises `CannotRewriteError` if the file or its folder cannot be written this way,
    `InterruptedChangeError` if another process has changed the file or left a change unfinished, or if something else
    lies in the place of the record, and `OSError`.
    """
    first, last = _differing(before, after)
    if first == last:
        return
    path = lock.path
    lock.require_unchanged()
    with _opened(lock) as file:
        status = os.fstat(file.fileno())
        change = _Record(status.st_ino, status.st_size, offset + first, before[first:last], after[first:last])
        if _record_of(path) is not None or _found(file, change) != (GGUF_MAGIC, change.before):
            raise InterruptedChangeError("another process has changed it in the meantime", path=path)
        record = _written(path, change)
        try:
            _write_guarded(file, change.offset, change.after)
        except BaseException:  # an interruption, too
            _write_guarded(file, change.offset, change.before)
            _remove(record)
            raise
        _remove(record)


def recover(path: str | os.PathLike[str]) -> Literal["undone", "finished"] | None:
    """End an interrupted change of the file: it is undone unless all was written. None if there was none.

    Raises `InterruptedChangeError` if the change is under way, or the file has neither the old nor the new bytes;
    `OSError`.
    """
    if _record_of(path) is None:
        return None
    with locked(path) as lock, _opened(lock) as file:
        change = _record_of(path)
        if change is None:  # it was the record of another process, which has ended its change
            return None
        _, data = _found(file, change)
        if not _is_mixed(data, change):
            raise InterruptedChangeError(
                f"{undo_record(path)} does not fit it: it has been changed since",
                path=os.fspath(path),
                remedy="if the file is sound, remove that record",
            )
        is_whole = data == change.after
        _write_guarded(file, change.offset, change.after if is_whole else change.before)
        _remove(undo_record(path))
    return "finished" if is_whole else "undone"


def _opened(lock: FileLock) -> IO[bytes]:
    """The locked file, open to be written."""
    if lock.failure:
        raise CannotRewriteError(lock.failure)
    try:
        return open(lock.path, "r+b", buffering=0)
    except OSError as error:
        raise CannotRewriteError(str(error)) from error


def _found(file: IO[bytes], change: _Record) -> tuple[bytes, bytes]:
    """The magic of the file, and the bytes at the place of the change."""
    file.seek(0)
    magic = file.read(len(GGUF_MAGIC))
    file.seek(change.offset)
    parts = []
    left = len(change.before)
    while left and (part := file.read(left)):
        parts.append(part)
        left -= len(part)
    return magic, b"".join(parts)


def _write_guarded(file: IO[bytes], offset: int, data: bytes) -> None:
    """Write `data` so that the file never looks like a GGUF without being one."""
    _write(file, 0, HALF_WRITTEN)
    _write(file, offset, data)
    _write(file, 0, GGUF_MAGIC)


def _write(file: IO[bytes], offset: int, data: bytes) -> None:
    file.seek(offset)
    left = memoryview(data)
    while left:
        left = left[file.write(left[: 1 << 20]) :]
    sync(file)


# ---- the record -----------------------------------------------------------------------------------------


def _written(path: str | os.PathLike[str], change: _Record) -> str:
    """Write the record of a change, readable by its owner alone, and sync it to disk. Returns its path.

    Others may write to the folder, so nothing that lies in the record's place is opened, followed or replaced.
    """
    record = undo_record(path)
    content = _HEAD.pack(change.number, change.file_size, change.offset, len(change.before))
    content += change.before + change.after
    try:
        with replacing(record, 0o600, overwrite=False, follow=False) as (file, _):
            file.write(_MAGIC + hashlib.sha256(content).digest() + content)
    except FileExistsError as error:
        raise InterruptedChangeError(
            f"the undo record has no place: {printable(record, len(record))} is {_kind_of(record)}",
            path=os.fspath(path),
            remedy="look at that, and remove it; the model is unchanged",
        ) from error
    except OSError as error:
        raise CannotRewriteError(str(error)) from error
    return record


def _kind_of(path: str) -> str:
    """What lies in the place of an undo record, in words."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return "something that cannot be examined"
    kinds = ((stat.S_ISLNK, "a symbolic link"), (stat.S_ISDIR, "a directory"), (stat.S_ISREG, "another file"))
    return next((words for is_kind, words in kinds if is_kind(mode)), "a device or a pipe")


def _record_of(path: str | os.PathLike[str]) -> _Record | None:
    """The record of a change of this very file; None if there is none, or it is something else.

    Others may have put it there: it counts only if the owner of the file or the user owns it, and it fits.
    """
    try:
        with opened_regular(undo_record(path), follow=False) as file:
            status, model = os.fstat(file.fileno()), os.stat(path)
            owners = (model.st_uid, os.geteuid()) if hasattr(os, "geteuid") else (status.st_uid,)
            head = file.read(_START + _HEAD.size)
            if (
                len(head) != _START + _HEAD.size
                or head[: len(_MAGIC)] != _MAGIC
                or status.st_uid not in owners
            ):
                return None
            number, file_size, offset, size = _HEAD.unpack_from(head, _START)
            fits = (number, file_size) == (model.st_ino, model.st_size) and offset >= len(GGUF_MAGIC)
            if not fits or offset + size > file_size or status.st_size != len(head) + 2 * size:
                return None
            both = file.read(2 * size)
    except OSError:
        return None
    if hashlib.sha256(head[_START:] + both).digest() != head[len(_MAGIC) : _START]:
        return None
    return _Record(number, file_size, offset, both[:size], both[size:])


def _remove(record: str) -> None:
    os.unlink(record)
    with suppress(OSError):
        sync_folder(os.path.dirname(record))


def _is_mixed(current: bytes, change: _Record) -> bool:
    """Whether each byte is one of those before or one of those after."""
    for start in range(0, len(change.before), _BLOCK):
        one, *others = (data[start : start + _BLOCK] for data in (current, change.before, change.after))
        if one not in others and not all(byte in either for byte, *either in zip(one, *others)):
            return False
    return len(current) == len(change.before)


def _differing(a: bytes, b: bytes) -> tuple[int, int]:
    """The shortest range (start, end) outside which two texts of equal length are the same.

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
