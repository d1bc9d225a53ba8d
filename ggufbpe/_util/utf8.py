"""Bytes to code points as llama.cpp reads them, and the way back to byte offsets.

src/unicode.cpp: unicode_cpts_from_utf8. Each byte that cannot be decoded becomes U+FFFD. Surrogates are decoded, which
Python's UTF-8 refuses. Builds before b11739 also decode overlong forms (`strict=False`), and stop with an exception
above U+10FFFF; such a sequence counts as undecodable here.
"""

from __future__ import annotations

import codecs
import re
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from functools import partial

_ERRORS, _LENIENT_ERRORS = "ggufbpe.llama.cpp", "ggufbpe.llama.cpp.b11549"
_LEAST = (0, 0, 0x80, 0x800, 0x10000)  # the first code point that needs so many bytes


def decode(data: bytes, strict: bool = True) -> str:
    """`data` as text; surrogates in it stay as such. Unless `strict`, overlong forms are decoded.

    >>> decode(b"a\\xffb"), decode(b"\\xc1\\x81"), decode(b"\\xc1\\x81", strict=False)
    ('a\\ufffdb', '\\ufffd\\ufffd', 'A')
    """
    return data.decode("utf-8", _ERRORS if strict else _LENIENT_ERRORS)


def to_bytes(text: str | bytes | bytearray | memoryview) -> bytes:
    """Return the UTF-8 of a `str`, or bytes as they are.

    `TypeError` for anything else, `ValueError` for a `str` with a lone surrogate.
    """
    if isinstance(text, str):
        try:
            return text.encode()
        except UnicodeEncodeError as error:
            raise lone_surrogate(text, error.start) from None
    if not isinstance(text, (bytes, bytearray, memoryview)):
        raise not_a_text(text)
    return bytes(text)


def text_fields(name: str, data: bytes) -> dict[str, str]:
    r"""Return bytes as text, and also in hexadecimal as `…_bytes` if they are not UTF-8.

    >>> text_fields("text", b"a\xff")
    {'text': 'a�', 'text_bytes': '61ff'}
    """
    text = data.decode("utf-8", "replace")
    return {name: text} if text.encode() == data else {name: text, f"{name}_bytes": data.hex()}


def not_a_text(text: object) -> TypeError:
    """Return the error of an argument that is neither a `str` nor bytes; of a list, it names what takes one."""
    batch = "; the methods that end in _batch take several texts" if isinstance(text, (list, tuple)) else ""
    return TypeError(f"text must be str or bytes, not {type(text).__name__}{batch}")


def lone_surrogate(text: str, at: int) -> ValueError:
    """Return the error of a text that UTF-8 cannot write because of the surrogate at the character `at`."""
    return ValueError(
        f"the text has a lone surrogate, U+{ord(text[at]):04X}, at character {at}, which "
        "UTF-8 cannot write; give bytes, or encode with errors='replace' first"
    )


def has_utf8(text: str) -> bool:
    """Check that UTF-8 can write `text`: that no character of it is a lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def without_surrogates(text: str) -> str:
    """`text` with U+FFFD for each lone surrogate, so that UTF-8 can write it."""
    if has_utf8(text):
        return text
    return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)


def original_bytes(text: str) -> bytes:
    r"""The bytes that `text` was made from, with invalid bytes as they were (surrogateescape).

    Lone surrogates of any other kind are characters of the text itself, of three bytes.

    >>> original_bytes("a\udcff"), original_bytes("\udcff\ud800")
    (b'a\xff', b'\xff\xed\xa0\x80')
    """
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        data = text.encode("utf-8", "surrogatepass")
        return re.sub(rb"\xed[\xb2\xb3].", _escaped_byte, data, flags=re.DOTALL)


def _escaped_byte(surrogate: re.Match[bytes]) -> bytes:
    return surrogate[0].decode("utf-8", "surrogatepass").encode("utf-8", "surrogateescape")


def is_utf8(data: bytes) -> bool:
    """Whether bytes are UTF-8 as the standard has it."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def undecodable(data: bytes, text: str) -> int:
    """How many bytes of `data`, which `decode` made `text` of, are not UTF-8.

    >>> undecodable(b"a\\xff\\xfe", decode(b"a\\xff\\xfe"))
    2
    """
    return text.count("\ufffd") - data.count("\ufffd".encode()) if "\ufffd" in text else 0


def char_ends(source: str | bytes, strict: bool = True) -> list[int]:
    """Where each character ends, in bytes: of the UTF-8 of a text, or of bytes as `decode` reads them."""
    ends: list[int] = []
    end = 0
    if isinstance(source, bytes) and not is_utf8(source):
        while end < len(source):
            _, end = code_point_at(source, end, strict)
            ends.append(end)
        return ends
    for char in source.decode() if isinstance(source, bytes) else source:
        end += 1 if char < "\x80" else 2 if char < "\u0800" else 3 if char < "\U00010000" else 4
        ends.append(end)
    return ends


def characters_at(source: str | bytes, strict: bool = True) -> array[int]:
    """The number of the character that each byte belongs to, and at the end how many there are.

    >>> list(characters_at("aé"))
    [0, 1, 1, 2]
    """
    ends = char_ends(source, strict)
    numbers = array("q")
    for number, (start, end) in enumerate(zip([0, *ends], ends)):
        numbers.extend((number,) * (end - start))
    numbers.append(len(ends))
    return numbers


def in_characters(
    source: str | bytes, spans: Sequence[tuple[int, int]], strict: bool = True
) -> Sequence[tuple[int, int]]:
    """Spans in bytes as spans in characters; one that has a part of a character has all of it.

    >>> in_characters("aé", [(0, 1), (1, 2), (2, 3), (3, 3)])
    [(0, 1), (1, 2), (1, 2), (2, 2)]
    """
    if source.isascii():
        return spans
    at = characters_at(source, strict)
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
        self._set([0, *char_ends(piece)], bounds)

    @classmethod
    def of_parts(cls, own: list[int], bounds: list[int]) -> Offsets:
        """Offsets for parts of several characters: `own` is where each begins in the piece, then the piece's end."""
        made = cls.__new__(cls)
        made._set(own, bounds)
        return made

    def _set(self, own: list[int], bounds: list[int]) -> None:
        self._own = own
        self._bounds = bounds
        self._same = all(a - b == bounds[0] for a, b in zip(bounds, own))

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


def code_point_at(data: bytes, position: int, strict: bool) -> tuple[int, int]:
    """The code point at `position`, and where the next one begins; U+FFFD for a byte that cannot be decoded."""
    code_point, length = _form_at(data, position)
    if not length or code_point > 0x10FFFF or (strict and code_point < _LEAST[length]):
        return 0xFFFD, position + 1
    return code_point, position + length


def character_length(data: bytes, position: int, strict: bool) -> int:
    """How many bytes the character at `position` takes; 0 if there is none.

    Unless `strict`, code points above U+10FFFF are characters, too (src/unicode.cpp: unicode_cpt_from_utf8).
    """
    code_point, length = _form_at(data, position)
    return 0 if strict and (code_point > 0x10FFFF or code_point < _LEAST[length]) else length


def _form_at(data: bytes, position: int) -> tuple[int, int]:
    """The code point that a lead byte and those after it write, in whatever form, and their number; 0 of it if none."""
    lead = data[position]
    if lead < 0x80:
        return lead, 1
    length = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    following = data[position + 1 : position + length]
    if lead < 0xC0 or lead >= 0xF8 or len(following) < length - 1:
        return 0, 0
    code_point = lead & (0x7F >> length)
    for byte in following:
        if byte & 0xC0 != 0x80:
            return 0, 0
        code_point = code_point << 6 | byte & 0x3F
    return code_point, length


def _handle(error: UnicodeError, strict: bool = True) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    code_point, position = code_point_at(error.object, error.start, strict)
    return chr(code_point), position


codecs.register_error(_ERRORS, _handle)
codecs.register_error(_LENIENT_ERRORS, partial(_handle, strict=False))
