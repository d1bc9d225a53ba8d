"""The result of an import, whatever the source format: the metadata of a GGUF, and what a GGUF cannot express."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from .._util.errors import printable
from ..gguf.constants import GGUFValueType, TokenizerKey
from ..gguf.schema import as_fields
from ..gguf.value_types import Field
from ..gguf.writer import packed_file
from .importers.recognize import Recognized
from .incompatibilities import Incompatibility


class NotImportableError(ValueError):
    """A file that llama.cpp has no place for, or that is not sound; the message says why."""


class Imported(NamedTuple):
    """The metadata of a vocabulary, and what it cannot carry.

    `metadata` maps keys to values: str, bool, int (UINT32), or a list of str or of int (INT32).
    """

    metadata: dict[str, Any]
    pre: str
    recognized: Recognized | None  # None where the name was given
    limits: tuple[Incompatibility, ...]


_ERRORS_OF_MALFORMED_FILES = (AttributeError, IndexError, KeyError, TypeError, OverflowError, ValueError)


@contextmanager
def as_refusals(problem: str) -> Iterator[None]:
    """Turn the errors that a malformed file causes into a `NotImportableError` that begins with `problem`."""
    try:
        yield
    except NotImportableError:
        raise
    except _ERRORS_OF_MALFORMED_FILES as error:
        raise NotImportableError(f"{problem} ({type(error).__name__}: {printable(str(error))})") from error


def refuse_repeated(texts: Iterable[str], what: str) -> None:
    """`NotImportableError` with `what` before the text if one occurs twice: llama.cpp aborts on duplicate tokens."""
    twice = next((text for text, count in Counter(texts).items() if count > 1), None)
    if twice is not None:
        raise NotImportableError(f"{what} {printable(twice)}, on which llama.cpp aborts")


def read_json(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The object in a JSON file. `NotImportableError` if it has none, `OSError` if it cannot be read."""
    with open(path, "rb") as file:
        data = file.read()
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise NotImportableError(f"{os.fsdecode(path)} is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise NotImportableError(f"{os.fsdecode(path)} has no JSON object")
    return document


def require_utf8(metadata: dict[str, Any]) -> None:
    """Refuse strings that JSON allows and UTF-8 does not: lone surrogates."""
    for value in metadata.values():
        for text in value if isinstance(value, list) else [value]:
            try:
                if isinstance(text, str):
                    text.encode()
            except UnicodeEncodeError as error:
                raise NotImportableError(
                    f"{printable(text)} has a lone surrogate, which UTF-8 cannot write"
                ) from error


def pack(metadata: dict[str, Any]) -> bytes:
    """The metadata as a GGUF without tensors."""
    template = f"{TokenizerKey.CHAT_TEMPLATE}."
    fields = {}
    for key, value in metadata.items():
        if key.startswith(template):
            fields[key] = Field(GGUFValueType.STRING, value)
        elif key == TokenizerKey.CHAT_TEMPLATES:
            fields[key] = Field(GGUFValueType.ARRAY, value, GGUFValueType.STRING)
        else:
            fields |= as_fields({key: value})
    return packed_file(fields)
