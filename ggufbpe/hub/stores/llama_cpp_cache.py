"""llama.cpp's own cache: files that older versions downloaded, and those from addresses and from Docker's registry.

    CACHE/OWNER_REPO_FILE.gguf   from the hub, with FILE's slashes as underscores; a .json or .etag beside it
    CACHE/manifest=OWNER=REPO=TAG.json
    CACHE/FILE.gguf              from an address, or put there by the user; links lead anywhere, as for llama.cpp

Newer versions keep downloads from the hub in the hub's cache (huggingface_cache.py). Source: common/common.cpp
(fs_get_cache_directory), common/arg.cpp of both versions (get_default_local_path; common_params_handle_model).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from ..name_grammar import HubName, LlamaCppName, Reference, is_repository
from ..quantization import chosen, is_first_part, is_model
from . import huggingface_cache
from .stored_model import Store, StoredModel, distinct, entries, home, same_name, setting, why_no_file

_NAME = "llama.cpp"


def llama_cpp_folder() -> str:
    """The cache folder, whether it exists or not."""
    if named := setting("LLAMA_CACHE"):
        return named
    if sys.platform == "win32":
        return os.path.join(setting("LOCALAPPDATA") or home("AppData", "Local"), "llama.cpp")
    if sys.platform == "darwin":
        return home("Library", "Caches", "llama.cpp")
    return os.path.join(setting("XDG_CACHE_HOME") or home(".cache"), "llama.cpp")


def _models() -> Iterator[StoredModel]:
    """All models in the folder itself."""
    for file in _files():
        if is_model(file) and is_first_part(file):
            yield _model(file)


def _find(reference: Reference) -> StoredModel | None:
    """The file of one of llama.cpp's names, or what older versions downloaded from a repository of the hub."""
    if isinstance(reference, LlamaCppName):
        return _find_named(reference)
    return _find_downloaded(reference) if isinstance(reference, HubName) else None


def _find_named(wanted: LlamaCppName) -> StoredModel | None:
    """The file with that name, or the one downloaded from that repository, in either layout."""
    files = _files()
    file = same_name(wanted.name, files) or same_name(f"{wanted.name}.gguf", files)
    if file:
        return _model(file)
    repository, _, quant = wanted.name.partition(":")
    if not is_repository(repository):
        return None
    owner, _, repo = repository.partition("/")
    name = HubName(owner, repo, quant or None)
    return huggingface_cache.find_in_caches(
        name, [setting("LLAMA_CACHE") or huggingface_cache.hub_folder()]
    ) or _find_downloaded(name)


def _find_downloaded(wanted: HubName) -> StoredModel | None:
    """What older versions downloaded from a repository of the hub; they knew no revision but "main"."""
    if wanted.revision not in (None, "main"):
        return None
    prefix = f"{wanted.owner}_{wanted.repo}_"
    files = [file for file in _files() if file.lower().startswith(prefix.lower())]
    if wanted.file is not None:
        name = prefix + wanted.file.replace("/", "_")
        file = same_name(name, files)
    else:
        choice = chosen([file[len(prefix) :] for file in files], wanted.quant)
        file = next((file for file in files if choice and file[len(prefix) :] == choice), None)
    return _model(file) if file else None


def _files() -> list[str]:
    return [
        name for place in distinct([llama_cpp_folder()]) for name in entries(place) if name.endswith(".gguf")
    ]


def _model(file: str) -> StoredModel:
    path = os.path.join(llama_cpp_folder(), file)
    return StoredModel(
        f"llama.cpp:{file}", path, _NAME, (file, file.removesuffix(".gguf")), problem=why_no_file(path)
    )


LLAMA_CPP_STORE = Store(_NAME, huggingface_cache.USE_BY_PATH, lambda: [llama_cpp_folder()], _models, _find)
