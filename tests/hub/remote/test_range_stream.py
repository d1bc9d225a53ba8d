"""A remote file that arrives in ranges, some of them shorter than what was requested."""

from __future__ import annotations

import pytest

from ggufbpe._util.errors import RemoteError
from ggufbpe.gguf.source import ByteRange
from ggufbpe.hub.remote.range_stream import SMALLEST, RangePart, RangeStream

DATA = bytes(range(256)) * 1024


class ShortRanges:
    """A file whose server sends at most `most` bytes an answer."""

    name, version, connecting = "model.gguf", "1", 0.0

    def __init__(self, most: int) -> None:
        self._most = most
        self.answers = 0

    def open(self, span: ByteRange) -> RangePart:
        self.answers += 1
        sent = ByteRange(span.start, min(span.end, span.start + self._most, len(DATA)))
        return RangePart(sent, iter([DATA[sent.start : sent.end]]), len(DATA), lambda: None)

    def check(self) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.mark.parametrize("most", [SMALLEST, 100_000, len(DATA)])
def test_a_server_that_sends_less_than_requested(most: int) -> None:
    file = ShortRanges(most)
    stream = RangeStream(file)
    assert stream.read(0, len(DATA), len(DATA)) == DATA
    assert file.answers <= len(DATA) // most + 1
    stream.close()


def test_a_server_that_sends_a_byte_at_a_time_is_given_up() -> None:
    file = ShortRanges(1)
    stream = RangeStream(file)
    with pytest.raises(RemoteError, match=r"the server sends only 1 byte an answer"):
        stream.read(0, len(DATA), len(DATA))
    assert file.answers < 10
    stream.close()
