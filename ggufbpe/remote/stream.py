"""The bytes of a far file, asked for in ranges as the walk over its metadata finds out how many it needs.

    section.py, which says what it will surely read -> [this file] -> ranges to ask for -> http.py, filesystem.py

Two ranges at most are under way: the one that is being read, and the next, which is asked for as soon as it is sure to
be needed, so that the way to the server and back is not waited for. What is sure is told by the metadata itself: an
array of strings has a length for each. Beyond that a small share of what was read is asked for, in which the next
key shows; so no more than that share, or one block, is asked for in vain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple, Protocol

from ..errors import RemoteError
from ..gguf.source import ByteRange

BLOCK = 1 << 16  # bytes that are asked for first
LEAST = 3 << 14  # bytes that are asked for beyond what is sure
SHARE = 12  # or, if it is more, one part in so many of what comes before
GUESS = 1 << 20  # the most bytes that are asked for because they are likely
PARTS = 4  # the next range is asked for early if it is one part in so many of what comes before
CUTS = 4  # how often the line may be cut
LONGEST = 1 << 29  # bytes; metadata is not longer (gguf/section.py)


class RangePart(NamedTuple):
    """A range of a file that is coming in."""

    span: ByteRange  # what the server says that it sends
    blocks: Iterator[bytes]  # they end before the range does where the line is cut
    size: int  # of the whole file
    close: Callable[[], None]


class RangeFile(Protocol):
    """A far file, of which ranges can be asked for."""

    name: str  # what errors call it
    version: str | None  # what the server calls the content; None before the first range

    def open(self, span: ByteRange) -> RangePart:
        """What begins where `span` does, up to its end or the end of the file; a `RemoteError` if it cannot be had.

        A server without ranges sends all the rest of the file.
        """
        ...

    def check(self) -> None:
        """`RemoteError` if the file was replaced since the first range, and no range can have shown it."""
        ...

    def close(self) -> None:
        """Let go of the server."""
        ...


class FarProgress(NamedTuple):
    """How far the reading of a far file is."""

    name: str
    received: int  # bytes
    expected: int  # bytes that will come at least


class RangeStream:
    """The first bytes of a far file: a `Stream` of gguf/source.py."""

    def __init__(self, file: RangeFile, progress: Callable[[FarProgress], None] | None = None) -> None:
        """Ask for the first block. Raises what `RangeFile.open` does."""
        self._file = file
        self._progress = progress
        self._data = bytearray()
        self._next: Future[RangePart] | None = None
        self._cuts = 0
        self._asker = ThreadPoolExecutor(1, "ggufbpe-remote")
        try:
            self._part = file.open(ByteRange(0, BLOCK))
        except BaseException:
            self._asker.shutdown(wait=False)
            raise
        self.size = self._part.size
        self._asked = self._part.span.end

    def read(self, position: int, least: int, most: int) -> bytes:
        """`least` to `most` bytes from `position` on, as many as are there; waits for the least."""
        end = min(position + least, self.size)
        while len(self._data) < end:
            if end > self._asked:
                self.expect(end, end)
            self._receive()
        return bytes(memoryview(self._data)[position : position + most])

    def expect(self, end: int, likely: int) -> None:
        """Ask for everything up to `end`, and for what is likely behind it, if it is worth a request now."""
        guess = min(max(likely - end, 0), GUESS)
        goal = min(end + guess + max((end + guess) // SHARE, LEAST), self.size, LONGEST)
        missing = goal - self._asked
        is_worth_it = missing >= self._asked // PARTS and 2 * len(self._data) >= self._asked
        if self._next is None and missing > 0 and (end > self._asked or is_worth_it):
            self._ask(goal)

    def first(self, size: int) -> bytes:
        """The first `size` bytes, of which those that have not been read yet are asked for, and no more."""
        while len(self._data) < min(size, self.size):
            if size > self._asked and self._next is None:
                self._ask(size)
            self._receive()
        return bytes(memoryview(self._data)[:size])

    def close(self) -> None:
        """Ask for no more, and end what is under way."""
        self._part.close()
        if self._next is not None:
            self._next.add_done_callback(_close_part)
        self._asker.shutdown(wait=False, cancel_futures=True)
        self._file.close()

    def _ask(self, end: int) -> None:
        """Ask for everything up to `end`, behind what was asked for."""
        self._next = self._asker.submit(self._file.open, ByteRange(self._asked, end))
        self._asked = end

    def _receive(self) -> None:
        """Take the next block that comes, of the part that is under way or of the next."""
        here = len(self._data)
        if here >= self._part.span.end:
            self._part.close()
            self._part = self._following(here)
        block = next(self._part.blocks, b"")
        if not block:
            self._resume(here)
            return
        self._data += block
        if self._progress is not None:
            self._progress(FarProgress(self._file.name, len(self._data), self._asked))

    def _following(self, here: int) -> RangePart:
        """The part that begins at `here`, where the bytes end that have come."""
        if self._next is not None:
            part, self._next = self._next.result(), None
            if part.span.start == here:
                return part
            part.close()
        return self._file.open(ByteRange(here, self._asked))  # the server gave less than was asked for

    def _resume(self, here: int) -> None:
        """Ask again for what was cut off."""
        self._part.close()
        self._cuts += 1
        if self._cuts > CUTS:
            raise RemoteError(
                f"the line was cut {self._cuts} times",
                path=self._file.name,
                offset=here,
                remedy="try again later, or download the file and give its path",
            )
        self._part = self._file.open(ByteRange(here, self._part.span.end))


def _close_part(asked: Future[RangePart]) -> None:
    if not asked.cancelled() and asked.exception() is None:
        asked.result().close()
