"""The folder for what can be had again but takes long, and how it is kept from growing.

hub/remote/metadata_cache.py, native/table_cache.py, analysis/doctor/local_models.py -> [here]
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from contextlib import suppress

_ABANDONED = 24 * 3600  # seconds after which an unfinished file is deleted


def cache_folder() -> str:
    """Return GGUFBPE_CACHE_DIR, or `ggufbpe` in the user's cache folder; if no home is known, a path that cannot be."""
    found = os.path.expanduser(os.environ.get("GGUFBPE_CACHE_DIR") or _of_user())
    return os.path.join(os.devnull, "ggufbpe") if found.startswith("~") else found


def _of_user() -> str:
    if os.name == "nt":
        return os.path.join(os.environ.get("LOCALAPPDATA") or r"~\AppData\Local", "ggufbpe", "Cache")
    if sys.platform == "darwin":
        return "~/Library/Caches/ggufbpe"
    of_all = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(of_all):  # its specification asks to ignore such a path
        of_all = "~/.cache"
    return os.path.join(of_all, "ggufbpe")


def bound(most: int) -> int:
    """Return `most` bytes, or what GGUFBPE_CACHE_BYTES says. `ValueError` if that is no number."""
    said = os.environ.get("GGUFBPE_CACHE_BYTES", "")
    if said and not said.isdecimal():
        raise ValueError(f"GGUFBPE_CACHE_BYTES must be a number of bytes, not {said!r}")
    return int(said or most)


def evict(folder: str, ending: str | tuple[str, ...], most: int, spared: str) -> set[str]:
    """Delete the least recently used files with this ending until the rest has `most` bytes; return the deleted.

    `spared` is the name of a file that stays. `OSError` if the folder cannot be read.
    """
    status = []
    for entry in os.scandir(folder):
        with suppress(OSError):  # another process deleted it
            if entry.name.endswith(ending):
                status.append((entry.stat().st_mtime, entry.stat().st_size, entry.name))
    left = sum(size for _, size, _ in status) - most
    gone = set()
    for _, size, name in sorted(status):
        if left > 0 and name != spared:
            with suppress(OSError):
                os.unlink(os.path.join(folder, name))
            left -= size
            gone.add(name)
    return gone


def delete_abandoned(folders: Iterable[str]) -> None:
    """Delete what killed processes left unfinished. `OSError` if a folder cannot be read."""
    for folder in folders:
        for entry in os.scandir(folder):
            with suppress(OSError):
                if entry.name.endswith(".partial") and entry.stat().st_mtime + _ABANDONED < time.time():
                    os.unlink(entry.path)
