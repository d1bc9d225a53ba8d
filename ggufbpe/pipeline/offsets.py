"""Where tokens begin and end in a text, from the lengths of the tokens: as fast as their ids.

    text, ids -> [this file] -> offsets

A token stands for as many bytes of the text as its own text has, if nothing was changed or dropped on the way; then
the lengths of all tokens add up to that of the text. Where they do not (bytes that are not UTF-8, white space that a
special token strips, bytes that have no token), the reference engine's steps are run for the lines around.

But: models that change the text on purpose (DNA, words between white space) take these steps for all of it.
"""

from __future__ import annotations

import io
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from ..models.bpe.merge import CHAR_BYTES
from ..spelling import BYTE_OF, SPACE, unescape_spaces
from ..vocab import CONTROL, UNKNOWN, USER_DEFINED
from .blocks import blocks

if TYPE_CHECKING:
    from ..tokenizer import Tokenizer

_SMALL = 1 << 11  # bytes of a part for which the steps are run
_UNCERTAIN = -(1 << 48)  # the length of a token that may stand for more than one; no sum makes up for it
_ESCAPED_SPACE = SPACE.encode()


class Lengths(dict[int, int]):
    """The bytes of the text that each token stands for, found when first asked for.

    A token is found by merging the text as it is written for that, or as a special token in the text as it is; where
    that gives two lengths, none is certain.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__()
        self._vocabulary = tokenizer.vocabulary
        self._entry = tokenizer.vocabulary.pre_tokenizer
        keeps_text = tokenizer.vocabulary.tokenizer_model.keeps_text and not self._entry.prepend_space
        self.is_known = tokenizer.engine == "native" and keeps_text

    def __missing__(self, token: int) -> int:
        if (
            token < 0 or token == self._vocabulary.special_ids["unk"]
        ):  # for what has no token, of whatever length
            return _UNCERTAIN
        text = self._vocabulary.tokens[token]
        own = self._vocabulary.tokenizer_model.piece(text, self._vocabulary.attributes[token])
        found = {self._merged(text) if own is None else len(own)}
        if self._vocabulary.attributes[token] & (CONTROL | USER_DEFINED | UNKNOWN):
            found.add(len(text.encode()))
        found.discard(0)  # cannot be merged
        self[token] = length = found.pop() if len(found) == 1 else _UNCERTAIN
        return length

    def _merged(self, text: str) -> int:
        """The length of a symbol of this text; 0 if merging cannot make it."""
        if self._entry.byte_encode:
            return len(text) if all(char in CHAR_BYTES for char in text) else 0
        if text in BYTE_OF:  # a text with "<0x" in it is not asked for
            return _UNCERTAIN if BYTE_OF[text] in _ESCAPED_SPACE else 1
        return len((unescape_spaces(text) if self._entry.escape_whitespaces else text).encode())

    def bounds(self, data: bytes, ids: list[int], at: int = 0) -> list[int] | None:
        """Where `data` begins (`at`), and where each of the tokens `ids` ends, which it has; None if not certain."""
        if not self.is_known or not _is_utf8(data):
            return None
        if not self._entry.byte_encode and (_ESCAPED_SPACE in data or b"<0x" in data):
            return None
        bounds = list(accumulate(map(self.__getitem__, ids), initial=at))
        return bounds if bounds[-1] - at == len(data) else None


class Spans(NamedTuple):
    """Ids, and where each begins and ends, in bytes."""

    ids: list[int]
    starts: list[int]
    ends: list[int]


def spans(tokenizer: Tokenizer, data: bytes, parse_special: bool, at: int = 0) -> Spans:
    """The ids of a text to which nothing is added, and where each begins and ends; the text begins at `at`."""
    lengths = tokenizer.token_lengths
    ids = tokenizer.encode(data, add_special=False, parse_special=parse_special) if lengths.is_known else []
    bounds = lengths.bounds(data, ids, at)
    if bounds is not None:
        return Spans(ids, bounds[:-1], bounds[1:])
    parts = [data]
    if lengths.is_known and len(data) > 2 * _SMALL:
        parts = list(blocks(io.BytesIO(data), [tokenizer], parse_special, max(len(data) >> 3, _SMALL)))
    if len(parts) == 1:
        ids, found = tokenizer.pipeline.ids_with_offsets(data, False, parse_special)
        return Spans(ids, [at + start for start, _ in found], [at + end for _, end in found])
    whole = Spans([], [], [])
    for part in parts:
        for all_of_them, some in zip(whole, spans(tokenizer, part, parse_special, at)):
            all_of_them += some
        at += len(part)
    return whole


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
