"""What several adapters share: importing a library, plain ids, stop tokens, and chunks of a text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .._util.extras import imported_package
from ..tokenizer import Tokenizer

REPLACEMENT = "\ufffd"


def library(module: str, package: str) -> Any:
    """Return an imported module of a library. `NotInstalledError` with the command that installs `package`."""
    return imported_package(module, package, f"ggufbpe.integrations.{module.partition('.')[0]}")


def length_function(tokenizer: Tokenizer) -> Callable[[str], int]:
    """Return a function that counts the tokens of a text, without BOS and EOS, and control tokens as plain text."""
    return partial(tokenizer.count, add_special=False, parse_special=False)


def stop_ids(tokenizer: Tokenizer) -> list[int]:
    """Return the ids that end a generation: EOS first, then the other end-of-generation tokens, ascending."""
    first = [] if tokenizer.eos_id is None else [tokenizer.eos_id]
    return first + sorted(tokenizer.eog_ids - set(first))


def eos_id(tokenizer: Tokenizer) -> int:
    """Return the first of `stop_ids`. `ValueError` if the vocabulary has no token that ends a generation."""
    ids = stop_ids(tokenizer)
    if not ids:
        raise ValueError("This vocabulary has no EOS token, so nothing could end a constrained text.")
    return ids[0]


def token_text(tokenizer: Tokenizer, token: int) -> str:
    """Return the text of a token; U+FFFD for a token that is only a part of a character."""
    try:
        return tokenizer.token_bytes[token].decode()
    except UnicodeDecodeError:
        return REPLACEMENT


def chunks(tokenizer: Tokenizer, text: str, size: int, overlap: int = 0) -> list[str]:
    """Return consecutive slices of `text`, each of at most `size` tokens when encoded by itself.

    With `overlap=0` the slices join to `text`; otherwise each begins up to `overlap` tokens before the end of the one
    before it. Characters that share tokens are never separated, so a slice of such characters alone may have
    more than `size` tokens. `ValueError` unless `0 <= overlap < size`.
    """
    if not 0 <= overlap < size:
        raise ValueError(f"overlap must be at least 0 and less than size, which is {size}; it is {overlap}")
    count = length_function(tokenizer)
    _, spans = tokenizer.encode_with_offsets(text, add_special=False, parse_special=False, unit="characters")
    cuts = _cuts(text, spans)
    found, start = [], 0
    while start < len(cuts) - 1:
        end = start + 1
        while end < len(cuts) - 1 and cuts[end + 1][1] - cuts[start][1] <= size:
            end += 1
        while end > start + 1 and count(text[cuts[start][0] : cuts[end][0]]) > size:
            end -= 1
        found.append(text[cuts[start][0] : cuts[end][0]])
        if end == len(cuts) - 1:
            break
        following = end
        while following - 1 > start and cuts[end][1] - cuts[following - 1][1] <= overlap:
            following -= 1
        start = following
    return found


def _cuts(text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the positions in `text` between two tokens, with the number of tokens before each; no character is cut.

    >>> _cuts("a 者!", [(0, 1), (1, 2), (2, 3), (2, 3), (3, 4)])
    [(0, 0), (1, 1), (2, 2), (3, 4), (4, 5)]
    """
    found, last = [(0, 0)], 0
    for index, (start, end) in enumerate(spans):
        if start >= last and start > found[-1][0]:
            found.append((start, index))
        last = max(last, end)
    if len(text) > found[-1][0]:
        found.append((len(text), len(spans)))
    return found
