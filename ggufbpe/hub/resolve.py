"""Finds the model that a name means: a file on this machine, or a remote one whose metadata is downloaded.

A path that exists always wins, then a model on this machine, and only then, if the name says where, a remote one.
"""

from __future__ import annotations

import errno
import os
from typing import NamedTuple

from ..errors import ModelNameError, printable
from .name_grammar import (
    Address,
    BareName,
    FilePath,
    HubName,
    LlamaCppName,
    LMStudioName,
    Remote,
    is_repository,
    parse_name,
)
from .stores import all_stores
from .stores.stored_model import Stored


class Meaning(NamedTuple):
    """The model that a name stands for: see `by_name.Found`, which has the same fields."""

    name: str
    path: str = ""
    store: str = ""
    said: str = ""
    note: str = ""
    remote: Remote | None = None


def resolve(name: str | os.PathLike[str]) -> Meaning:
    """The model that `name`, which is no existing path, stands for: see `grammar`. Uses no network.

    `ModelNameError` if the name fits no form, or several models; `FileNotFoundError` if there is no such model here
    and the name stands for no remote one; `StoreError` if a program's store is damaged.
    """
    reference = parse_name(name)
    if isinstance(reference, FilePath):
        return _of_path(reference)
    if isinstance(reference, BareName):
        return _of_bare(reference)
    found = None if isinstance(reference, Address) else all_stores.find_stored(reference)
    if found is not None:
        return _of_stored(found, _choice(reference, found))
    if isinstance(reference, (LMStudioName, LlamaCppName)):
        raise _missing(str(name), f"no such model on this machine{_near(reference)}")
    return Meaning(str(reference), remote=reference)


def _of_path(reference: FilePath) -> Meaning:
    path = os.path.expanduser(reference.path)
    if not os.path.lexists(path):
        raise _missing(reference.path, f"{os.strerror(errno.ENOENT)}{_near_files(path)}")
    return Meaning(path, path)


def _of_bare(reference: BareName) -> Meaning:
    name = reference.name
    fits = all_stores.fitting(name)
    if len(fits) == 1:
        return _of_stored(fits[0], f"{fits[0].name}, of {fits[0].store}")
    if fits:
        names = [each.name for each in fits]
        fit = f"{printable(name, 200)} fits {len(fits)} models"
        raise ModelNameError(f"{fit}; type one of {_listed(names)}", names)
    like = _near(reference)
    if name.lower().endswith(".gguf") and not like:
        raise _missing(name, f"{os.strerror(errno.ENOENT)}{_near_files(name)}")
    far = f"hf:{name}" if is_repository(name.partition(":")[0]) else f"ollama:{name}"
    why = f"{os.strerror(errno.ENOENT)}, and no model of {', '.join(all_stores.STORES)} on this machine"
    raise _missing(name, f"{why}{like}; from the network it would be {far}")


def _of_stored(found: Stored, said: str) -> Meaning:
    found.checked()
    return Meaning(found.name, found.path, found.store, said, found.note)


def _choice(reference: object, found: Stored) -> str:
    """The file that was chosen, if the name left a choice."""
    if not isinstance(reference, (HubName, LMStudioName, LlamaCppName)):
        return ""
    if getattr(reference, "file", None) or getattr(reference, "quant", None):
        return ""
    return f"{found.name}, of the files on this machine"


def _near(reference: BareName | LMStudioName | LlamaCppName) -> str:
    name = str(reference)
    like = all_stores.near_names(name if isinstance(reference, BareName) else name.partition(":")[2])
    return f" (did you mean {_listed(like)}?)" if like else ""


def _near_files(path: str) -> str:
    """The .gguf files beside a missing one that are named like it."""
    from difflib import get_close_matches

    folder, name = os.path.split(path)
    try:
        there = [each for each in os.listdir(folder or ".") if each.lower().endswith(".gguf")]
    except OSError:
        return ""
    like = [os.path.join(folder, each) for each in get_close_matches(name, there, n=3, cutoff=0.8)]
    return f" (did you mean {_listed(like)}?)" if like else ""


def _listed(names: list[str]) -> str:
    return ", ".join(printable(name, 200)[1:-1] for name in names[:10]) + (" …" if len(names) > 10 else "")


def _missing(name: str, why: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, why, name)
