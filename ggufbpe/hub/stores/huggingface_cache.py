"""The cache of the Hugging Face hub, where llama.cpp keeps its downloads, too.

    CACHE/models--OWNER--REPO/refs/REVISION          the commit of a branch or tag when it was last requested
    CACHE/models--OWNER--REPO/snapshots/COMMIT/FILE  a link to ../../blobs/…, or the file itself without links

Source: huggingface_hub's constants.py and file_download.py (try_to_load_from_cache), common/hf-cache.cpp of llama.cpp
(get_cache_directory, get_cached_ref, get_cached_files). Reading it here needs no package.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..name_grammar import HubName, is_repository, is_revision
from ..quantization import chosen, is_first_part, is_model, quantization
from .stored_model import (
    Store,
    Stored,
    distinct,
    entries,
    files_below,
    home,
    leads_out,
    setting,
    why_no_file,
)

_NAME = "Hugging Face"
USE_BY_PATH = "to use it, give its path in the place of the name: `llama-server -m {copy}`"
_FOLDER = "models--"


def _places() -> list[str]:
    """The cache's possible folders: the hub's own, and llama.cpp's `LLAMA_CACHE`."""
    return [hub_folder(), *filter(None, [setting("LLAMA_CACHE")])]


def hub_folder() -> str:
    """The hub's own cache, by its environment variables."""
    named = setting("HF_HUB_CACHE") or setting("HUGGINGFACE_HUB_CACHE")
    if not named:
        caches = setting("XDG_CACHE_HOME") or home(".cache")
        named = os.path.join(setting("HF_HOME") or os.path.join(caches, "huggingface"), "hub")
    return os.path.expandvars(os.path.expanduser(named))


def _stored() -> Iterator[Stored]:
    """All models; each file once, by the first revision that has it."""
    for folder in distinct(_places()):
        for entry in entries(folder):
            owner, _, repo = entry.removeprefix(_FOLDER).replace("--", "/").partition("/")
            if entry.startswith(_FOLDER) and is_repository(f"{owner}/{repo}"):
                yield from _of_repository(HubName(owner, repo), os.path.join(folder, entry), folder)


def find_hub(wanted: HubName, places: list[str] | None = None) -> Stored | None:
    """The file that `wanted` means, if it is on this machine.

    Without a revision that is "main", or the one that is here: common/hf-cache.cpp, get_cached_ref.
    """
    for folder in distinct(_places() if places is None else places):
        name = f"{_FOLDER}{wanted.owner}--{wanted.repo}"
        found = next((entry for entry in entries(folder) if entry.lower() == name.lower()), None)
        if found is None:
            continue
        place = os.path.join(folder, found)
        commits = [(each, each) for each in entries(f"{place}/snapshots") if each == wanted.revision]
        for revision, commit in [*_revisions(place), *commits]:
            if wanted.revision not in (None, revision, commit):
                continue
            snapshot = os.path.join(place, "snapshots", commit)
            files = list(files_below(snapshot))
            file = wanted.file if wanted.file in files else None
            file = chosen(files, wanted.quant) if wanted.file is None else file
            if file is not None:
                return _model(wanted, revision, snapshot, file, files, folder)
            if wanted.revision is None:
                break
    return None


def _of_repository(name: HubName, place: str, folder: str) -> Iterator[Stored]:
    seen = set()
    for revision, commit in [*_revisions(place), *((each, each) for each in entries(f"{place}/snapshots"))]:
        snapshot = os.path.join(place, "snapshots", commit)
        files = list(files_below(snapshot))
        for file in filter(is_first_part, filter(is_model, files)):
            blob = os.path.realpath(os.path.join(snapshot, file))
            if blob not in seen:
                seen.add(blob)
                yield _model(name, revision, snapshot, file, files, folder)


def _revisions(place: str) -> list[tuple[str, str]]:
    """The cached branches and tags, each with its commit; "main" first."""
    found = []
    for name in files_below(os.path.join(place, "refs")):
        try:
            with open(os.path.join(place, "refs", name), encoding="utf-8") as file:
                commit = file.read(256).strip()
        except (OSError, ValueError):
            continue
        if is_revision(name) and is_revision(commit) and "/" not in commit:
            found.append((name, commit))
    return sorted(found, key=lambda each: each[0] != "main")


def _model(name: HubName, revision: str, snapshot: str, file: str, files: list[str], folder: str) -> Stored:
    """A file of a snapshot, with the shortest name that its revision, quantization and path allow."""
    path = os.path.join(snapshot, *file.split("/"))
    problem = why_no_file(path)
    if not problem and leads_out(path, folder):
        problem = "its file is a link out of the cache"
    quant = quantization(file)
    is_quant = bool(quant) and chosen(files, quant) == file
    shown = HubName(
        name.owner,
        name.repo,
        quant if is_quant else None,
        None if is_quant else file,
        None if revision == "main" else revision,
    )
    base = os.path.basename(file)
    bare = [base, base.removesuffix(".gguf")]
    for repository in (name.repository, name.repo, name.repo.removesuffix("-GGUF")):
        bare += [f"{repository}:{quant}"] * is_quant + [repository] * (chosen(files) == file)
    return Stored(str(shown), path, _NAME, tuple(bare) if revision == "main" else (), problem=problem)


HUGGING_FACE = Store(_NAME, USE_BY_PATH, _places, _stored)
