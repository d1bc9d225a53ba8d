"""What several adapters share: importing a library, checking a tokenizer, plain ids, and stop tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from .._util.extras import imported_package
from ..tokenizer import Tokenizer

REPLACEMENT = "\ufffd"


def library(module: str, package: str, adapter: str = "") -> Any:
    """Return an imported module of a library. `NotInstalledError` with the command that installs `package`.

    `adapter` is the name of our module, if it is not that of the library's.
    """
    return imported_package(module, package, f"ggufbpe.integrations.{adapter or module.partition('.')[0]}")


def checked(tokenizer: Tokenizer) -> Tokenizer:
    """Return `tokenizer`. `TypeError` for anything but a `Tokenizer`, such as the path of a model."""
    if not isinstance(tokenizer, Tokenizer):
        kind = type(tokenizer).__name__
        raise TypeError(
            f"the tokenizer must be a Tokenizer, not {kind}; Tokenizer.from_gguf(path) opens a model"
        )
    return tokenizer


def length_function(tokenizer: Tokenizer) -> Callable[[str], int]:
    """Return a function that counts the tokens of a text, without BOS and EOS, and control tokens as plain text."""
    return partial(checked(tokenizer).count, add_special=False, parse_special=False)


def stop_ids(tokenizer: Tokenizer) -> list[int]:
    """Return the ids that end a generation in llama.cpp, ascending but for EOS, which is first if it is among them."""
    return sorted(tokenizer.eog_ids, key=lambda token: (token != tokenizer.eos_id, token))


def eos_id(tokenizer: Tokenizer) -> int:
    """Return the first of `stop_ids`. `ValueError` if the vocabulary has no token that ends a generation."""
    ids = stop_ids(tokenizer)
    if not ids:
        raise ValueError(
            "No token of this vocabulary ends a generation, so nothing could end a constrained text."
        )
    return ids[0]


def joined_pieces(tokenizer: Tokenizer, ids: Iterable[int], *, special: bool = True) -> bytes:
    """Return the bytes of `ids`, one after another, without those of special tokens if `special=False`.

    All spaces are kept. `ValueError` for an id out of range, `TypeError` for anything but integers.
    """
    return tokenizer.decode_bytes(ids, unparse_special=special, clean_spaces=False, continues=True)


def token_text(tokenizer: Tokenizer, token: int) -> str:
    """Return the text of a token; U+FFFD for a token that is only a part of a character."""
    try:
        return tokenizer.token_bytes[token].decode()
    except UnicodeDecodeError:
        return REPLACEMENT
