"""Chooses the model's file among the files of a repository, as llama.cpp does.

Source: common/download.cpp, find_best_model, gguf_filename_is_model and get_gguf_split_info.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

USUAL = ("Q4_K_M", "Q8_0")  # preferred if no quantization is named; after these, the first file

# Other files of a repository: projectors, importance matrices, draft models for speculative decoding.
_COMPANIONS = ("mmproj", "imatrix", "mtp-", "eagle3-", "dflash-", "dspark-")
_SHARD = re.compile(r"(?P<prefix>.+)-(?P<number>[0-9]{5})-of-(?P<count>[0-9]{5})", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"[-.]([A-Z0-9_]+)$", re.IGNORECASE)


def chosen(files: Iterable[str], quant: str | None = None) -> str | None:
    """The file of `files`, with their folders and in the hub's order, that `-hf REPO[:QUANT]` opens; None if none fits.

    `quant` is compared case-insensitively and stands before a dot or a dash anywhere in the name, so that "Q4_K_M"
    finds "x-Q4_K_M.gguf" and "Q4_K_M-00001-of-00002.gguf", and a folder's name counts, too. Of a model in parts
    this is the first one.

    >>> chosen(["a-Q2_K.gguf", "a-Q8_0.gguf", "mmproj-a-Q4_K_M.gguf"])
    'a-Q8_0.gguf'
    """
    models = [file for file in files if is_model(file) and is_first_part(file)]
    for wanted in (quant,) if quant else USUAL:
        pattern = re.compile(re.escape(wanted) + "[.-]", re.IGNORECASE)
        for file in models:
            if pattern.search(file):
                return file
    return None if quant else next(iter(models), None)


def is_model(file: str) -> bool:
    """Whether this is a .gguf with a model, not a companion such as an `mmproj`."""
    name = file.rpartition("/")[2]
    return name.endswith(".gguf") and not any(companion in name for companion in _COMPANIONS)


def is_first_part(file: str) -> bool:
    """Whether this is a whole model or the first part of a split one, which has the metadata."""
    shard = _shard(file)
    return not shard or not is_of_several(file) or int(shard["number"]) == 1


def is_of_several(file: str) -> bool:
    """Whether this is the name of a part of a split model, by which llama.cpp finds the others."""
    shard = _shard(file)
    return shard is not None and int(shard["count"]) > 1


def quantization(file: str) -> str:
    """The quantization in a file's name, in capital letters; "" if there is none.

    >>> quantization("Q8_0/llama-3-q8_0-00001-of-00002.gguf")
    'Q8_0'
    """
    match = _TAG.search(_prefix(file))
    return match[1].upper() if match else ""


def _shard(file: str) -> re.Match[str] | None:
    return _SHARD.fullmatch(file.removesuffix(".gguf"))


def _prefix(file: str) -> str:
    shard = _shard(file)
    return shard["prefix"] if shard else file.removesuffix(".gguf")


def model_parts(file: str, files: Iterable[str]) -> list[str]:
    """The parts in `files` of the same split model as `file`; `file` alone if it is a whole model."""
    shard = _shard(file)
    if not shard or not is_of_several(file):
        return [file]
    same = [(other, each) for other in files if (each := _shard(other))]
    return [other for other, each in same if each.group("prefix", "count") == shard.group("prefix", "count")]
