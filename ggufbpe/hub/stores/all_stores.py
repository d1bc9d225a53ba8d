"""Finds and lists models in all stores of this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..._util.errors import ModelNameError
from ..._util.shell import shell_word
from ..name_grammar import Address, HubName, OllamaName, Reference, parse_name
from . import huggingface_cache, llama_cpp_cache, lm_studio, ollama_store
from .stored_model import StoredModel, is_closed

_STORES = (
    ollama_store.OLLAMA,
    huggingface_cache.HUGGING_FACE,
    llama_cpp_cache.LLAMA_CPP_STORE,
    lm_studio.LM_STUDIO,
)
STORES = tuple(store.name for store in _STORES)


def stored_models() -> Iterator[StoredModel]:
    """Every model of another program on this machine, even those that cannot be opened.

    If two folders of a program each have a model of the same name, the name opens the first, as in `find_stored`, and
    the second is named by its path. So is a file whose name no reference may have, such as one with a backslash.
    """
    names: set[str] = set()
    for model in (model for store in _STORES for model in store.models()):
        if model.name not in names:
            names.add(model.name)
            yield model if _is_name(model.name) else model._replace(name=model.path)
        elif model.path:
            yield model._replace(name=model.path, bare_names=(), fallback_names=())


def _is_name(text: str) -> bool:
    try:
        parse_name(text)
    except ModelNameError:
        return False
    return True


def closed_folders() -> list[tuple[str, str]]:
    """The folders of models that this user may not read, each with its program's name: (program, folder)."""
    return [(store.name, folder) for store in _STORES for folder in store.folders() if is_closed(folder)]


def find_stored(reference: Reference) -> StoredModel | None:
    """The model that a name with a prefix stands for, if it is on this machine. `StoreError` if it is damaged."""
    models = (store.find(reference) for store in _STORES)
    return next((model for model in models if model is not None), None)


def how_to_use(name: str, store: str, copy: str) -> str:
    """How to use a corrected copy of the model `name` in the program whose store it is from."""
    use: str = next(each.use for each in _STORES if store == each.name)
    name, path = name.partition(":")[2].removesuffix(":latest"), os.path.abspath(copy)
    in_modelfile = f'"{path}"' if " " in path else path
    return use.format(name=shell_word(name), copy=shell_word(path), in_modelfile=in_modelfile)


def how_to_download(name: Reference) -> tuple[str, str] | None:
    """The command that downloads a remote model, and the name that stands for its file then; None if there is none.

    >>> from ..name_grammar import parse_name
    >>> how_to_download(parse_name("hf:owner/repo/Q8_0/model.gguf"))
    ('hf download owner/repo Q8_0/model.gguf', 'hf:owner/repo/Q8_0/model.gguf')
    >>> how_to_download(parse_name("https://example.org/a/model.gguf"))
    ('curl -LO https://example.org/a/model.gguf', 'model.gguf')
    """
    import shlex

    if isinstance(name, OllamaName):
        return f"ollama pull {shell_word(str(name).removeprefix('ollama:'))}", str(name)
    if isinstance(name, HubName) and name.file:
        revision = ["--revision", name.revision] if name.revision else []
        return shlex.join(["hf", "download", name.repository, name.file, *revision]), str(name)
    if isinstance(name, Address) and name.scheme in ("http", "https") and "?" not in name.url:
        return shlex.join(["curl", "-LO", name.url]), name.url.rpartition("/")[2]
    return None


def models_named(name: str) -> list[StoredModel]:
    """The models that a name without a prefix stands for; each file once.

    Those with that name; only if there are none, those with that name before the tag. Case counts only if some of them
    have exactly that name: then those are meant. A file that is kept under several names is meant by the first that
    can be opened.
    """
    wanted, everything = name.lower(), list(stored_models())
    meant = [each for each in everything if wanted in map(str.lower, each.bare_names)]
    meant = meant or [each for each in everything if wanted in map(str.lower, each.fallback_names)]
    meant = [each for each in meant if name in (*each.bare_names, *each.fallback_names)] or meant
    files: dict[str, StoredModel] = {}
    for each in sorted(meant, key=lambda model: bool(model.problem)):
        files.setdefault(os.path.realpath(each.path) if each.path else each.name, each)
    return list(files.values())


def similar_names(name: str) -> list[str]:
    """Names of models that `name` may be a misspelling of."""
    from difflib import get_close_matches

    wanted = name.lower().removesuffix(".gguf")
    names: dict[str, str] = {}
    for each in stored_models():
        for own in (*each.bare_names, *each.fallback_names, each.name.partition(":")[2]):
            names.setdefault(own.lower(), each.name)
    parts = [own for own in names if wanted in own] if len(wanted) > 2 else []
    return list(dict.fromkeys(names[own] for own in (*parts, *get_close_matches(wanted, names, n=5))))
