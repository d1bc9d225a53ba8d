"""LM Studio's folder of models.

    MODELS/PUBLISHER/MODEL/FILE.gguf

Source: lms's importCmd.ts (resolveModelsFolderPath), lms-common-server's findLMStudioHome.ts. Its files may be links to
those of other programs, which is common: LM Studio uses no digests.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

from ..._util.errors import StoreError
from ..name_grammar import LMStudioName, Reference
from ..quantization import chosen, is_first_part, is_model, quantization
from .stored_model import (
    Store,
    StoredModel,
    bounded_bytes,
    bounded_json,
    distinct,
    entries,
    files_below,
    home,
    same_name,
    why_no_file,
)

_NAME = "LM Studio"
_USE = (
    "to use it in LM Studio: `lms import {copy}`, or put it into a folder PUBLISHER/MODEL of its own beside "
    "the models that it has"
)


def _folders() -> list[str]:
    """The possible folders: those in its settings, and its defaults past and present."""
    homes = [home(".cache", "lm-studio"), home(".lmstudio")]
    with suppress(OSError, ValueError):
        named = bounded_bytes(home(".lmstudio-home-pointer")).decode().strip()
        homes[:0] = [named] if _is_place(named) else []
    return [*filter(None, [*map(_downloads, homes), *(os.path.join(each, "models") for each in homes)])]


def _models() -> Iterator[StoredModel]:
    """All models, in the order of their names."""
    for folder, publisher, model in _places():
        place = os.path.join(folder, publisher, model)
        files = list(files_below(place)) if os.path.isdir(place) else []
        for file in filter(is_first_part, filter(is_model, files)):
            yield _model(publisher, model, file, files, place)


def _find(reference: Reference) -> StoredModel | None:
    """The file of a name of LM Studio; names are compared case-insensitively."""
    if not isinstance(reference, LMStudioName):
        return None
    exact = reference.publisher, reference.model
    same = [place for place in _places() if _folded(place[1:]) == _folded(exact)]
    for folder, publisher, model in sorted(same, key=lambda place: place[1:] != exact):
        place = os.path.join(folder, publisher, model)
        files = list(files_below(place))
        file = same_name(reference.file, files) if reference.file else chosen(files, reference.quant)
        if file:
            return _model(publisher, model, file, files, place)
    return None


def _downloads(folder: str) -> str | None:
    """The folder that the settings of LM Studio name."""
    try:
        settings = bounded_json(os.path.join(folder, "settings.json"))
    except (OSError, StoreError):
        return None
    named = settings.get("downloadsFolder") if isinstance(settings, dict) else None
    return named if isinstance(named, str) and _is_place(named) else None


def _is_place(path: str) -> bool:
    """Whether a setting is an absolute path; a power cut may leave a file of NULs, which is none."""
    return os.path.isabs(path) and "\0" not in path


def _places() -> Iterator[tuple[str, str, str]]:
    """Each folder of models, with a publisher's folder in it and a model's in that."""
    for folder in distinct(_folders()):
        for publisher in entries(folder):
            for model in entries(os.path.join(folder, publisher)):
                yield folder, publisher, model


def _folded(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(str.lower, names))


def _model(publisher: str, model: str, file: str, files: list[str], place: str) -> StoredModel:
    path = os.path.join(place, *file.split("/"))
    quant = quantization(file)
    is_quant = bool(quant) and chosen(files, quant) == file
    shown = LMStudioName(publisher, model, quant if is_quant else None, None if is_quant else file)
    base = os.path.basename(file)
    bare = [base, base.removesuffix(".gguf")]
    for name in (f"{publisher}/{model}", model, model.removesuffix("-GGUF")):
        bare += [f"{name}@{quant}", f"{name}:{quant}"] * is_quant + [name] * (chosen(files) == file)
    return StoredModel(str(shown), path, _NAME, tuple(bare), problem=why_no_file(path))


LM_STUDIO = Store(_NAME, _USE, _folders, _models, _find)
