"""Backslash escapes, as llama.cpp's commands read them in a prompt."""

from __future__ import annotations

import re

_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{2}|[ \t-\r+-][0-9a-fA-F])|(.))", re.DOTALL)
_ESCAPED = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"'": b"'", b'"': b'"', b"\\": b"\\"}


def process_escapes(text: bytes) -> bytes:
    r"""`text` with its escape sequences replaced; those that mean nothing stay as they are.

    The two characters after `\x` are read as C's strtol reads them: " 5" and "-5" are numbers, too.
    Source: common/common.cpp, string_process_escapes.

    >>> process_escapes(rb"a\n\x41\q\x4")
    b'a\nA\\q\\x4'
    """

    def replacement(match: re.Match[bytes]) -> bytes:
        if match[1] is not None:
            return bytes([int(match[1], 16) & 0xFF])
        return _ESCAPED.get(match[2], match[0])

    return _ESCAPE.sub(replacement, text) if b"\\" in text else text
