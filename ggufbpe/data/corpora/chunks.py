"""Reads a corpus in chunks that can be encoded independently: lines, rows, small files, or a piece of a long text.

A chunk has about a megabyte, so memory does not grow with a file. Reading can start where any chunk begins. A line of
JSON and a row of a table are never divided, whatever their size.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ...tokenizer import Tokenizer
from ...tokenizer.chunking import chunks_of_stream
from .documents import Options
from .records import CorpusError, LineRange, begins_as_utf8, decompressed, has_json_lines, is_json, is_table
from .storage import Input, open_input
from .table_rows import table_rows

CHUNK = 1 << 20  # bytes of a chunk, about
_MOST_FILES = 1024  # in a chunk
_LONG = 1 << 24  # bytes; longer texts are encoded in pieces

BEFORE_IS_READ = "; what comes before is read"  # if bad records are left out


class CorpusPlace(NamedTuple):
    """Where to start reading: `offset` bytes (rows, in a table) into input number `input`, after `record` records."""

    input: int = 0
    offset: int = 0
    record: int = 0


FIRST = CorpusPlace()


class Chunk(NamedTuple):
    """A part of a corpus. `kind` says what `data` is:

    "json" and "lines": the bytes of whole lines; "rows": tuples; "files": (number of the input, its bytes) of each;
    "piece": the bytes of a part of a text; "broken": why the rest of an input cannot be read.
    """

    kind: str
    data: list[Any]
    place: CorpusPlace
    size: int  # bytes
    read: int = 0  # bytes of the corpus read so far
    is_first: bool = True  # of the pieces of a text
    after: CorpusPlace | None = None  # for the last piece: where the next text begins; otherwise None
    records: int = 0  # lines, if it has whole ones
    is_flawed: bool = False  # for the last piece: whether the text does not begin as UTF-8


class ChunkReader:
    """Reads inputs chunk by chunk."""

    def __init__(self, tokenizer: Tokenizer, inputs: Sequence[Input], options: Options) -> None:
        self._tokenizer, self._inputs, self._options = tokenizer, inputs, options
        # a text that may be too long is counted before any of it is written
        self._may_cut = options.max_length is None

    def _cut(self, stream: Any) -> Iterator[bytes]:
        """The pieces of a long text, where the tokenizer lets it be cut: their ids are those of the whole."""
        parse_special = self._options.parse_special
        return chunks_of_stream(stream, [self._tokenizer], parse_special, CHUNK, continues=True)

    def chunks(self, start: CorpusPlace = FIRST, end: int | None = None) -> Iterator[Chunk]:
        """The chunks from `start` on. `OSError` and `ChangedError` for an input that is not what it was.

        With `end`, those of the lines of one input that begin from `start`, in any line, to before that byte.
        """
        small: list[Chunk] = []  # files to be joined to one chunk
        size = 0
        for chunk in self._all(start, end):
            if small and (chunk.kind != "files" or chunk.place.input != small[-1].place.input + 1):
                yield _joined(small, size)
                small, size = [], 0
            if chunk.kind != "files":
                yield chunk
                continue
            small.append(chunk)
            size += chunk.size
            if size >= CHUNK or len(small) >= _MOST_FILES:
                yield _joined(small, size)
                small, size = [], 0
        if small:
            yield _joined(small, size)

    def _all(self, start: CorpusPlace, end: int | None) -> Iterator[Chunk]:
        read = sum(given.size for given in self._inputs[: start.input])
        for index, given in enumerate(self._inputs[start.input :], start.input):
            place = start if index == start.input else CorpusPlace(index)
            with open_input(given) as raw:
                for chunk in self._of_input(raw, given, place, end):
                    yield chunk._replace(read=read + min(raw.tell(), given.size))
            read += given.size

    def _of_input(self, raw: Any, given: Input, place: CorpusPlace, end: int | None) -> Iterator[Chunk]:
        chunk = None
        try:
            with decompressed(raw, given.path) as stream:
                lines: Any = stream
                if end is not None:
                    lines = LineRange(stream, place.offset, end)
                    place = place._replace(offset=lines.begin)
                elif place.offset and not self._has_rows(given):
                    _skip(stream, place.offset, raw is stream)
                for chunk in self._of_stream(lines, given, place):
                    yield chunk
        except CorpusError as error:
            if chunk is not None and chunk.kind == "piece" and chunk.after is None:
                raise  # the first half of the text is already encoded
            if self._options.is_chat and is_json(given.path):
                raise  # all records of the file would be lost as one
            reason = str(error).removeprefix(f"{given.path}: ")
            if chunk is not None or place.offset:
                reason += BEFORE_IS_READ
            yield Chunk("broken", [reason], CorpusPlace(place.input + 1), 0)

    def _of_stream(self, stream: Any, given: Input, place: CorpusPlace) -> Iterator[Chunk]:
        """The chunks of a stream that is at `place`; of a table, from that row on."""
        if self._has_rows(given):
            yield from self._rows(stream, given, place)
        elif has_json_lines(given.path):
            yield from self._lines(stream, "json", place)
        elif self._options.by_line:
            yield from self._lines(stream, "lines", place)
        else:
            yield from self._file(stream, place)

    def _has_rows(self, given: Input) -> bool:
        return is_table(given.path) or (self._options.is_chat and is_json(given.path))

    def _rows(self, stream: Any, given: Input, place: CorpusPlace) -> Iterator[Chunk]:
        rows: list[Any] = []
        size = 0
        columns, may_lack = self._options.columns, bool(self._options.chats)
        argument = "text_column" if self._options.chat_column is None else "chat_column"
        try:
            for some in table_rows(stream, given.path, columns, place.offset, may_lack, argument):
                rows += some
                size += sum(len(value) for row in some for value in row if isinstance(value, (bytes, str)))
                if size >= CHUNK or len(rows) >= _MOST_FILES:
                    at = place.record + len(rows)  # the consumer may clear the list
                    yield Chunk("rows", rows, place, size)
                    place, rows, size = place._replace(offset=at, record=at), [], 0
        except Exception:
            if rows:  # those before the damage
                yield Chunk("rows", rows, place, size)
            raise
        if rows:
            yield Chunk("rows", rows, place, size)

    def _lines(self, stream: Any, kind: str, place: CorpusPlace) -> Iterator[Chunk]:
        """Whole lines; a very long line of plain text in pieces."""
        parts: list[Any] = []  # of an unfinished line
        size = 0
        while block := stream.read(CHUNK):
            end = block.rfind(b"\n") + 1
            if not end:
                parts.append(block)
                size += len(block)
                if kind == "json" or not self._may_cut or size < _LONG:
                    continue
                line = _Line(b"".join(parts), stream)
                parts, size = [], 0
                for chunk in _pieces(self._cut(line), line, place):
                    place = chunk.after or place
                    yield chunk
                block = line.after_line
                end = block.rfind(b"\n") + 1
            if end:
                parts.append(memoryview(block)[:end])  # copied once, with the others
                chunk = Chunk(kind, [b"".join(parts)], place, size + end)
                chunk = chunk._replace(records=chunk.data[0].count(b"\n"))
                place = CorpusPlace(place.input, place.offset + chunk.size, place.record + chunk.records)
                # copied now, so that no line of a gigabyte is kept during the yield
                parts = [memoryview(block)[end:]]
                yield chunk
            else:
                parts = [block]
            size = len(block) - end
        if rest := b"".join(parts):
            yield Chunk(kind, [rest], place, len(rest), records=1)

    def _file(self, stream: Any, place: CorpusPlace) -> Iterator[Chunk]:
        head = _read(stream, _LONG)
        if len(head) < _LONG or not self._may_cut:
            text = b"".join([head, *iter(lambda: stream.read(_LONG), b"")])
            del head  # which may be a gigabyte
            yield Chunk("files", [(place.input, text)], place, len(text))
            return
        whole = _Whole(head, stream)
        for chunk in _pieces(self._cut(whole), whole, place):
            yield chunk._replace(after=chunk.after and CorpusPlace(place.input + 1))


class _Whole:
    """A stream whose beginning was read already."""

    def __init__(self, head: bytes, stream: Any) -> None:
        self._head, self._stream = io.BytesIO(head), stream
        self.taken = 0

    def read(self, size: int) -> bytes:
        data: bytes = self._head.read(size) or self._stream.read(size)
        self.taken += len(data)
        return data


class _Line(_Whole):
    """A stream up to its line break, which is left out; `after_line` is what was read after the line break."""

    after_line = b""
    _has_ended = False

    def read(self, size: int) -> bytes:
        if self._has_ended:
            return b""
        data = super().read(size)
        while data.endswith(b"\r") and (more := super().read(1)):  # which may be the line feed
            data += more
        end = data.find(b"\n")
        if end < 0:
            return data
        self._has_ended = True
        self.after_line = data[end + 1 :]
        self.taken -= len(self.after_line)
        return data[:end].removesuffix(b"\r")


def _pieces(pieces: Iterator[bytes], stream: _Whole, place: CorpusPlace) -> Iterator[Chunk]:
    """The chunks of a text in `stream` that is cut into `pieces`."""
    last, is_first = next(pieces, b""), True
    is_flawed = not begins_as_utf8(last)
    for piece in pieces:
        yield Chunk("piece", [last], place, len(last), is_first=is_first)
        last, is_first = piece, False
    after = CorpusPlace(place.input, place.offset + stream.taken, place.record + 1)
    yield Chunk("piece", [last], place, len(last), is_first=is_first, after=after, is_flawed=is_flawed)


def _joined(small: Sequence[Chunk], size: int) -> Chunk:
    """Joins chunks of one small file each, of inputs that follow each other."""
    data = [file for chunk in small for file in chunk.data]
    return small[0]._replace(data=data, size=size, read=small[-1].read)


def _skip(stream: Any, offset: int, may_seek: bool) -> None:
    if may_seek:
        stream.seek(offset)
        return
    while offset > 0 and (block := stream.read(min(offset, CHUNK))):
        offset -= len(block)


def _read(stream: Any, size: int) -> bytes:
    parts: list[bytes] = []
    while size > 0 and (part := stream.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
