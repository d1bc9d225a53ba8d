"""Backslash escapes, as llama.cpp's commands read them in a prompt."""

from __future__ import annotations

import re
from typing import IO

_ESCAPE = rb"(?s)\\(?:x([0-9a-fA-F]{2}|[ \t-\r+-][0-9a-fA-F])|(.))"
_LONGEST_ESCAPE = 4  # bytes
_ESCAPED = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"'": b"'", b'"': b'"', b"\\": b"\\"}


def process_escapes(text: bytes) -> bytes:
    r"""`text` with its escape sequences replaced; those that mean nothing stay as they are.

    The two characters after `\x` are read as C's strtol reads them: " 5" and "-5" are numbers, too.
    Source: common/common.cpp, string_process_escapes.

    >>> process_escapes(rb"a\n\x41\q\x4")
    b'a\nA\\q\\x4'
    """

    return _processed(text)[0]


def _processed(text: bytes) -> tuple[bytes, int]:
    """`text` with its escape sequences replaced, and how many there were."""
    number = 0

    def replacement(match: re.Match[bytes]) -> bytes:
        nonlocal number
        number += match[1] is not None or match[2] in _ESCAPED
        if match[1] is not None:
            return bytes([int(match[1], 16) & 0xFF])
        return _ESCAPED.get(match[2], match[0])

    return (re.sub(_ESCAPE, replacement, text) if b"\\" in text else text), number


class Unescaped:
    """A binary stream with its escape sequences replaced, as `process_escapes` replaces them in the whole."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._rest = b""  # may be the beginning of an escape sequence
        self._is_end = False
        self.processed = 0  # escape sequences that were replaced so far

    def read(self, size: int) -> bytes:
        """Some bytes, about `size` of them; none at the end."""
        while not self._is_end:
            block = self._stream.read(size)
            self._is_end = not block
            data, self._rest = self._rest + block, b""
            if block:
                end = _end_of_whole_escapes(data)
                data, self._rest = data[:end], data[end:]
            if data:
                data, number = _processed(data)
                self.processed += number
                return data
        return b""


def _end_of_whole_escapes(data: bytes) -> int:
    """How many of the bytes mean the same, whatever follows."""
    if b"\\" not in data[-_LONGEST_ESCAPE:]:
        return len(data)
    for match in re.finditer(_ESCAPE, data):
        if match.start() > len(data) - _LONGEST_ESCAPE:
            return match.start()
    return len(data) - data.endswith(b"\\")  # a backslash at the very end may still begin a sequence
