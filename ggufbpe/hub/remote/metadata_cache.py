"""Caches the metadata of remote files by content, so that it is downloaded once.

    CACHE/metadata/DIGEST.gguf      the first bytes of a file, up to the end of its tensor infos; DIGEST is their hash
    CACHE/references/DIGEST.json    which metadata a name stands for, and its version; DIGEST is the name's

Every file is written under a temporary name and renamed, so several processes may share the folder. If it grows too
large, the least recently used files are deleted first. A file that does not match its digest is deleted and counts as
missing.

If the folder cannot be written, nothing is cached and no error is raised.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple

from ..._util.cache_folder import bound, cache_folder, delete_abandoned, evict
from ..._util.files import replacing

MOST_BYTES = 1 << 30  # of metadata, unless GGUFBPE_CACHE_BYTES says another number
_LONGEST_RECORD = 1 << 16
_FORM = "with tensor infos"  # earlier versions kept less of a file


class CachedMetadata(NamedTuple):
    """The metadata of a remote file."""

    name: str  # of the file that was chosen
    version: str  # the server's name for the content, such as an ETag; "" if it gave none
    size: int  # bytes of the whole file
    data: bytes  # its first bytes, to the end of the tensor infos


def found(key: str) -> CachedMetadata | None:
    """The metadata cached for the reference `key`, if it is intact; marks it as used."""
    record = _record(_reference(key))
    if record is None:
        return None
    path = _content(record["digest"])
    try:
        with open(path, "rb") as file:
            data = file.read()
        os.utime(path)
    except OSError:
        return None
    if hashlib.sha256(data).hexdigest() != record["digest"]:
        for damaged in (path, _reference(key)):
            with suppress(OSError):
                os.unlink(damaged)
        return None
    return CachedMetadata(record["name"], record["version"], record["size"], data)


def keep(keys: Iterable[str], kept: CachedMetadata) -> None:
    """Cache the metadata that the references `keys` stand for; evict old entries if there are too many."""
    digest = hashlib.sha256(kept.data).hexdigest()
    record = {"name": kept.name, "version": kept.version, "size": kept.size, "digest": digest}
    with suppress(OSError):
        written = {_content(digest): kept.data}
        written |= {_reference(key): json.dumps(record).encode() for key in keys}
        for path, data in written.items():
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            with replacing(path, 0o600, synced=False, follow=False) as (file, _):
                file.write(data)
        _shrink(spared=digest)


def _shrink(spared: str) -> None:
    """Evict the least recently used metadata until the rest is within bounds, with the references to it."""
    metadata, references = (os.path.join(cache_folder(), part) for part in ("metadata", "references"))
    delete_abandoned((cache_folder(), metadata, references))
    evicted = evict(metadata, ".gguf", bound(MOST_BYTES), spared + ".gguf")
    gone = {name.partition(".")[0] for name in evicted}
    for entry in os.scandir(references) if gone else ():
        record = _record(entry.path)
        if record is None or record["digest"] in gone:
            with suppress(OSError):
                os.unlink(entry.path)


def _record(path: str) -> dict[str, Any] | None:
    """The content of a reference, if it is valid."""
    try:
        with open(path, "rb") as file:
            record = json.loads(file.read(_LONGEST_RECORD))
    except (OSError, ValueError, RecursionError):
        return None
    kinds = {"name": str, "version": str, "size": int, "digest": str}
    if not isinstance(record, dict) or not all(isinstance(record.get(key), kinds[key]) for key in kinds):
        return None
    return record if record["digest"].isalnum() and record["size"] > 0 else None


def _reference(key: str) -> str:
    digest = hashlib.sha256(f"{key} {_FORM}".encode()).hexdigest()
    return os.path.join(cache_folder(), "references", digest + ".json")


def _content(digest: str) -> str:
    return os.path.join(cache_folder(), "metadata", digest + ".gguf")
