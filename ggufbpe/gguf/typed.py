"""Reads metadata values by type, as llama.cpp does.

llama.cpp takes a value of one type and no other (schema.py), and its strings are C strings: they end at the first NUL
(gguf_get_val_str, gguf_get_arr_str).
"""

from __future__ import annotations

from typing import cast

from .._util.errors import MissingKeyError
from ..native.lazy_strings import LazyStrings
from .constants import TokenizerKey
from .metadata import Metadata
from .schema import has_right_type, wrong_type


def has(file: Metadata, key: str) -> bool:
    """Whether the file has the key; `WrongTypeError` if its type is not the one in `KEY_TYPES`."""
    if key not in file:
        return False
    if not has_right_type(file, key):
        raise wrong_type(file, key)
    return True


# What a GGUF without a tokenizer may be, by its general.type or its general.architecture.
_NO_MODELS = {
    "mmproj": "a multimodal projector (mmproj)",
    "clip": "a multimodal projector (mmproj)",
    "adapter": "an adapter (LoRA)",
    "controlvector": "a control vector",
    "imatrix": "an importance matrix",
}


def require(file: Metadata, key: str) -> None:
    """`MissingKeyError` if the file has no such key."""
    if has(file, key):
        return
    said = [file[name] for name in ("general.type", "general.architecture") if name in file]
    what = next((_NO_MODELS[each] for each in said if isinstance(each, str) and each in _NO_MODELS), None)
    if what is not None:
        problem, remedy = f"the key is missing: this is {what}", "give the language model that it belongs to"
    elif TokenizerKey.MODEL in file or TokenizerKey.LIST in file:
        problem, remedy = "the key is missing", "convert the model again"
    else:
        problem, remedy = (
            "the key is missing: the file has no tokenizer",
            "give a language model that has one",
        )
    raise MissingKeyError(problem, path=file.path, key=key, remedy=remedy)


def string(file: Metadata, key: str, default: str | None = None) -> str:
    """The string of a key, which is required without a default."""
    if default is None:
        require(file, key)
    return cast(str, file[key]).partition("\0")[0] if has(file, key) else cast(str, default)


def flag(file: Metadata, key: str, default: bool) -> bool:
    """The truth value of a key, or the default."""
    return cast(bool, file[key]) if has(file, key) else default


def flag_if_there(file: Metadata, key: str) -> bool | None:
    """The truth value of a key, None if it is missing."""
    return cast(bool, file[key]) if has(file, key) else None


def unsigned(file: Metadata, key: str) -> int | None:
    """The number of a key, None if it is missing."""
    return cast(int, file[key]) if has(file, key) else None


def strings(file: Metadata, key: str) -> list[str]:
    """An array of strings, which is required."""
    require(file, key)
    values = cast("list[str]", file[key])
    if "\0" in "".join(values):
        return [each.partition("\0")[0] for each in values]
    return values


def compiled_strings(file: Metadata, key: str) -> LazyStrings | None:
    """An array of strings by the compiled engine; None without it, or if a string has a NUL or is not UTF-8."""
    require(file, key)
    return file.strings(key)
