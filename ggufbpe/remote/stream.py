"""The bytes of a far file, asked for in ranges as the walk over its metadata finds out how many it needs.

    section.py and forecast.py, which say what is sure and what is likely -> [this file] -> ranges to ask for -> http.py

The first range is a block. After it, everything is asked for that is likely to come, and a little more, in which the
last keys show. The likely end is rather too low, and is known better the more has come; so what is missing is asked for
only when what is under way lasts no longer than an answer takes, as measured. Then nothing is waited for but the first
two answers, and of real vocabularies no more than a block is asked for in vain.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from time import monotonic
from typing import NamedTuple, Protocol

from ..errors import RemoteError
from ..gguf.source import ByteRange

BLOCK = 1 << 17  # bytes that are asked for first, and the most that may be asked for in vain
TAIL = 1 << 15  # bytes that are asked for behind what is likely
GUESS = 1 << 20  # the most bytes that are asked for because they are likely, unless more have come
SMALLEST = 1 << 14  # bytes that are worth a request before it is sure that they are needed,
PART = 64  # or, if it is more, one part in so many of what was asked for
ENOUGH = 1 << 12  # bytes that are to have been asked for behind what is likely
AT_ONCE = 3  # ranges that may be under way behind the one that is being read
AHEAD = 1.5  # how many times as long as an answer takes the next range is asked for before the last has come
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
        self._following: deque[Future[RangePart]] = deque()
        self._cuts = 0
        self._asker = ThreadPoolExecutor(AT_ONCE, "ggufbpe-remote")
        self._likely = 0
        begun = monotonic()
        try:
            self._part = file.open(ByteRange(0, BLOCK))
        except BaseException:
            self._asker.shutdown(wait=False)
            raise
        self.size = self._part.size
        self._asked = self._part.span.end
        self._latency = monotonic() - begun  # seconds until an answer begins, connecting included
        self._rate = 0.0  # bytes a second of the part that is coming; 0 of the first
        self._part_begun = monotonic(), 0  # when, and the bytes before it

    @property
    def received(self) -> int:
        """The bytes that have come."""
        return len(self._data)

    def read(self, position: int, least: int, most: int) -> bytes:
        """`least` to `most` bytes from `position` on, as many as are there; waits for the least."""
        end = min(position + least, self.size)
        while len(self._data) < end:
            if end > self._asked:
                self.expect(end, self._likely)
            self._receive()
        return bytes(memoryview(self._data)[position : position + most])

    def expect(self, end: int, likely: int) -> None:
        """Ask for everything up to `end`, and for what is likely behind it, if that has to be asked for now."""
        self._likely = likely
        guess = min(max(likely - end, 0), max(GUESS, len(self._data)))
        goal = min(end + guess + TAIL, self.size, LONGEST)
        is_sure = end > self._asked
        is_likely = likely + ENOUGH > self._asked and goal - self._asked >= max(SMALLEST, self._asked // PART)
        under_way = self._asked - len(self._data)
        if (is_sure or is_likely) and under_way <= AHEAD * self._latency * self._rate:
            self._ask(goal)

    def first(self, size: int) -> bytes:
        """The first `size` bytes, of which those that have not been read yet are asked for, and no more."""
        while len(self._data) < min(size, self.size):
            self._ask(size)
            self._receive()
        return bytes(memoryview(self._data)[:size])

    def close(self) -> None:
        """Ask for no more, and end what is under way."""
        self._part.close()
        for asked in self._following:
            asked.add_done_callback(_close_part)
        self._asker.shutdown(wait=False, cancel_futures=True)
        self._file.close()

    def _ask(self, end: int) -> None:
        """Ask for everything up to `end` that was not asked for, unless too many ranges are under way."""
        if end > self._asked and len(self._following) < AT_ONCE:
            self._following.append(self._asker.submit(self._file.open, ByteRange(self._asked, end)))
            self._asked = end

    def _receive(self) -> None:
        """Take the next block that comes, of the part that is under way or of the next."""
        here = len(self._data)
        if here >= self._part.span.end:
            self._part.close()
            self._part = self._next_part(here)
            self._part_begun = monotonic(), here
        block = next(self._part.blocks, b"")
        if not block:
            self._resume(here)
            return
        self._data += block
        begun, before = self._part_begun
        if before:
            self._rate = (len(self._data) - before) / max(monotonic() - begun, 1e-6)
        if self._progress is not None:
            self._progress(FarProgress(self._file.name, len(self._data), self._asked))

    def _next_part(self, here: int) -> RangePart:
        """The part that begins at `here`, where the bytes end that have come."""
        while self._following:
            part = self._following.popleft().result()
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
