"""Opens a trained vocabulary that was saved as JSON, as `train -o vocab.json` writes it (save_vocabulary.py)."""

from __future__ import annotations

import json
import os
from typing import Any

from ..._util.errors import printable
from ...gguf.constants import TokenType
from ...hub.model_location import ModelLocation
from ...models.token_table import ATTRIBUTE_OF_TYPE
from .trained_vocabulary import Form, LearnedStep, TrainedVocabulary
from .word_counts import splitting

_ATTRIBUTES = {TokenType(kind).name.lower(): attribute for kind, attribute in ATTRIBUTE_OF_TYPE.items()}
_FIELDS = ("pre", "units", "end_of_word", "unk", "bos", "eos", "tokens", "types", "merges", "frequencies")


def is_trained_vocabulary(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a vocabulary that was saved as JSON: judged by the first of its fields."""
    if not os.fspath(path).endswith(".json") or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        head = file.read(200)
    return all(f'"{name}":'.encode() in head for name in _FIELDS[:3])


def trained_vocabulary_of(model: object) -> TrainedVocabulary | None:
    """The vocabulary if `model` is one, or the path of a file with one."""
    if isinstance(model, TrainedVocabulary):
        return model
    if not isinstance(model, (str, os.PathLike)) or isinstance(model, ModelLocation):
        return None
    return load_trained_vocabulary(model) if is_trained_vocabulary(model) else None


def load_trained_vocabulary(path: str | os.PathLike[str]) -> TrainedVocabulary:
    """Return the vocabulary in a JSON file that `TrainedVocabulary.save` wrote.

    `ValueError` if it is none; `OSError` if it cannot be read.
    """
    try:
        with open(path, encoding="utf-8") as file:
            content: dict[str, Any] = json.load(file)
        tokens = list(map(str, content["tokens"]))
        attributes = [_ATTRIBUTES[kind] for kind in content["types"]]
        merges = [(str(left), str(right)) for left, right in content["merges"]]
        split = splitting(content["pre"], content["units"])
        form = Form(split, *(content[name] for name in ("end_of_word", "unk", "bos", "eos")))
        counts = list(map(int, content["frequencies"]))
        if not all(isinstance(each, str) or each is None for each in form[1:5]):
            raise TypeError("end_of_word, unk, bos and eos are texts")
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        name = printable(os.fspath(path))
        raise ValueError(
            f"{name} is not a vocabulary that `ggufbpe train` wrote as JSON: {error!r}"
        ) from None
    if len(tokens) != len(attributes) or len(counts) > len(merges):
        raise ValueError(
            f"{printable(os.fspath(path))}: tokens, types, merges and frequencies do not fit together"
        )
    learned = merges[len(merges) - len(counts) :]
    trace = [LearnedStep(a, b, count, a + b) for (a, b), count in zip(learned, counts)]
    return TrainedVocabulary(tokens, attributes, merges, trace, form)


def utf8_text(data: bytes) -> str:
    """A text as trained vocabularies take it; `ValueError` if it is not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ValueError(
            f"byte {error.start} of the text is not UTF-8, which such a vocabulary needs"
        ) from None
