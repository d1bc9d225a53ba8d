"""The cache of the Hugging Face hub, where llama.cpp keeps its downloads, too.

    CACHE/models--OWNER--REPO/refs/REVISION          the commit of a branch or tag when it was last requested
    CACHE/models--OWNER--REPO/snapshots/COMMIT/FILE  a link to ../../blobs/…, or the file itself without links

Source: huggingface_hub's constants.py and file_download.py (try_to_load_from_cache), common/hf-cache.cpp of llama.cpp
(get_cache_directory, get_cached_ref, get_cached_files). Reading it here needs no package.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..name_grammar import HubName, Reference, is_repository, is_revision
from ..quantization import chosen, is_first_part, is_model, quantization
from .stored_model import (
    Store,
    StoredModel,
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


def _folders() -> list[str]:
    """The cache's possible folders: the hub's own, and llama.cpp's `LLAMA_CACHE`."""
    return [hub_folder(), *filter(None, [setting("LLAMA_CACHE")])]


def hub_folder() -> str:
    """The hub's own cache, by its environment variables."""
    named = setting("HF_HUB_CACHE") or setting("HUGGINGFACE_HUB_CACHE")
    if not named:
        caches = setting("XDG_CACHE_HOME") or home(".cache")
        named = os.path.join(setting("HF_HOME") or os.path.join(caches, "huggingface"), "hub")
    return os.path.expandvars(os.path.expanduser(named))


def _models() -> Iterator[StoredModel]:
    """All models; each file once, by the first revision that has it."""
    for folder in distinct(_folders()):
        for entry in entries(folder):
            owner, _, repo = entry.removeprefix(_FOLDER).replace("--", "/").partition("/")
            if entry.startswith(_FOLDER) and is_repository(f"{owner}/{repo}"):
                yield from _models_of_repository(HubName(owner, repo), os.path.join(folder, entry), folder)


def _find(reference: Reference) -> StoredModel | None:
    """The file of a hub name, if a cache has it."""
    return find_in_caches(reference, _folders()) if isinstance(reference, HubName) else None


def find_in_caches(name: HubName, folders: list[str]) -> StoredModel | None:
    """The file that `name` means, if one of the caches at `folders` has it.

    Without a revision that is "main", or the one that is here: common/hf-cache.cpp, get_cached_ref. A repository of
    exactly this name comes before one whose name differs in case, which llama.cpp would not find.
    """
    usual = f"{_FOLDER}{name.owner}--{name.repo}"
    places = [(each, entry) for each in distinct(folders) for entry in entries(each)]
    same = [place for place in places if place[1].lower() == usual.lower()]
    for folder, entry in sorted(same, key=lambda place: place[1] != usual):
        repository = os.path.join(folder, entry)
        commits = [(each, each) for each in entries(f"{repository}/snapshots") if each == name.revision]
        for revision, commit in [*_revisions(repository), *commits]:
            if name.revision not in (None, revision, commit):
                continue
            snapshot = os.path.join(repository, "snapshots", commit)
            files = list(files_below(snapshot))
            file = name.file if name.file in files else None
            file = chosen(files, name.quant) if name.file is None else file
            if file is not None:
                return _model(name, revision, snapshot, file, files, folder)
            if name.revision is None:
                break
    return None


def _models_of_repository(name: HubName, repository: str, folder: str) -> Iterator[StoredModel]:
    seen = set()
    commits = ((commit, commit) for commit in entries(f"{repository}/snapshots"))
    for revision, commit in [*_revisions(repository), *commits]:
        snapshot = os.path.join(repository, "snapshots", commit)
        files = list(files_below(snapshot))
        for file in filter(is_first_part, filter(is_model, files)):
            blob = os.path.realpath(os.path.join(snapshot, file))
            if blob not in seen:
                seen.add(blob)
                yield _model(name, revision, snapshot, file, files, folder)


def _revisions(repository: str) -> list[tuple[str, str]]:
    """The cached branches and tags, each with its commit; "main" first."""
    revisions = []
    for name in files_below(os.path.join(repository, "refs")):
        try:
            with open(os.path.join(repository, "refs", name), encoding="utf-8") as file:
                commit = file.read(256).strip()
        except (OSError, ValueError):
            continue
        if is_revision(name) and is_revision(commit) and "/" not in commit:
            revisions.append((name, commit))
    return sorted(revisions, key=lambda each: each[0] != "main")


def _model(
    name: HubName, revision: str, snapshot: str, file: str, files: list[str], folder: str
) -> StoredModel:
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
    return StoredModel(str(shown), path, _NAME, tuple(bare) if revision == "main" else (), problem=problem)


HUGGING_FACE = Store(_NAME, USE_BY_PATH, _folders, _models, _find)
