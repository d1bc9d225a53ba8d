"""Reads tokens, their ids and their attributes from metadata.

Source: src/llama-vocab.cpp, llama_vocab::impl::load.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import compress
from operator import ne
from typing import cast

from .._util.errors import VocabularyError, printable
from ..gguf import typed
from ..gguf.constants import TokenizerKey, TokenType
from ..gguf.metadata import Metadata
from .tokenizer_model import Warn, misconverted
from .vocabulary import BYTE, CONTROL, NORMAL, UNKNOWN, UNUSED, USER_DEFINED

ATTRIBUTE_OF_TYPE = {
    int(TokenType.NORMAL): NORMAL,
    int(TokenType.UNKNOWN): UNKNOWN,
    int(TokenType.CONTROL): CONTROL,
    int(TokenType.USER_DEFINED): USER_DEFINED,
    int(TokenType.UNUSED): UNUSED,
    int(TokenType.BYTE): BYTE,
}


def named_tokens(file: Metadata, warn: Warn) -> tuple[list[str], dict[str, int]]:
    """The tokens, and the id of each; an empty one gets a name. `VocabularyError` if two are the same."""
    tokens = typed.strings(file, TokenizerKey.LIST)
    empty = [index for index, token in enumerate(tokens) if not token] if "" in tokens else []
    for index in empty:
        tokens[index] = f"[EMPTY_{index}]"
    if empty:
        some = ", ".join(map(str, empty[:5])) + (" …" if len(empty) > 5 else "")
        warn(f"{len(empty)} of the tokens are empty, at index {some}")
    return tokens, _token_to_id(file, tokens)


def _token_to_id(file: Metadata, tokens: list[str]) -> dict[str, int]:
    ids = dict(zip(tokens, range(len(tokens))))
    if len(ids) == len(tokens):
        return ids
    seen: dict[str, int] = {}
    for index, token in enumerate(tokens):
        if token in seen:
            break
        seen[token] = index
    raise VocabularyError(
        f"tokens {seen[token]} and {index} are the same, {printable(token)}, on which llama.cpp aborts"
        + (f" ({len(tokens) - len(ids)} duplicates in all)" if len(tokens) - len(ids) > 1 else ""),
        path=file.path,
        offset=file.element_offset(TokenizerKey.LIST, index),
        key=TokenizerKey.LIST,
        remedy="convert the model again with a fixed tokenizer",
    )


def read_scores(file: Metadata, token_count: int, is_wanted: bool) -> array[float]:
    """The score of each token as a float32; empty if missing or not wanted. Their number is always checked."""
    if not _check_parallel(file, TokenizerKey.SCORES, token_count) or not is_wanted:
        return array("f")
    scores = cast("array[float]", file.numbers(TokenizerKey.SCORES))
    if scores.typecode == "f" and len(scores) == token_count:
        return scores  # not a copy: neither changes it
    return array("f", scores[:token_count])


def read_attributes(file: Metadata, token_count: int) -> array[int]:
    """The attribute of each token by its type."""
    if not _check_parallel(file, TokenizerKey.TOKEN_TYPE, token_count):
        return array("H", [NORMAL]) * token_count
    types = cast("array[int]", file.numbers(TokenizerKey.TOKEN_TYPE))
    if len(types) > token_count:
        types = types[:token_count]
    attribute = ATTRIBUTE_OF_TYPE.get
    return array("H", [attribute(token_type, 0) for token_type in types])


def tokens_with(attributes: Sequence[int], flags: int) -> list[int]:
    """The tokens with one of `flags`, ascending."""
    return [index for index, attribute in enumerate(attributes) if attribute & flags]


def tokens_that_differ(ours: Sequence[int], theirs: Sequence[int]) -> list[int]:
    """Return the tokens, ascending, that two vocabularies with as many tokens give different attributes.

    >>> tokens_that_differ([1, 4, 1], [1, 1, 1])
    [1]
    """
    if ours == theirs:
        return []
    return list(compress(range(len(ours)), map(ne, ours, theirs)))


def _check_parallel(file: Metadata, key: str, token_count: int) -> bool:
    """Whether `key` is there; if so, it must be an array of its type, as long as the tokens."""
    if not typed.has(file, key):
        return False
    if file.array_length(key) < token_count:
        raise misconverted(file, key, f"has {file.array_length(key)} elements for {token_count} tokens")
    return True


def check_byte_tokens(file: Metadata, tokens: Sequence[str], attributes: array[int]) -> None:
    """`VocabularyError` for a byte token that is too short to name one."""
    for index in tokens_with(attributes, BYTE):
        if len(tokens[index].encode()) < 3:
            problem = f"token {index}, {printable(tokens[index])}, has the type BYTE but not the form <0xXX>"
            raise misconverted(file, TokenizerKey.LIST, problem, index)
