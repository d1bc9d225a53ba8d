"""Divides a text into parts of at most so many tokens, at the strongest boundaries there are.

    text -> where its tokens begin -> how far a part reaches -> the last of the strongest boundaries (boundaries.py)

The tokens of the whole text say how far a part reaches; encoded by itself, a part may have others, so each part is
counted by itself. The compiled engine does the same in C++ (native/src/tokenizer/text_parts.h).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from .boundaries import BoundarySearch, SplitRequest

if TYPE_CHECKING:
    from .engine import Engine

Span = tuple[int, int]

_CHARACTER = 4  # bytes at most
_WHITE_SPACE = b" \t\r\n"


class TextSplitter:
    """Finds the parts of one text."""

    def __init__(self, engine: Engine, data: bytes, request: SplitRequest) -> None:
        self._engine, self._data, self._request = engine, data, request
        self._size, self._overlap, self._keep = request.size, request.overlap, request.keep
        self._levels = request.levels
        self._starts = _token_starts(engine, data, request.parse_special)
        self._search = BoundarySearch(data, request.levels, request.keep)

    def spans(self) -> list[Span]:
        """The parts in order, in bytes."""
        data, found = self._data, []
        start = done = 0
        while done < len(data):
            end = self._end(start, done)
            if end <= done:  # the overlap leaves no room for more
                start = done
                end = self._end(start, done)
            found.append((start, end))
            done = end
            start = self._overlapping(start, end) if self._overlap and end < len(data) else end
        if self._keep is False:
            return [span for span in map(self._stripped, found) if span[0] < span[1]]
        return found

    def _fits(self, start: int, end: int, size: int) -> bool:
        if self._keep is False:
            start, end = self._stripped((start, end))
        part = self._data[start:end]
        return self._engine.count(part, False, self._request.parse_special, 1, False) <= size

    def _reach(self, start: int) -> int:
        """How far a part from `start` reaches by the tokens of the whole text."""
        last = bisect_left(self._starts, start) + self._size
        return self._starts[last] if last < len(self._starts) else len(self._data)

    def _end(self, start: int, done: int) -> int:
        """Where the part from `start` ends: after `done`, or at it if it cannot."""
        reach = self._reach(start)
        if reach >= len(self._data):
            if self._fits(start, len(self._data), self._size):
                return len(self._data)
            reach = len(self._data) - 1
        if reach <= done:
            return self._end_of_characters(start, done)
        for level in self._levels:
            end = self._search.last(level, done, reach)
            while end > done and not self._fits(start, end, self._size):
                end = self._search.last(level, done, end - 1)
            if end > done:
                return end
        return self._end_of_tokens(start, done, reach)

    def _end_of_tokens(self, start: int, done: int, reach: int) -> int:
        """The last place between two tokens of the whole text, and between two characters, that fits."""
        index = bisect_left(self._starts, reach + 1)
        while index > 0 and self._starts[index - 1] > done:
            index -= 1
            place = self._starts[index]
            if is_character_start(self._data, place) and self._fits(start, place, self._size):
                return place
        return self._end_of_characters(start, done)

    def _end_of_characters(self, start: int, done: int) -> int:
        """The last character that fits; the first one if even that does not and there is nothing else in the part."""
        end, place = done, _next_character(self._data, done)
        first = place
        while self._fits(start, place, self._size):
            end = place
            if end >= len(self._data):
                break
            place = _next_character(self._data, end)
        return first if end == done == start else end

    def _overlapping(self, start: int, end: int) -> int:
        """Where the part after that of `start` and `end` begins, so that it repeats at most `overlap` tokens."""
        first = max(bisect_left(self._starts, end) - self._overlap, 0)
        least = max(self._starts[first] if first < len(self._starts) else end, start + 1)
        for level in self._levels:
            place = self._search.first(level, least, end)
            while place < end and not self._fits(place, end, self._overlap):
                place = self._search.first(level, place + 1, end)
            if place < end:
                return place
        for index in range(bisect_left(self._starts, least), len(self._starts)):
            place = self._starts[index]
            if place >= end:
                break
            if is_character_start(self._data, place) and self._fits(place, end, self._overlap):
                return place
        return end

    def _stripped(self, span: Span) -> Span:
        start, end = span
        part = self._data[start:end]
        return start + len(part) - len(part.lstrip(_WHITE_SPACE)), start + len(part.rstrip(_WHITE_SPACE))


def _token_starts(engine: Engine, data: bytes, parse_special: bool) -> list[int]:
    """Where the tokens of a text begin, in bytes."""
    _, spans = engine.encode_with_offsets(data, False, parse_special, True)
    return list(accumulate((start for start, _ in spans), max))


def is_character_start(data: bytes, place: int) -> bool:
    """Return whether no character of UTF-8 has bytes on both sides of a place; undecodable bytes stand alone."""
    if place <= 0 or place >= len(data) or data[place] & 0xC0 != 0x80:
        return True
    for first in range(place - 1, max(place - _CHARACTER, -1), -1):
        if data[first] & 0xC0 != 0x80:
            return _character_length(data, first) <= place - first
    return True


def _next_character(data: bytes, place: int) -> int:
    """Where the character that begins at a place ends."""
    return place + _character_length(data, place)


def _character_length(data: bytes, place: int) -> int:
    """The bytes of the character that begins at a place; 1 if none does."""
    lead = data[place]
    length = 1 if lead < 0xC0 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    try:
        data[place : place + length].decode()
    except UnicodeDecodeError:
        return 1
    return min(length, len(data) - place)


def character_spans(data: bytes, spans: Sequence[Span]) -> list[Span]:
    """Return spans of UTF-8 in characters.

    >>> character_spans("é!".encode(), [(0, 2), (2, 3)])
    [(0, 1), (1, 2)]
    """
    if data.isascii():
        return list(spans)
    at = {0: 0}
    last = 0
    for place in sorted({place for span in spans for place in span}):
        at[place] = at[last] + len(data[last:place].decode())
        last = place
    return [(at[start], at[end]) for start, end in spans]
