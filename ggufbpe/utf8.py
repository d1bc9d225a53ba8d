"""Bytes to code points as llama.cpp reads them, and the way back to byte offsets.

src/unicode.cpp: unicode_cpts_from_utf8. Each byte that cannot be decoded becomes U+FFFD. Overlong forms and
surrogates are decoded, which Python's UTF-8 refuses. Above U+10FFFF llama.cpp stops with an exception; such a
sequence counts as undecodable here.
"""

from __future__ import annotations

import codecs

_ERRORS = "ggufbpe.llama.cpp"


def decode(data: bytes) -> str:
    """`data` as text; surrogates in it stay as such.

    >>> decode(b"a\\xffb"), decode(b"\\xc1\\x81")
    ('a\\ufffdb', 'A')
    """
    return data.decode("utf-8", _ERRORS)


def char_ends(data: bytes) -> list[int]:
    """For each character of `decode(data)`, where its bytes end in `data`."""
    ends: list[int] = []
    position = 0
    while position < len(data):
        _, position = _code_point(data, position)
        ends.append(position)
    return ends


def _code_point(data: bytes, position: int) -> tuple[int, int]:
    """The code point at `position`, and where the next one begins."""
    lead = data[position]
    if lead < 0x80:
        return lead, position + 1
    length = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    following = data[position + 1 : position + length]
    if 0xC0 <= lead < 0xF8 and len(following) == length - 1 and all(b & 0xC0 == 0x80 for b in following):
        code_point = lead & (0x7F >> length)
        for byte in following:
            code_point = code_point << 6 | byte & 0x3F
        if code_point <= 0x10FFFF:
            return code_point, position + length
    return 0xFFFD, position + 1


def _handle(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    code_point, position = _code_point(error.object, error.start)
    return chr(code_point), position


codecs.register_error(_ERRORS, _handle)
