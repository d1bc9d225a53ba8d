"""A long text in chunks whose ids, one after the other, are those of the whole text.

    stream -> [this file] -> chunks

Where a text may be cut depends on the pre-tokenizer: after most lines, but with many models not between two
line breaks, nor after a line that ends in spaces. Instead of rules for each, a place is tried: the ids of the
text around it must be those of its two sides. Line ends are tried first, then spaces, then any character.

But: what stands more than `CONTEXT` bytes away from a place is not looked at, and a text with no such place at
all (a megabyte of one letter) is cut anyhow; such a cut is called rough, and may make a few tokens more or less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from ..tokenizer import Tokenizer

CHUNK = 1 << 18  # bytes
CONTEXT = 1 << 10  # bytes on either side of a place
_TRIES = 32  # of each kind of place
_WHITE_SPACE = b" \t\r\n\v\f"

CanCut = Callable[[bytes, int], bool]


class Chunk(NamedTuple):
    """A part of a text; `rough` if cutting behind it may have changed ids."""

    data: bytes
    rough: bool


def chunks(stream: Any, can_cut: CanCut, size: int = CHUNK) -> Iterator[Chunk]:
    """What a binary stream has, in chunks of at most about `size` bytes; none for an empty one.

    `can_cut` is asked with a part of the text and a position in it.
    """
    rest = b""
    while True:
        rest += _read(stream, size + CONTEXT - len(rest))
        if len(rest) < size + CONTEXT:
            if rest:
                yield Chunk(rest, rough=False)
            return
        end = next((place for place in _places(rest, size) if _fits(rest, place, can_cut)), None)
        rough = end is None
        if end is None:
            end = rest.rfind(b"\n", size // 2, size) + 1 or next(_characters(rest, size))
        yield Chunk(rest[:end], rough)
        rest = rest[end:]


def same_ids(tokenizers: Iterable[Tokenizer], parse_special: bool) -> CanCut:
    """Whether a cut changes neither ids nor words, of any of the tokenizers."""
    models = list(tokenizers)

    def can_cut(text: bytes, at: int) -> bool:
        sides = text[:at], text[at:]
        for model in models:
            ids, *parts = model.encode_batch((text, *sides), add_special=False, parse_special=parse_special)
            if ids != parts[0] + parts[1]:
                return False
            if len(model.words(text)) != sum(len(model.words(side)) for side in sides):
                return False
        return True

    return can_cut


def _read(stream: Any, size: int) -> bytes:
    """`size` bytes, less only at the end: pipes and decompressors give what they have."""
    parts: list[bytes] = []
    while size > 0 and (part := stream.read(size)):
        if isinstance(part, str):
            raise TypeError("the stream gives str; open it in binary mode")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _fits(data: bytes, place: int, can_cut: CanCut) -> bool:
    start = max(place - CONTEXT, 0)
    if start:  # a line is a better beginning than the middle of a word, but not one right before the place
        start = data.find(b"\n", start, place - CONTEXT // 2) + 1 or start
    while start < place and data[start] & 0xC0 == 0x80:
        start += 1
    end = min(place + CONTEXT, len(data))
    while end < len(data) and end > place + 1 and data[end] & 0xC0 == 0x80:
        end -= 1
    return can_cut(data[start:end], place - start)


def _places(data: bytes, size: int) -> Iterator[int]:
    for kind in (_line_ends, _spaces, _characters):
        yield from islice(kind(data, size), _TRIES)


def _line_ends(data: bytes, size: int) -> Iterator[int]:
    """Behind a line break, from the end; only where the next line is not indented."""
    end = size
    while (end := data.rfind(b"\n", size // 2, end)) >= 0:
        if data[end + 1] not in _WHITE_SPACE:
            yield end + 1


def _spaces(data: bytes, size: int) -> Iterator[int]:
    """Before the space of a word."""
    end = size
    while (end := data.rfind(b" ", size // 2, end)) >= 0:
        if data[end - 1] not in _WHITE_SPACE and data[end + 1] not in _WHITE_SPACE:
            yield end


def _characters(data: bytes, size: int) -> Iterator[int]:
    """Before a character; in a long row of continuation bytes, which begin none, anywhere."""
    place = size
    while place > size // 2:
        begin = next((place - back for back in range(4) if data[place - back] & 0xC0 != 0x80), place)
        yield max(begin, 1)
        place = begin - 1
