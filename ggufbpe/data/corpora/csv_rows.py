"""Reads rows of comma-separated values as Python's csv does, but as bytes.

Python's csv holds four bytes for each character of a field, and what it returns may take as much again: nine times a
document of a gigabyte. Here a field takes no more than twice its size.

Source of the rules: Modules/_csv.c of CPython, the dialect "excel", not strict. Only a field that begins with a quote
is quoted; there two quotes are one, and what follows the closing quote is part of the field up to the next comma. But
where Python takes a quote that is never closed for one field of all that follows, this is an error.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

from ..._util.errors import printable
from .records import CorpusError

_BLOCK = 1 << 20
_END = re.compile(rb"[,\r\n]")  # of a field that is not quoted
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def csv_rows(stream: Any) -> Iterator[list[bytes]]:
    """The rows of a binary stream, without blank lines. `CorpusError` for a quote that is never closed.

    >>> list(csv_rows(io.BytesIO(b'id,text\\n1,"a ""b"", c"\\n')))
    [[b'id', b'text'], [b'1', b'a "b", c']]
    """
    fields = _Fields(stream)
    row: list[bytes] = []
    while fields.has_more():
        if not row and (plain := fields.plain_row()) is not None:
            if plain != [b""]:
                yield plain
            continue
        row.append(fields.next())
        end = fields.next_byte()
        if end != b",":
            if row != [b""] or fields.was_quoted:
                yield row
            row = []
            if end == b"\r" and fields.peek() == b"\n":
                fields.next_byte()
        elif not fields.has_more():
            yield [*row, b""]


class _Fields:
    """Fields one after the other. Between them is the byte that ended the last: a comma or a line break."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._take_block()
        self._at = len(_BYTE_ORDER_MARK) * self._data.startswith(_BYTE_ORDER_MARK)
        self.was_quoted = False

    def _take_block(self) -> None:
        self._data: bytes = self._stream.read(_BLOCK)
        self._at, self._line_feed = 0, -1  # the next line feed; -1: not looked for yet

    def peek(self) -> bytes:
        """The next byte; none at the end of the stream."""
        if self._at == len(self._data):
            self._take_block()
        return self._data[self._at : self._at + 1]

    def has_more(self) -> bool:
        return bool(self.peek())

    def next_byte(self) -> bytes:
        """The next byte, which is taken."""
        byte = self.peek()
        self._at += len(byte)
        return byte

    def plain_row(self) -> list[bytes] | None:
        """The fields up to a line break; None if they have quotes, or it may not be whole in this block."""
        data, begin = self._data, self._at
        if self._line_feed < begin:  # carriage returns may end many rows before it
            found = data.find(b"\n", begin)
            self._line_feed = len(data) if found < 0 else found
        end = data.find(b"\r", begin, self._line_feed)
        after = self._line_feed + 1 if end in (-1, self._line_feed - 1) else end + 1
        end = self._line_feed if end < 0 else end
        if after > len(data) or data.find(b'"', begin, end) >= 0:
            return None
        self._at = after
        return data[begin:end].split(b",")

    def next(self) -> bytes:
        """The next field, up to the byte that ends it."""
        self.was_quoted = self.peek() == b'"'
        if not self.was_quoted and (end := _END.search(self._data, self._at)):
            field, self._at = self._data[self._at : end.start()], end.start()
            return field
        text = io.BytesIO()
        if self.was_quoted:
            self._at += 1
            self._take_quoted(text)
        self._take_plain(text)
        return text.getvalue()

    def _take_plain(self, text: io.BytesIO) -> None:
        while self.peek():
            match = _END.search(self._data, self._at)
            end = match.start() if match else len(self._data)
            text.write(memoryview(self._data)[self._at : end])
            self._at = end
            if match:
                return

    def _take_quoted(self, text: io.BytesIO) -> None:
        """What is in quotes, and the closing one."""
        while self.peek():
            data, end = self._data, self._at
            while (end := data.find(b'"', end)) >= 0 and data[end + 1 : end + 2] == b'"':
                end += 2
            text.write(data[self._at : end if end >= 0 else len(data)].replace(b'""', b'"'))
            if 0 <= end < len(data) - 1:
                self._at = end + 1
                return
            self._take_block()
            if end >= 0:  # a quote ends the block: the next byte says whether it is one of two
                if not self._data:
                    return
                self._data = b'"' + self._data
        text.seek(0)
        begin = printable(text.read(40).decode("utf-8", "ignore"))  # the last character may be cut
        raise CorpusError(f"a quoted field is never closed; it begins with {begin}")
