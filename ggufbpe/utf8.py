"""Bytes to code points as llama.cpp reads them, and the way back to byte offsets.

src/unicode.cpp: unicode_cpts_from_utf8. Each byte that cannot be decoded becomes U+FFFD. Overlong forms and
surrogates are decoded, which Python's UTF-8 refuses. Above U+10FFFF llama.cpp stops with an exception; such a
sequence counts as undecodable here.
"""

from __future__ import annotations

import codecs
from array import array
from bisect import bisect_right
from collections.abc import Sequence

_ERRORS = "ggufbpe.llama.cpp"


def decode(data: bytes) -> str:
    """`data` as text; surrogates in it stay as such.

    >>> decode(b"a\\xffb"), decode(b"\\xc1\\x81")
    ('a\\ufffdb', 'A')
    """
    return data.decode("utf-8", _ERRORS)


def undecodable(data: bytes, text: str) -> int:
    """How many bytes of `data`, which `decode` made `text` of, are not UTF-8.

    >>> undecodable(b"a\\xff\\xfe", decode(b"a\\xff\\xfe"))
    2
    """
    return text.count("\ufffd") - data.count("\ufffd".encode()) if "\ufffd" in text else 0


def char_ends(source: str | bytes) -> list[int]:
    """Where each character ends, in bytes: of the UTF-8 of a text, or of bytes as `decode` reads them."""
    ends: list[int] = []
    end = 0
    if isinstance(source, bytes):
        while end < len(source):
            _, end = _code_point(source, end)
            ends.append(end)
        return ends
    for char in source:
        end += 1 if char < "\x80" else 2 if char < "\u0800" else 3 if char < "\U00010000" else 4
        ends.append(end)
    return ends


def characters_at(source: str | bytes) -> array[int]:
    """The number of the character that each byte belongs to, and at the end how many there are.

    >>> list(characters_at("aé"))
    [0, 1, 1, 2]
    """
    ends = char_ends(source)
    found = array("q")
    for number, (start, end) in enumerate(zip([0, *ends], ends)):
        found.extend((number,) * (end - start))
    found.append(len(ends))
    return found


def in_characters(source: str | bytes, spans: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    """Spans in bytes as spans in characters; one that has a part of a character has all of it.

    >>> in_characters("aé", [(0, 1), (1, 2), (2, 3), (3, 3)])
    [(0, 1), (1, 2), (1, 2), (2, 2)]
    """
    if source.isascii():
        return spans
    at = characters_at(source)
    return [(at[start], at[end - 1] + 1 if start < end else at[start]) for start, end in spans]


def byte_length(source: str | bytes) -> int:
    """The length of bytes, or of the UTF-8 of a text."""
    if isinstance(source, bytes) or source.isascii():
        return len(source)
    return len(source.encode("utf-8", "surrogatepass"))


class Offsets:
    """Maps byte positions in a piece back to the source text."""

    def __init__(self, piece: str, bounds: list[int]) -> None:
        """`bounds`: where each character of the piece begins in the text, and where the last one ends."""
        self._own = [0, *char_ends(piece)]
        self._bounds = bounds
        self._same = all(a - b == bounds[0] for a, b in zip(bounds, self._own))

    def start(self, position: int) -> int:
        """Where what begins at `position` of the piece begins in the text."""
        return self._find(position, 0)

    def end(self, position: int) -> int:
        """Where what ends at `position` of the piece ends in the text."""
        return self._find(position, 1)

    def _find(self, position: int, side: int) -> int:
        """A position inside a character that was changed becomes its beginning or its end."""
        if self._same:
            return self._bounds[0] + position
        index = bisect_right(self._own, position) - 1
        inside = position - self._own[index]
        if not inside:
            return self._bounds[index]
        if self._own[index + 1] - self._own[index] == self._bounds[index + 1] - self._bounds[index]:
            return self._bounds[index] + inside
        return self._bounds[index + side]


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
