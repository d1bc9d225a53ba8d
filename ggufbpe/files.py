"""Files that appear whole or not at all: written beside their place under a temporary name, and then renamed.

    target -> [this file] -> a temporary name to write to -> target

But: the target is never opened, so what it was stays until the new one is whole.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO


@contextmanager
def replacing(target: str | os.PathLike[str]) -> Iterator[str]:
    """A path beside `target` for a file that takes its place if all goes well, and else goes itself."""
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name[:200]}.{os.urandom(4).hex()}.partial")
    try:
        yield temporary
        os.replace(temporary, target)
    except BaseException:  # an interruption, too
        with suppress(OSError):
            os.unlink(temporary)
        raise


@contextmanager
def open_replacing(target: str) -> Iterator[tuple[IO[bytes], str]]:
    """The same with the file open, nobody else's to read, and the renaming brought to the disk."""
    with replacing(target) as temporary:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(temporary, flags, 0o600), "wb") as file:
            yield file, temporary
    if os.name != "nt":
        at = os.open(os.path.dirname(target) or ".", os.O_RDONLY)
        with suppress(OSError):  # some file systems cannot; the file itself is on the disk
            os.fsync(at)
        os.close(at)


def settle(file: IO[bytes], temporary: str, target: str) -> None:
    """Bring what is written to the disk, and give it the permissions it is to have in the place of `target`.

    Those of the file that is replaced, its owner too where that is allowed; else those of a new file.
    """
    file.flush()
    os.fsync(file.fileno())
    if os.path.exists(target):
        status = os.stat(target)
        with suppress(OSError, AttributeError):  # not ours to give away; no owners on Windows
            os.chown(temporary, status.st_uid, status.st_gid)
        os.chmod(temporary, status.st_mode & 0o7777)
    else:
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
