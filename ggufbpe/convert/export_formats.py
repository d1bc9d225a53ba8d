"""Data: the formats of exports, and which tokenizers each can hold; and `Export`, the result of one.

Which formats have a place for a model's `algorithm` is listed here and nowhere else. Some refuse a few vocabularies of
an algorithm that they have a place for; each writer says which.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from .._util.extras import NotInstalledError
from ..models.vocabulary import Vocabulary
from .incompatibilities import Incompatibility, listed_out
from .portable_patterns import NotExpressibleError


class Export(NamedTuple):
    """Files to write, by name, and the limits: where their readers' ids differ from ours."""

    files: dict[str, bytes]
    limits: tuple[Incompatibility, ...]


class Format(NamedTuple):
    """A format: the files of an export, the main one first, and the function that writes each algorithm."""

    files: tuple[str, ...]
    writers: dict[str, str]  # algorithm: module and function


_TOKENIZER_JSON = "exporters.tokenizer_json:to_tokenizer_json"
_MODEL = "exporters.sentencepiece_model:to_sentencepiece"

# vocab-gguf, which is a copy out of the file, is written for every model: see convert/exporters/vocab_gguf.py.
FORMATS = {
    "tokenizer.json": Format(
        ("tokenizer.json", "tokenizer_config.json"),
        dict.fromkeys(("merges", "scores", "unigram", "word pieces"), _TOKENIZER_JSON),
    ),
    "sentencepiece": Format(
        ("tokenizer.model", "tokenizer_config.json"), {"scores": _MODEL, "unigram": _MODEL}
    ),
    "vocab.txt": Format(
        ("vocab.txt", "tokenizer_config.json"), {"word pieces": "exporters.vocab_txt:to_vocab_txt"}
    ),
    "tiktoken": Format(
        ("ranks.tiktoken", "ranks.tiktoken.json"), {"merges": "exporters.tiktoken_files:to_tiktoken"}
    ),
    "merges.txt": Format(("merges.txt", "vocab.json"), {"merges": "exporters.merges_txt:to_merges_txt"}),
    "vocab-gguf": Format(("vocab.gguf",), {}),
}

_CHECKS = {  # what raises `NotExpressibleError` sooner than the writer, which is slow
    "tiktoken": "exporters.tiktoken_files:mergeable_by_rank",
    "merges.txt": "exporters.merges_txt:merges_in_lines",
}

_INSTEAD = {  # what only a GGUF has a place for
    "longest match": "it takes the longest token at each place in bytes, which none of these formats has a place for"
}


def require_expressible(vocabulary: Vocabulary, name: str) -> str:
    """Which function writes `vocabulary` as `name`. `NotExpressibleError` says why none does."""
    model = vocabulary.tokenizer_model
    writer = FORMATS[name].writers.get(model.algorithm)
    if writer is not None:
        return writer
    why = _INSTEAD.get(model.algorithm, f"{name} has no place for that")
    raise NotExpressibleError(f"the tokenizer is {vocabulary.model} ({model.description}): {why}")


def _holds(name: str, vocabulary: Vocabulary) -> bool:
    """Whether the format `name` accepts `vocabulary`, without options."""
    writer = FORMATS[name].writers.get(vocabulary.tokenizer_model.algorithm)
    if writer is None:
        return False
    try:
        _function(_CHECKS.get(name, writer))(listed_out(vocabulary))
    except NotExpressibleError:
        return False
    except NotInstalledError:  # what writes the file is not installed, and found no fault before
        return True
    return True


def _function(place: str) -> Callable[..., Any]:
    """The function at "module:function"."""
    module, function = place.split(":")
    found: Callable[..., Any] = getattr(import_module(f".{module}", __package__), function)
    return found


def _carriers(names: list[str]) -> str:
    """The names of formats, in words."""
    *before, last = names
    return f"{', '.join(before)} and {last}" if before else f"the format {last}"


def export_to(name: str, vocabulary: Vocabulary, *arguments: Any, **options: Any) -> Export:
    """A vocabulary in the format `name`; the arguments are those of the format's own function.

    `NotExpressibleError` says why the format cannot hold the vocabulary, and which formats can.
    """
    try:
        write: Callable[..., Export] = _function(require_expressible(vocabulary, name))
        return write(vocabulary, *arguments, **options)
    except NotExpressibleError as error:
        others = [other for other in FORMATS if other != name and _holds(other, vocabulary)]
        raise NotExpressibleError(f"{error}; {_carriers([*others, 'vocab-gguf'])} can carry it") from None


def json_file(value: object) -> bytes:
    """JSON as bytes for a file."""
    return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode()
