"""Describes a model in another program's store, and reads such stores without trusting their contents."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from ..._util.errors import StoreError, printable
from ..name_grammar import Reference

LARGEST_JSON = 1 << 20  # bytes of a manifest or of settings; real ones have a few thousand
_DEEPEST = 6  # levels of folders below a model's
_MOST = 100_000  # entries of a model's folder that are read


class StoredModel(NamedTuple):
    """A model that another program keeps on this machine."""

    name: str  # as typed: "ollama:gemma3:latest"
    path: str  # of the file; "" if the store does not say which one
    store: str  # "Ollama", "Hugging Face", "llama.cpp" or "LM Studio"
    bare_names: tuple[str, ...] = ()  # the names without a prefix that mean this model
    fallback_names: tuple[str, ...] = ()  # likewise, but only if no model has them as its name
    problem: str = ""  # why it cannot be opened
    note: str = ""  # worth knowing about it

    def require_usable(self) -> None:
        """Raise a `StoreError` with the model's problem if it has one."""
        if self.problem:
            name = printable(self.name, len(self.name))[1:-1]
            raise StoreError(f"{name} cannot be opened: {self.problem}", path=self.path or None)


class Store(NamedTuple):
    """The models that a program keeps on this machine. Each module of this folder has one."""

    name: str  # of the program
    use: str  # how to use a corrected copy in it; has {name}, {copy} and {in_modelfile}
    folders: Callable[[], list[str]]  # where its models may be, existing or not
    models: Callable[[], Iterator[StoredModel]]  # all its models, even those that cannot be opened
    # The model that a name with a prefix stands for; None if the store has none. `StoreError` if it is damaged.
    find: Callable[[Reference], StoredModel | None]


def home(*parts: str) -> str:
    """A path in the user's home folder."""
    return os.path.join(os.path.expanduser("~"), *parts)


def setting(name: str) -> str | None:
    """An environment variable; None if it is unset or empty."""
    return os.environ.get(name) or None


def distinct(folders: Iterable[str]) -> list[str]:
    """The folders that exist, each once, even if links lead to it."""
    by_real_path: dict[str, str] = {}
    for folder in folders:
        if os.path.isdir(folder):
            by_real_path.setdefault(os.path.realpath(folder), folder)
    return list(by_real_path.values())


def is_closed(folder: str) -> bool:
    """Whether this user lacks the permission to list a folder, or even to see whether it exists."""
    try:
        os.listdir(folder)
    except PermissionError:
        return True
    except OSError:
        pass
    return False


def entries(folder: str) -> list[str]:
    """The names in a folder, sorted; none if it cannot be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def same_name(wanted: str, names: Iterable[str]) -> str | None:
    """The name in `names` that is `wanted`, else the first that differs from it in case alone; None without either.

    >>> same_name("A.gguf", ["a.gguf", "A.gguf"]), same_name("b.gguf", ["B.gguf"]), same_name("c", ["a"])
    ('A.gguf', 'B.gguf', None)
    """
    same = (name for name in names if name.lower() == wanted.lower())
    return min(same, key=lambda name: name != wanted, default=None)


def files_below(folder: str) -> Iterator[str]:
    """The files below `folder`, including links, as relative paths with slashes; follows no links to folders."""
    left = _MOST
    waiting = [("", 0)]
    while waiting:
        place, depth = waiting.pop()
        folders = []
        for name in entries(os.path.join(folder, place)):
            left -= 1
            if left < 0:
                return
            path = f"{place}/{name}" if place else name
            full = os.path.join(folder, path)
            if os.path.isdir(full):
                if depth < _DEEPEST and not os.path.islink(full):
                    folders.append((path, depth + 1))
            elif os.path.islink(full) or os.path.isfile(full):
                yield path
        waiting += reversed(folders)


def bounded_json(path: str) -> Any:
    """The content of a small JSON file. `StoreError` if it is not one, `OSError` if it cannot be read."""
    import json

    data = bounded_bytes(path)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"this is not valid JSON ({error})", path=path) from None


def bounded_bytes(path: str) -> bytes:
    """The bytes of a small file. `StoreError` if it is large or not regular, `OSError` if it cannot be read."""
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):  # asked before opening: opening a pipe waits for a writer
        raise StoreError("this is not a regular file", path=path)
    with open(path, "rb") as file:
        data = file.read(LARGEST_JSON + 1)
    if len(data) > LARGEST_JSON:
        raise StoreError(
            f"this has more than {LARGEST_JSON} bytes, too many for a file of its kind", path=path
        )
    return data


def leads_out(path: str, folder: str) -> bool:
    """Whether `path` leads out of `folder` through links."""
    inside = os.path.realpath(folder)
    try:
        return os.path.commonpath([inside, os.path.realpath(path)]) != inside
    except ValueError:  # on another drive
        return True


def why_no_file(path: str) -> str:
    """Why a model's file cannot be opened; "" if it seems that it can."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return "its file is missing"
    except OSError as error:
        return f"its file cannot be opened: {error.strerror}"
    if not stat.S_ISREG(status.st_mode):
        return "it is not a regular file"
    if not os.access(path, os.R_OK):
        return "you may not read its file"
    return ""
