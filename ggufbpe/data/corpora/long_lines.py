"""Extracts the text of a very long line of JSON, in little more memory than the line and the text.

A JSON parser returns a `str`, of up to four bytes a character. This module gives the parser the line with short
strings in place of its long ones, and then the wanted string in pieces.
"""

from __future__ import annotations

import io
import json
import re
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from ..._util.utf8 import original_bytes
from .records import decoded_line, fields_of

LONG_LINE = 1 << 24  # bytes; it is worth it from here on
_LONG = 1 << 20  # bytes of a string
_PIECE = 1 << 20  # bytes that are parsed at a time
_ESCAPE = 6  # bytes of \uXXXX
_PAIR = re.compile(rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]")


def text_of_long_line(line: bytes, column: str) -> bytes | None:
    """The text in a field of a line of JSON; None if there is none, or the line is not JSON."""
    fields = fields_of_long_line(line, [column])
    return fields[0] if fields is not None and isinstance(fields[0], bytes) else None


def fields_of_long_line(line: bytes, columns: Sequence[str]) -> list[Any] | None:
    """The values of fields of a line of JSON, texts as bytes; None if it is not JSON, or for a list or an object."""
    mark = uuid.uuid4().hex  # which no other string has
    spans = dict(enumerate(_long_strings(line)))
    parts, at = [], 0
    for number, (begin, end) in spans.items():
        parts += [line[at:begin], b"%s %d" % (mark.encode(), number)]
        at = end
    parts.append(line[at:])
    try:
        fields = fields_of(decoded_line(b"".join(parts)))
        values = [fields.get(column) for column in columns]
        if any(isinstance(value, (list, dict)) for value in values):
            return None
        found: list[Any] = []
        for value in values:
            if isinstance(value, str) and value.startswith(mark):
                found.append(_unescaped(line, *spans[int(value[len(mark) :])]))
            else:
                found.append(original_bytes(value) if isinstance(value, str) else value)
        wanted = {value for value in values if isinstance(value, str)}
        for number, span in spans.items():
            if f"{mark} {number}" not in wanted:
                _unescaped(line, *span)  # or it is no JSON
        return found
    except ValueError:
        return None


def _long_strings(line: bytes) -> Iterator[tuple[int, int]]:
    """Where long strings begin and end, without their quotes."""
    at = 0
    while begin := line.find(b'"', at) + 1:
        end = _closing_quote(line, begin)
        if end < 0:
            return
        if end - begin >= _LONG:
            yield begin, end
        at = end + 1


def _closing_quote(line: bytes, at: int) -> int:
    while (end := line.find(b'"', at)) >= 0:
        if not _backslashes(line, end, at) % 2:
            return end
        at = end + 1
    return -1


def _backslashes(line: bytes, end: int, begin: int) -> int:
    """How many there are in a row before `end`."""
    count = 0
    while end - count > begin and line[end - count - 1] == 0x5C:
        count += 1
    return count


def _unescaped(line: bytes, begin: int, end: int) -> bytes:
    text = io.BytesIO()
    while begin < end:
        stop = _cut(line, begin, min(begin + _PIECE, end)) if begin + _PIECE < end else end
        piece = decoded_line(line[begin:stop])
        text.write(original_bytes(json.loads(f'"{piece}"')))
        begin = stop
    return text.getvalue()


def _cut(line: bytes, begin: int, end: int) -> int:
    """A place near `end`, not in a character, an escape or a pair of surrogates."""
    slash = line.rfind(b"\\", begin, end)
    if slash >= 0 and slash + _ESCAPE >= end:
        if not _backslashes(line, slash + 1, begin) % 2:
            return slash + 1
        high = slash - _ESCAPE
        is_pair = _PAIR.match(line, high) and _backslashes(line, high + 1, begin) % 2
        return high if is_pair else slash
    for _ in range(3):  # the most bytes of a character that are not its first
        end -= line[end] & 0xC0 == 0x80
    return end
