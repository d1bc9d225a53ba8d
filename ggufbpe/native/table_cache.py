"""Caches what opening a large vocabulary takes long to make: its merge tables, and its strings with their index.

    tokens, merges, options, build -> key -> CACHE/tables/KEY.tables -> native.TableFile -> native.BPEModel
    path, key of the array, build  -> key -> CACHE/tables/KEY.strings -> native.TableFile -> lazy_strings.LazyStrings
    CACHE/tables/secret              64 random bytes, under which keys, digests and checksums are hashes

The key of tables is a hash of all tokens and merges, whatever file they came from: a path, a size and a time could be
those of another content, and hashing 7 MB takes 0.6 ms. A path only says which array is likely there: the strings are
taken from the cache if the bytes in the model's file have their digest. Tokens come with their index; of merges
the bytes are kept as they are, until somebody asks for a merge.

A file that is damaged, incomplete, of another build or written without the secret is ignored, and replaced. Each file
is written under a temporary name and renamed, so processes may share the folder; the least recently used ones are
deleted if it grows too large.

If the folder cannot be read or written, all is made anew and no error is raised. GGUFBPE_CACHE=off does the same.
"""

from __future__ import annotations

import os
import struct
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from .._util.cache_folder import bound, cache_folder, delete_abandoned, evict
from .._util.files import opened_regular, replacing
from .lazy_strings import LazyStrings, compiled

MOST_BYTES = 256 << 20  # of all files, unless GGUFBPE_CACHE_BYTES says less
FEWEST_MERGES = 10_000  # the table of fewer is made in the time that reading a file takes
_BYTES_A_MERGE = 16  # of a table, at least
FEWEST_STRINGS = 10_000  # likewise
_TABLES, _STRINGS = ".tables", ".strings"
_SECRET_BYTES = 64
_USED_LATELY = 3600  # seconds in which a file is not marked as used once more


def model_with_tables(
    tokens: LazyStrings, merges: LazyStrings, options: tuple[bool, ...], make: Callable[[Any], Any]
) -> Any:
    """Return what `make` makes of the cached tables; if there are none, of None, and cache its tables.

    `options` is what else tables depend on.
    """
    is_kept = FEWEST_MERGES <= len(merges) <= _most_bytes() // _BYTES_A_MERGE
    secret = _secret_if_on() if is_kept else b""
    if not secret:
        return make(None)
    digests = (texts.digest(secret) for texts in (tokens, merges))
    key = compiled().TableFile.key(secret, *digests, _about(options))
    path = os.path.join(_folder(), key.hex() + _TABLES)
    made = _read(path, secret, key)
    model = make(made)
    if made is None:
        with suppress(MemoryError):
            _keep(path, model.written_tables(secret, key))
    return model


def keep_unknown(texts: Sequence[str]) -> None:
    """Cache strings that `KnownArray.read` did not find in the cache, once."""
    if isinstance(texts, LazyStrings) and (unknown_as := texts.unknown_as):
        texts.unknown_as = None
        with suppress(MemoryError):
            unknown_as.keep(texts)


class KnownArray:
    """The array `key` of `count` strings of the file at `path`, as it was when it was read before."""

    def __init__(self, path: str, key: str, count: int) -> None:
        self._about = os.fsencode(os.path.abspath(path)), key.encode(), str(count).encode()
        self._count = count

    def read(self, descriptor: int, position: int, size: int) -> tuple[int, LazyStrings | None]:
        """Return the bytes that the array takes, and its strings, if the file still has it at `position`; else None.

        The file is open and has `size` bytes.
        """
        if not (secret := _secret_if_on(makes=False)):
            return 0, None
        path, key = self._place(secret)
        if (file := _read(path, secret, key)) is None:
            return 0, None
        with suppress(MemoryError):
            known = file.known_strings(descriptor, position, size - position, self._count, secret)
            if known is not None:
                taken, strings, digest = known
                return taken, LazyStrings(strings, (secret, digest))
        return 0, None

    def keep(self, texts: LazyStrings) -> None:
        """Write what knows `texts` again, in place of what was there."""
        if _most_bytes() and (secret := _secret_if_on()):
            path, key = self._place(secret)
            _keep(path, texts.strings.written(texts.digest(secret), secret, key))

    def _place(self, secret: bytes) -> tuple[str, bytes]:
        key: bytes = compiled().TableFile.key(secret, *self._about, _about(()))
        return os.path.join(_folder(), key.hex() + _STRINGS), key


def _folder() -> str:
    return os.path.join(cache_folder(), "tables")


def _secret_if_on(makes: bool = True) -> bytes:
    """The secret of the folder, made if there is none; b"" if nothing is to be cached, or cannot be."""
    if os.environ.get("GGUFBPE_CACHE") != "off":
        with suppress(OSError):
            return _secret(_folder(), makes)
    return b""


def _most_bytes() -> int:
    return min(MOST_BYTES, bound(MOST_BYTES))


def _about(options: tuple[bool, ...]) -> bytes:
    """What a file depends on besides strings: options, and the compiled engine, which may lay it out otherwise.

    The engine is known by a hash of its sources: reproducible builds have one time for all files, and often one size.
    """
    return repr((sys.byteorder, struct.calcsize("P"), options, compiled().BUILD)).encode()


def _read(path: str, secret: bytes, key: bytes) -> Any:
    """A file of the cache, marked as used; None if there is none or it is not whole."""
    with suppress(OSError, MemoryError), opened_regular(path, follow=False) as file:
        status = os.fstat(file.fileno())
        if status.st_size > MOST_BYTES:
            return None
        made = compiled().TableFile.read(file.fileno(), status.st_size, secret, key)
        if made is not None and status.st_mtime + _USED_LATELY < time.time():
            with suppress(OSError):
                os.utime(path)
        return made
    return None


def _keep(path: str, data: bytes) -> None:
    """Write a file of the cache, and delete the least recently used ones if there are too many."""
    folder, name = os.path.split(path)
    most = _most_bytes()
    if len(data) > most:
        return
    with suppress(OSError):
        with replacing(path, 0o600, synced=False, follow=False) as (file, _):
            file.write(data)
        delete_abandoned([folder])
        evict(folder, (_TABLES, _STRINGS), most, spared=name)


def _secret(folder: str, makes: bool) -> bytes:
    """The secret of this folder, made if a call `makes` it; b"" without, or if somebody else may have written it."""
    path = os.path.join(folder, "secret")
    if makes and not os.path.exists(path):
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with (
            suppress(FileExistsError),  # another process was faster
            replacing(path, 0o600, synced=False, overwrite=False, follow=False) as (made, _),
        ):
            made.write(os.urandom(_SECRET_BYTES))
    with opened_regular(path, follow=False) as file:
        status = os.fstat(file.fileno())
        is_ours = os.name == "nt" or (status.st_uid == os.geteuid() and not status.st_mode & 0o077)
        secret = file.read(_SECRET_BYTES + 1)
    if is_ours and len(secret) != _SECRET_BYTES:  # the machine went down while it was written
        os.unlink(path)
    return secret if is_ours and len(secret) == _SECRET_BYTES else b""
