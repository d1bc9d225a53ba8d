"""Files that appear whole or not at all: written beside their place under a temporary name, and then renamed.

    target -> [this file] -> a temporary name to write to -> target

The target is never opened, so what it was stays until the new one is whole, and an error names the target, not the
temporary file.

But: what is not a regular file (a device, a pipe) is written to directly. Two files are two renames; a machine that
goes down between them leaves one new and one old.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import IO

_OF_WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)  # told without a name


@contextmanager
def replacing(
    target: str | os.PathLike[str], mode: int = 0o666, *, synced: bool = True
) -> Iterator[tuple[IO[bytes], str]]:
    """A new file, open, and its temporary path; it replaces `target` if all goes well, and is deleted if not.

    What is not `synced` may be lost if the machine goes down: for what is checked, and can be had again.

    Where there was no target, it has the permissions `mode` under the user's umask. Where there was one, nobody else
    can read the new file until it is whole; then it gets the target's permissions, and its owner where that is allowed.
    A link stays a link, to the new file.
    """
    if is_special(target):
        with _naming(target, os.fspath(target)), open(target, "wb") as file:
            yield file, os.fspath(target)
        return
    place = os.path.realpath(target)
    folder, name = os.path.split(place)
    temporary = os.path.join(folder, f".{name[:50]}.{os.urandom(4).hex()}.partial")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    is_new = not os.path.exists(place)
    try:
        with _naming(target, temporary):
            with os.fdopen(os.open(temporary, flags, mode if is_new else 0o600), "wb") as file:
                yield file, temporary
                if synced:
                    sync(file)
                if not is_new:
                    _take_permissions(temporary, place)
            os.replace(temporary, place)
    except BaseException:  # an interruption, too
        with suppress(OSError):
            os.unlink(temporary)
        raise
    if synced:
        with suppress(OSError):  # some file systems cannot; the file itself is on the disk
            sync_folder(folder)


def undo_record(path: str | os.PathLike[str]) -> str:
    """The path of the undo record while a file is changed in place: beside it, hidden."""
    folder, name = os.path.split(os.path.realpath(path))
    if len(os.fsencode(name)) > 200:  # most file systems have 255 bytes for a name
        import hashlib

        name = hashlib.sha256(os.fsencode(name)).hexdigest()
    return os.path.join(folder, f".{name}.undo")


def write_files(files: Mapping[str, bytes]) -> None:
    """Write `files`, by path; those that are there are replaced. An `OSError` leaves all as they were."""
    with ExitStack() as stack:
        for path, data in files.items():
            file, _ = stack.enter_context(replacing(path))
            file.write(data)
            sync(file)  # a full disk shows here, before the first of them is renamed


def is_special(path: str | os.PathLike[str]) -> bool:
    """Whether something is there that is neither a regular file nor a directory: it can be written to, not replaced."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def sync(file: IO[bytes]) -> None:
    """Sync what was written to disk."""
    file.flush()
    try:
        os.fsync(file.fileno())
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a device or a pipe: there is no disk
            raise


def sync_folder(folder: str) -> None:
    """Sync the names of a folder's files to disk."""
    if os.name == "nt":
        return
    at = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(at)
    finally:
        os.close(at)


@contextmanager
def _naming(target: str | os.PathLike[str], temporary: str) -> Iterator[None]:
    """Errors of the temporary file, and those of writing that name none, name the target."""
    try:
        yield
    except OSError as error:
        nameless = error.filename is None and error.errno in _OF_WRITING
        if nameless or temporary in (error.filename, error.filename2):
            raise type(error)(error.errno, error.strerror, os.fspath(target)) from error
        raise


def _take_permissions(temporary: str, place: str) -> None:
    status = os.stat(place)
    with suppress(OSError, AttributeError):  # not ours to give away; no owners on Windows
        os.chown(temporary, status.st_uid, status.st_gid)
    os.chmod(temporary, status.st_mode & 0o7777)
