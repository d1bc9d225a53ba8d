"""All stores of this machine together.

ollama.py, hub.py, llama_cpp.py, lm_studio.py -> [this file] -> resolve.py, the list of models
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from . import hub, llama_cpp, lm_studio, ollama
from .grammar import HubName, LlamaCppName, LMStudioName, OllamaName
from .stored import Stored

_ROOMS = (ollama, hub, llama_cpp, lm_studio)
STORES = tuple(room.STORE for room in _ROOMS)


def stored() -> Iterator[Stored]:
    """Every model that another program keeps here, also those that cannot be opened."""
    for room in _ROOMS:
        yield from room.stored()


def find(name: OllamaName | HubName | LMStudioName | LlamaCppName) -> Stored | None:
    """The model that a name with a prefix means, if it is on this machine. `StoreError` where it is damaged."""
    if isinstance(name, OllamaName):
        return ollama.find(name)
    if isinstance(name, LMStudioName):
        return lm_studio.find(name)
    if isinstance(name, LlamaCppName):
        return llama_cpp.find(name)
    return hub.find(name) or llama_cpp.find_hub(name)


def how_to_use(name: str, store: str, copy: str) -> str:
    """How the program in whose store the model `name` is gets to use a corrected copy of it."""
    import shlex

    use: str = next(room.USE for room in _ROOMS if store == room.STORE)
    name, path = name.partition(":")[2].removesuffix(":latest"), os.path.abspath(copy)
    in_modelfile = f'"{path}"' if " " in path else path
    return use.format(name=shlex.quote(name), copy=shlex.quote(path), in_modelfile=in_modelfile)


def fitting(name: str) -> list[Stored]:
    """The models that a name without a prefix means, compared case-insensitively; each file once.

    Those whose name it is; only where there are none, those whose name begins with it, up to the tag.
    """
    wanted, everything = name.lower(), list(stored())
    meant = [each for each in everything if wanted in map(str.lower, each.bare)]
    meant = meant or [each for each in everything if wanted in map(str.lower, each.near)]
    files: dict[str, Stored] = {}
    for each in meant:
        files.setdefault(os.path.realpath(each.path) if each.path else each.name, each)
    return list(files.values())


def near_names(name: str) -> list[str]:
    """Names of models that somebody may have meant who typed `name`."""
    from difflib import get_close_matches

    wanted = name.lower().removesuffix(".gguf")
    names: dict[str, str] = {}
    for each in stored():
        for own in (*each.bare, *each.near):
            names.setdefault(own.lower(), each.name)
    parts = [own for own in names if wanted in own] if len(wanted) > 2 else []
    return list(dict.fromkeys(names[own] for own in (*parts, *get_close_matches(wanted, names, n=5))))
