"""Writes files that appear whole or not at all: without a name, or under a temporary one, and then put in place.

The target is never opened, so its old content stays until the new one is whole, and an error names the target, not
the temporary file. Where the system has nameless files (Linux's O_TMPFILE), a killed process leaves nothing.
Elsewhere the temporary file is locked while it is written, and `remove_abandoned` deletes those that nobody holds any
more.

A target that is not a regular file (a device, a pipe) is written to directly. Two files are two renames; a machine
that goes down between them leaves one new and one old.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import IO

_OF_WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)  # told without a name
_NAMELESS = getattr(os, "O_TMPFILE", 0)
_OPEN_FILES = "/proc/self/fd/"  # paths of nameless files begin so
_NOT_FOLLOWED = getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)


@contextmanager
def replacing(
    target: str | os.PathLike[str],
    mode: int = 0o666,
    *,
    synced: bool = True,
    overwrite: bool = True,
    follow: bool = True,
) -> Iterator[tuple[IO[bytes], str]]:
    """A new file, open, and a path to read it by; it replaces `target` if all goes well, and vanishes if not.

    What is not `synced` may be lost if the machine goes down: for what is checked, and can be had again. Without
    `overwrite`, `FileExistsError` if anything is at `target` when the new file is whole. A link stays a link, to the
    new file; without `follow`, which is for names that the user did not type, a link is replaced like a file.

    Where there was no target, the new file has the permissions `mode` under the user's umask. Where there was one,
    nobody else can read the new file until it is whole; then it gets the target's permissions, and its owner where
    that is allowed.
    """
    if follow and is_special(target):
        with _naming(target), open(target, "wb") as special:
            yield special, os.fspath(target)
        return
    place = os.path.realpath(target) if follow else os.path.abspath(target)
    if follow:  # else the folder may have very many files, and whoever owns it cleans it
        remove_abandoned(place)
    is_new = os.path.islink(place) or not os.path.isfile(place)
    path = _temporary_name(place)
    try:
        with _naming(target, path, place):
            file, path = _created(path, mode if is_new else 0o600)
        with _naming(target, path, place):
            with file:
                yield file, path
                file.flush()
                if synced:
                    sync(file)
                if not is_new:
                    _take_permissions(path, place)
                if os.name != "nt":  # while it is locked
                    _put(path, place, overwrite)
            if os.name == "nt":  # where no open file is renamed
                _put(path, place, overwrite)
    except BaseException:  # an interruption, too
        if not path.startswith(_OPEN_FILES):
            with suppress(OSError):
                os.unlink(path)
        raise
    if synced:
        with suppress(OSError):  # some file systems cannot; the file itself is on the disk
            sync_folder(os.path.dirname(place))


def remove_abandoned(place: str) -> None:
    """Delete the temporary files for `place` that killed processes left: those that no process holds locked."""
    folder, name = os.path.split(place)
    left = re.compile(re.escape(_stem(name)) + r"[0-9a-f]{8}\.partial")
    with suppress(OSError):
        for found in [each for each in os.listdir(folder) if left.fullmatch(each)]:
            with suppress(OSError):  # locked, deleted by another process, or somebody else's
                _remove_unlocked(os.path.join(folder, found))


def _remove_unlocked(path: str) -> None:
    if os.name == "nt":  # where no open file is deleted
        os.unlink(path)
        return
    with os.fdopen(os.open(path, os.O_RDWR | _NOT_FOLLOWED | os.O_NONBLOCK), "rb", buffering=0) as file:
        status = os.fstat(file.fileno())
        if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
            lock(file, path)
            if os.path.samestat(os.lstat(path), status):
                os.unlink(path)


def _temporary_name(place: str) -> str:
    folder, name = os.path.split(place)
    return os.path.join(folder, f"{_stem(name)}{os.urandom(4).hex()}.partial")


def _stem(name: str) -> str:
    """The start of the names of temporary files for `name`."""
    return f".{name[:50]}."


def _created(temporary: str, mode: int) -> tuple[IO[bytes], str]:
    """A new file, and a path to it: nameless where the system has such files, else `temporary`."""
    if _NAMELESS:
        with suppress(OSError):  # the file system has none, or an error that a file with a name meets as well
            file = os.fdopen(os.open(os.path.dirname(temporary), _NAMELESS | os.O_RDWR, mode), "wb")
            path = f"{_OPEN_FILES}{file.fileno()}"
            if os.path.exists(path):
                return file, path
            file.close()
    return _locked(temporary, mode), temporary


def _locked(temporary: str, mode: int) -> IO[bytes]:
    """A new file of that name, locked against `remove_abandoned` where the file system has locks."""
    while True:
        file = os.fdopen(
            os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOT_FOLLOWED | _BINARY, mode), "wb"
        )
        with suppress(ImportError, OSError):
            lock(file, temporary)
        if os.path.lexists(temporary):
            return file
        file.close()  # another process deleted it before it was locked


def lock(file: IO[bytes], path: str) -> None:
    """Lock an open file, which is at `path`; `OSError` if that fails. `ImportError` on Windows.

    On SMB a locked file can be read and written only through the descriptor that locked it (flock(2), since Linux
    5.5), and here other descriptors are used, too: such a file is not locked, which is an `OSError`.
    """
    import fcntl

    fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    try:
        with opened_regular(path) as other:
            other.read(1)
    except OSError as error:
        fcntl.flock(file.fileno(), fcntl.LOCK_UN)
        raise OSError(errno.ENOLCK, "a locked file cannot be read here", path) from error


def _put(path: str, place: str, overwrite: bool) -> None:
    """Give a whole file its name. `FileExistsError` if something is there that must not be overwritten."""
    if not path.startswith(_OPEN_FILES):
        (os.replace if overwrite else _rename_to_free)(path, place)
        return
    try:
        _link_nameless(path, place)
    except FileExistsError:
        if not overwrite:
            raise
    else:
        return
    temporary = _temporary_name(place)  # nothing replaces a file but renaming
    _link_nameless(path, temporary)
    try:
        os.replace(temporary, place)
    except BaseException:
        os.unlink(temporary)
        raise


def _link_nameless(path: str, place: str) -> None:
    """linkat(2) with AT_SYMLINK_FOLLOW, which `os.link` calls only if it is given a folder."""
    folder, name = os.path.split(place)
    at = os.open(folder, os.O_RDONLY)
    try:
        os.link(path, name, src_dir_fd=at, dst_dir_fd=at, follow_symlinks=True)
    finally:
        os.close(at)


def _rename_to_free(path: str, place: str) -> None:
    """Rename a file unless something has the new name, which is then a `FileExistsError`."""
    if os.name == "nt":
        os.rename(path, place)
        return
    try:
        os.link(path, place)
    except FileExistsError:
        raise
    except OSError as error:  # a file system without links
        if os.path.lexists(place):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), place) from error
        os.rename(path, place)
    else:
        os.unlink(path)


def undo_record(path: str | os.PathLike[str]) -> str:
    """The path of the undo record while a file is changed in place: beside it, hidden."""
    # The record lies beside the model itself; a link at the record's own path is never followed.
    folder, name = os.path.split(os.path.realpath(path))
    if len(os.fsencode(name)) > 200:  # most file systems have 255 bytes for a name
        import hashlib

        name = hashlib.sha256(os.fsencode(name)).hexdigest()
    return os.path.join(folder, f".{name}.undo")


def created(path: str) -> IO[bytes]:
    """A new file to read and write, which replaces what was at `path`; unlike `open`, it never follows a link there."""
    with suppress(FileNotFoundError):
        os.unlink(path)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | _NOT_FOLLOWED | _BINARY
    return os.fdopen(os.open(path, flags, 0o666), "w+b", buffering=0)


def write_files(files: Mapping[str, bytes], *, follow: bool = True) -> None:
    """Write `files`, by path; those that are there are replaced. An `OSError` leaves all as they were.

    `follow`: as in `replacing`.
    """
    with ExitStack() as stack:
        for path, data in files.items():
            file, _ = stack.enter_context(replacing(path, follow=follow))
            file.write(data)
            sync(file)  # a full disk shows here, before the first of them is renamed


def is_special(path: str | os.PathLike[str]) -> bool:
    """Whether something is there that is neither a regular file nor a directory: it can be written to, not replaced."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def opened_regular(path: str | bytes, *, follow: bool = True) -> IO[bytes]:
    """Open a regular file for reading; `OSError` for what is none, such as a pipe, for whose writer nothing waits.

    Without `follow`, nor for a symbolic link.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _BINARY | (0 if follow else _NOT_FOLLOWED)
    descriptor = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", path)
    return os.fdopen(descriptor, "rb")


def without_links(path: str, flags: int) -> int:
    """Open a path as `open(path, opener=without_links)` does: `OSError` if it is a link, where the system can tell."""
    return os.open(path, flags | _NOT_FOLLOWED)


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
def _naming(target: str | os.PathLike[str], *names: str) -> Iterator[None]:
    """Errors of a file that has one of these `names`, and those of writing that name none, name the target."""
    try:
        yield
    except OSError as error:
        nameless = error.filename is None and error.errno in _OF_WRITING
        if nameless or error.filename in names or error.filename2 in names:
            raise type(error)(error.errno, error.strerror, os.fspath(target)) from error
        raise


def _take_permissions(temporary: str, place: str) -> None:
    status = os.stat(place)
    with suppress(OSError, AttributeError):  # not ours to give away; no owners on Windows
        os.chown(temporary, status.st_uid, status.st_gid)
    os.chmod(temporary, status.st_mode & 0o7777)
