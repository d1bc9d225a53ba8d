"""Streams a remote file's metadata, requesting ranges as the walk over it finds out how many bytes it needs.

The first range is one block. The next reaches to the likely end, and a little further for the last keys. The likely
end errs on the low side and improves as bytes arrive; so the rest is requested only when what is in flight lasts no
longer than a response takes, as measured. A range that is requested while another arrives needs a connection of its
own; that is made only if the wait for the other's is longer. Where bytes take longer to arrive than an answer takes to
begin, only the first answer is waited for, and for real vocabularies at most a tenth too much is requested, or a block.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from time import monotonic
from typing import NamedTuple, Protocol

from ..._util.errors import RemoteError
from ..._util.wording import counted
from ...gguf.source import ByteRange

# Where a remote file is: found by huggingface.py and ollama_registry.py, used by http_file.py.


class RemoteFile(NamedTuple):
    """A file of a repository."""

    name: str  # with its folders, as "Q8_0/model-00001-of-00002.gguf"
    size: int  # bytes
    url: str


class RemoteLocation(NamedTuple):
    """The address of a remote file, and what is known of the file before it is opened."""

    name: str  # of the file that was chosen, as "hf:bartowski/Llama-3.2-1B-Instruct-GGUF/….gguf"
    url: str
    named: str  # the address that the user or a setting gave; only its server gets the credentials
    secret: Mapping[str, str]  # headers for that server
    version: str | None  # an ETag or a date, equal while the content is; None if not known yet
    size: int | None  # bytes, if known


BLOCK = 1 << 19  # bytes requested first; real vocabularies have more
TAIL = 1 << 15  # bytes requested beyond the likely end,
TAIL_PART = 40  # or, if that is more, one part in so many of what comes before it
GUESS = 1 << 20  # the most bytes requested only because they are likely, unless more have arrived
SMALLEST = 1 << 12  # bytes worth a request before they are certain to be needed,
PART = 16  # or, if that is more, one part in so many of what is in flight
ENOUGH = 1 << 12  # bytes beyond the likely end that need no further request
AT_ONCE = 4  # ranges in flight beyond the one that is being read
AHEAD = 1.5  # response times before the last range ends that the next one is requested
CUTS = 4  # how often the connection may break, and how many answers may be short
LONGEST = 1 << 29  # bytes; metadata is not longer (gguf/section.py)


class RangePart(NamedTuple):
    """A range of a file, arriving."""

    span: ByteRange  # the range that the server says it sends
    blocks: Iterator[bytes]  # they end early if the connection breaks
    size: int  # of the whole file
    close: Callable[[], None]


class RangeFile(Protocol):
    """A remote file that serves ranges."""

    name: str  # what errors call it
    version: str | None  # such as an ETag; None before the first range

    @property
    def connecting(self) -> float:
        """The seconds that a new connection takes."""
        ...

    def open(self, span: ByteRange) -> RangePart:
        """The part from the start of `span` to its end or the end of the file. `RemoteError` if there is none.

        A server without ranges sends all the rest of the file.
        """
        ...

    def check(self) -> None:
        """`RemoteError` if the file was replaced since the first range, where the ranges do not show that."""
        ...

    def close(self) -> None:
        """Close all connections."""
        ...


class RemoteProgress(NamedTuple):
    """How much of a remote file has been read."""

    name: str
    received: int  # bytes
    expected: int  # bytes that will arrive at least


class RangeStream:
    """The first bytes of a remote file: a `Stream` of gguf/source.py."""

    def __init__(self, file: RangeFile, progress: Callable[[RemoteProgress], None] | None = None) -> None:
        """Request the first block. Raises what `RangeFile.open` does."""
        self._file = file
        self._progress = progress
        self._data = bytearray()
        self._following: deque[Future[RangePart]] = deque()
        self._cuts = 0
        self._short_answers = 0
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
        self._latency = monotonic() - begun  # seconds until a response begins, including connecting
        self._rate = 0.0  # bytes a second of the part that is arriving
        self._part_begun = monotonic(), 0  # when, and the bytes before it

    @property
    def received(self) -> int:
        """The number of bytes that have arrived."""
        return len(self._data)

    def read(self, position: int, least: int, most: int) -> bytes:
        """Between `least` and `most` bytes from `position` on, as many as are there; waits for `least`."""
        end = min(position + least, self.size)
        while len(self._data) < end:
            if end > self._asked:
                self.expect(end, self._likely)
            self._receive()
        return bytes(memoryview(self._data)[position : position + most])

    def expect(self, end: int, likely: int) -> None:
        """Request everything up to `end` and what likely follows, if it is time to."""
        self._likely = likely
        guess = min(max(likely - end, 0), max(GUESS, len(self._data)))
        goal = end + guess
        goal = min(goal + max(TAIL, goal // TAIL_PART), self.size, LONGEST)
        is_sure = end > self._asked
        under_way = self._asked - len(self._data)
        is_likely = likely + ENOUGH > self._asked and goal - self._asked >= max(SMALLEST, under_way // PART)
        if (
            (is_sure or is_likely)
            and under_way <= AHEAD * self._latency * self._rate
            and self._is_worth_a_connection()
        ):
            self._ask(goal)

    def _is_worth_a_connection(self) -> bool:
        """Whether a new connection is there before the current part's is free."""
        left = self._part.span.end - len(self._data)
        return left <= 0 or left >= self._file.connecting * self._rate

    def first(self, size: int) -> bytes:
        """The first `size` bytes; requests those that are missing, and no more."""
        while len(self._data) < min(size, self.size):
            self._ask(size)
            self._receive()
        return bytes(memoryview(self._data)[:size])

    def close(self) -> None:
        """Request no more, and end what is in flight."""
        self._part.close()
        for asked in self._following:
            asked.add_done_callback(_close_part)
        self._asker.shutdown(wait=False, cancel_futures=True)
        self._file.close()

    def _ask(self, end: int) -> None:
        """Request everything up to `end` that was not requested yet, unless too many ranges are in flight."""
        if end > self._asked and len(self._following) < AT_ONCE:
            self._following.append(self._asker.submit(self._file.open, ByteRange(self._asked, end)))
            self._asked = end

    def _receive(self) -> None:
        """Take the next block of the current part or the one after it."""
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
        self._rate = (len(self._data) - before) / max(monotonic() - begun, 1e-6)
        if self._progress is not None:
            self._progress(RemoteProgress(self._file.name, len(self._data), self._asked))

    def _next_part(self, here: int) -> RangePart:
        """The part that begins at `here`, the end of what has arrived."""
        while self._following:
            part = self._following.popleft().result()
            if part.span.start == here:
                return part
            part.close()
        sent = self._part.span.end - self._part.span.start
        self._short_answers += sent < SMALLEST
        if self._short_answers > CUTS:  # else a byte an answer would never end
            raise RemoteError(
                f"the server sends only {counted(sent, 'byte')} an answer",
                path=self._file.name,
                offset=here,
                remedy="download the file and give its path",
            )
        return self._file.open(ByteRange(here, self._asked))  # the server sent less than requested

    def _resume(self, here: int) -> None:
        """Request again what was cut off."""
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
