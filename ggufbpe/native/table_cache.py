"""Caches the merge tables of large vocabularies in files: making one takes most of the time of opening a model.

    tokens, merges, options, build -> key -> CACHE/tables/KEY.tables -> native.TableFile -> native.BPEModel
    CACHE/tables/secret              64 random bytes, under which keys and checksums are hashes

The key is a hash of all tokens and merges, whatever file they came from: a path, a size and a time could be those of
another content, and hashing 5 MB takes 0.3 ms. A file that is damaged, incomplete, of another build or written without
the secret is ignored, and replaced. Each file is written under a temporary name and renamed, so processes may share
the folder; the least recently used ones are deleted if it grows too large.

If the folder cannot be read or written, tables are made anew and no error is raised. GGUFBPE_CACHE=off does the same.
"""

from __future__ import annotations

import os
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from .._util.cache_folder import bound, cache_folder, delete_abandoned, evict
from .._util.files import opened_regular, replacing
from .lazy_strings import compiled

MOST_BYTES = 256 << 20  # of all tables, unless GGUFBPE_CACHE_BYTES says less
FEWEST_MERGES = 10_000  # the table of fewer is made in the time that reading a file takes
_BYTES_A_MERGE = 16  # of a table, at least
_ENDING = ".tables"
_SECRET_BYTES = 64
_USED_LATELY = 3600  # seconds in which a file is not marked as used once more


def model_with_tables(tokens: Any, merges: Any, options: tuple[bool, ...], make: Callable[[Any], Any]) -> Any:
    """Return what `make` makes of the cached tables; if there are none, of None, and cache its tables.

    `tokens` and `merges` are `native.Strings`; `options` is what else tables depend on.
    """
    folder = os.path.join(cache_folder(), "tables")
    is_kept = FEWEST_MERGES <= len(merges) <= _most_bytes() // _BYTES_A_MERGE
    if os.environ.get("GGUFBPE_CACHE") == "off" or not is_kept:
        return make(None)
    secret = b""
    with suppress(OSError):
        secret = _secret(folder)
    if not secret:
        return make(None)
    key = compiled().TableFile.key(secret, tokens, merges, _about(options))
    path = os.path.join(folder, key.hex() + _ENDING)
    made = _read(path, secret, key)
    model = make(made)
    if made is None:
        with suppress(MemoryError):
            _keep(path, model.written_tables(secret, key))
    return model


def _most_bytes() -> int:
    return min(MOST_BYTES, bound(MOST_BYTES))


def _about(options: tuple[bool, ...]) -> bytes:
    """What tables depend on besides their strings: options, and the compiled engine, which may lay them out otherwise.

    The engine is known by a hash of its sources: reproducible builds have one time for all files, and often one size.
    """
    return repr((sys.byteorder, struct.calcsize("P"), options, compiled().BUILD)).encode()


def _read(path: str, secret: bytes, key: bytes) -> Any:
    """The tables in a file, marked as used; None if there is none or it is not whole."""
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
    """Write tables to a file, and delete the least recently used ones if there are too many."""
    folder, name = os.path.split(path)
    most = _most_bytes()
    if len(data) > most:
        return
    with suppress(OSError):
        with replacing(path, 0o600, synced=False, follow=False) as (file, _):
            file.write(data)
        delete_abandoned([folder])
        evict(folder, _ENDING, most, spared=name)


def _secret(folder: str) -> bytes:
    """The secret of this folder, which the first call makes; b"" if somebody else may have written it."""
    path = os.path.join(folder, "secret")
    if not os.path.exists(path):
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
