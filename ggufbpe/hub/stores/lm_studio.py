"""LM Studio's folder of models.

    MODELS/PUBLISHER/MODEL/FILE.gguf

Source: lms's importCmd.ts (resolveModelsFolderPath), lms-common-server's findLMStudioHome.ts. Its files may be links to
those of other programs, which is common: LM Studio uses no digests.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..._util.errors import StoreError
from ..name_grammar import LMStudioName, Reference
from ..quantization import chosen, is_first_part, is_model, quantization
from .stored_model import Store, StoredModel, bounded_json, distinct, entries, files_below, home, why_no_file

_NAME = "LM Studio"
_USE = (
    "to use it in LM Studio: `lms import {copy}`, or put it into a folder PUBLISHER/MODEL of its own beside "
    "the models that it has"
)


def _folders() -> list[str]:
    """The possible folders: those in its settings, and its defaults past and present."""
    homes = [home(".cache", "lm-studio"), home(".lmstudio")]
    try:
        with open(home(".lmstudio-home-pointer"), encoding="utf-8") as file:
            homes.insert(0, file.read(4096).strip())
    except (OSError, ValueError):
        pass
    return [*filter(None, [*map(_downloads, homes), *(os.path.join(each, "models") for each in homes)])]


def _models() -> Iterator[StoredModel]:
    """All models, in the order of their names."""
    for folder in distinct(_folders()):
        for publisher in entries(folder):
            for model in entries(os.path.join(folder, publisher)):
                place = os.path.join(folder, publisher, model)
                files = list(files_below(place)) if os.path.isdir(place) else []
                for file in filter(is_first_part, filter(is_model, files)):
                    yield _model(publisher, model, file, files, place)


def _find(reference: Reference) -> StoredModel | None:
    """The file of a name of LM Studio; names are compared case-insensitively."""
    if not isinstance(reference, LMStudioName):
        return None
    for folder in distinct(_folders()):
        publisher = _same(reference.publisher, entries(folder))
        model = _same(reference.model, entries(os.path.join(folder, publisher))) if publisher else None
        if not publisher or not model:
            continue
        place = os.path.join(folder, publisher, model)
        files = list(files_below(place))
        file = _same(reference.file, files) if reference.file else chosen(files, reference.quant)
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
    return named if isinstance(named, str) else None


def _same(wanted: str, names: list[str]) -> str | None:
    return next((name for name in names if name.lower() == wanted.lower()), None)


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
