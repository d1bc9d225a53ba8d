"""The spans of a block's tokens, in bytes of the text that the block belongs to.

blocks.py -> [this file] -> cli/tokenize.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..tokenizer import Tokenizer


def blocks_add_up(tokenizer: Tokenizer) -> bool:
    """Whether the counts of a text's blocks add up to those of the whole: its tokens stand for all of it."""
    vocabulary = tokenizer.vocabulary
    keeps_text = vocabulary.tokenizer_model.keeps_text and not vocabulary.pre_tokenizer.prepend_space
    return tokenizer.engine == "native" and keeps_text


class Spans(NamedTuple):
    """Ids, and where each begins and ends, in bytes."""

    ids: list[int]
    starts: list[int]
    ends: list[int]


def spans(tokenizer: Tokenizer, data: bytes, parse_special: bool, at: int = 0) -> Spans:
    """The ids of a text to which nothing is added, and where each begins and ends.

    The text begins at `at`; if that is not 0, it continues another one.
    """
    ids, found = tokenizer.encode_with_offsets(
        data, add_special=False, parse_special=parse_special, continues=at > 0
    )
    return Spans(ids, [at + start for start, _ in found], [at + end for _, end in found])
