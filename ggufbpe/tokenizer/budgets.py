"""Tells whether a text has at most so many tokens, reading no more of it than that takes.

A text may be split where no text further away changes an id (split_points.py), so the counts of its chunks add up,
and the rest need not be read once they exceed the limit.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from .._util.utf8 import lone_surrogate
from .chunking import chunks_of_stream
from .engine import Text

if TYPE_CHECKING:
    from . import Tokenizer

_SHORT = 1 << 12  # bytes; a shorter text is counted as a whole
_ENDLESS = 1 << 20  # bytes in which no split point is found, after which the length of tokens may decide


def count_up_to(
    tokenizer: Tokenizer, text: Text, limit: int, add_special: bool, parse_special: bool, continues: bool
) -> int:
    """Return the number of ids of `text` if it is at most `limit`, else `limit + 1`."""
    count = tokenizer._engine.count
    if not isinstance(text, (str, bytes, bytearray, memoryview)) or len(text) <= _SHORT + 2 * limit:
        return min(count(text, add_special, parse_special, 1, continues), limit + 1)
    found = sum(map(len, tokenizer.vocabulary.added)) if add_special else 0
    stream = TextStream(text)
    size = min(max(4 * limit, 1 << 10), 1 << 16)
    chunks = chunks_of_stream(stream, [tokenizer], parse_special, size, continues=True, most=_ENDLESS)
    chunk = next(chunks, b"")
    while chunk:
        following = next(chunks, b"")
        if not following and stream.rest:  # no place was found, and the text goes on
            rest = _count_of_rest(tokenizer, chunk, stream, limit - found, parse_special, continues)
            return min(found + rest, limit + 1)
        found += count(chunk, False, parse_special, 1, continues)
        if found > limit:
            return limit + 1
        chunk, continues = following, True
    return found


def _count_of_rest(
    tokenizer: Tokenizer, chunk: bytes, stream: TextStream, limit: int, parse_special: bool, continues: bool
) -> int:
    """Return the count of a chunk and of everything after it, or a lower bound that exceeds `limit`."""
    longest = tokenizer._longest_piece
    if longest and (least := ceil((len(chunk) + stream.rest) / longest)) > limit:
        return least
    return tokenizer._engine.count(chunk + stream.read(stream.rest), False, parse_special, 1, continues)


def longest_piece(tokenizer: Tokenizer) -> int:
    """Return the most bytes of text that a token can stand for; 0 if some text has no token or is changed.

    A text of so many times `limit` bytes has at least `limit` tokens.
    """
    vocabulary = tokenizer.vocabulary
    pieces = tokenizer.token_bytes
    # A token whose attributes strip white space around it stands for any number of bytes.
    strips = tokenizer._split_points_for(parse_special=True).strips
    has_all_bytes = len({piece for piece in pieces if len(piece) == 1}) == 256
    model = vocabulary.tokenizer_model
    if strips or model.changes_text or not has_all_bytes:
        return 0
    return max(map(len, pieces))


class TextStream:
    """A text in memory, read as a binary stream of UTF-8 without a copy of all of it."""

    def __init__(self, text: Text) -> None:
        if not isinstance(text, (str, bytes)):
            view = memoryview(text)
            text = view.cast("B") if view.c_contiguous else view.tobytes()
        self._text = text
        self._at = 0

    @property
    def rest(self) -> int:
        """How much of the text is not yet read, in characters of a `str` or in bytes."""
        return len(self._text) - self._at

    def read(self, size: int) -> bytes:
        """Return the next `size` characters or bytes; less only at the end."""
        start, part = self._at, self._text[self._at : self._at + size]
        self._at += len(part)
        if not isinstance(part, str):
            return bytes(part)
        try:
            return part.encode()
        except UnicodeEncodeError as error:
            assert isinstance(self._text, str)
            raise lone_surrogate(self._text, start + error.start) from None
