"""A long text and its ids in segments, so that a change costs what it changes, however long the text is.

A segment is a few hundred to a few thousand bytes that begin where the text can be split, with their ids. Segments are
in chunks, and chunks are in a list:

    chunks -> up to 256 segments each -> bytes and ids

Segments and chunks never change: a change makes new ones and puts them in the list. So a copy of the list keeps a state
of the whole text, and two states share all that is equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

_MOST = 256  # segments in a chunk
_FEW = 64  # a chunk of fewer is joined to the one before it


class TextSegment(NamedTuple):
    """Part of a text, and its ids."""

    data: bytes
    ids: list[int]  # never changed


class SegmentPlace(NamedTuple):
    """Where a segment begins."""

    chunk: int  # its number
    segment: int  # its number in the chunk
    position: int  # bytes before it
    ids: int  # how many are before it


class SegmentChunk:
    """Consecutive segments, and how many bytes and ids they have."""

    __slots__ = ("count", "segments", "size")

    def __init__(self, segments: tuple[TextSegment, ...], size: int, count: int) -> None:
        self.segments = segments
        self.size = size
        self.count = count


class Segments:
    """The segments of a text; `size` is the number of bytes, `count` that of ids."""

    __slots__ = ("chunks", "count", "size")

    def __init__(self, chunks: Iterable[SegmentChunk] = (), size: int = 0, count: int = 0) -> None:
        self.chunks = list(chunks)
        self.size = size
        self.count = count

    def __iter__(self) -> Iterator[TextSegment]:
        return chain.from_iterable(chunk.segments for chunk in self.chunks)

    def last_before(self, limit: int) -> SegmentPlace:
        """The last segment that begins at or before `limit`; the first one if that is negative.

        The search begins at the end of the text, where most changes are. Without segments, the place of the first.
        """
        position, ids = self.size, self.count
        number = len(self.chunks)
        while number and (position > limit or number == len(self.chunks)):
            number -= 1
            position -= self.chunks[number].size
            ids -= self.chunks[number].count
        if not self.chunks:
            return SegmentPlace(0, 0, 0, 0)
        chunk = self.chunks[number]
        position, ids = position + chunk.size, ids + chunk.count
        at = len(chunk.segments)
        while at and (position > limit or at == len(chunk.segments)):
            at -= 1
            data, own = chunk.segments[at]
            position -= len(data)
            ids -= len(own)
        return SegmentPlace(number, at, position, ids)

    def through(self, place: SegmentPlace, limit: int) -> tuple[list[TextSegment], SegmentPlace]:
        """The segments from `place` on up to the first that begins at or after `limit`, and where that begins."""
        number, at, position, count = place
        found: list[TextSegment] = []
        while number < len(self.chunks) and position < limit:
            segments = self.chunks[number].segments
            while at < len(segments) and position < limit:
                segment = segments[at]
                found.append(segment)
                position += len(segment.data)
                count += len(segment.ids)
                at += 1
            if at == len(segments):
                number, at = number + 1, 0
        return found, SegmentPlace(number, at, position, count)

    def before(self, place: SegmentPlace) -> TextSegment | None:
        """The segment before `place` in the same chunk."""
        return self.chunks[place.chunk].segments[place.segment - 1] if place.segment else None

    def replace(self, start: SegmentPlace, end: SegmentPlace, segments: Sequence[TextSegment]) -> None:
        """Put `segments` in place of those from `start` up to `end`."""
        chunks = self.chunks
        first, last = start.chunk, end.chunk
        head = chunks[first].segments[: start.segment] if start.segment else ()
        tail = chunks[last].segments[end.segment :] if end.segment else ()
        stop = last + 1 if end.segment else last
        joined = (*head, *segments, *tail)
        if first and len(joined) < _FEW and len(chunks[first - 1].segments) < _MOST - _FEW:
            first -= 1
            joined = (*chunks[first].segments, *joined)
        size, count = _sums(segments)
        size, count = size - (end.position - start.position), count - (end.ids - start.ids)
        self.size, self.count = self.size + size, self.count + count
        if len(joined) <= _MOST:  # the sums follow from what has changed; adding them up would take longer
            for chunk in chunks[first:stop]:
                size, count = size + chunk.size, count + chunk.count
            chunks[first:stop] = [SegmentChunk(joined, size, count)] if joined else []
        else:
            parts = [joined[at : at + _MOST] for at in range(0, len(joined), _MOST)]
            chunks[first:stop] = [SegmentChunk(part, *_sums(part)) for part in parts]


def _sums(segments: Sequence[TextSegment]) -> tuple[int, int]:
    """How many bytes and ids segments have."""
    return sum([len(segment.data) for segment in segments]), sum([len(segment.ids) for segment in segments])
