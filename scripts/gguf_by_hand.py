"""GGUF bytes written by hand, so that they can be wrong in every way.

The `gguf` package writes version 3 only, and nothing unsound. `Section` packs any version and byte order,
remembers where each part of a key lies, and takes numbers that lie. `TINY_VOCABULARY` is a complete byte
pair vocabulary of 20 tokens, small enough that a file with it can be read in a hex viewer.

Used by make_malformed.py and make_gguf_variants.py.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gguf import GGUFValueType, TokenType

T = GGUFValueType
Scalar = int | float | bool | str | bytes
Numbers = int | float

FORMATS = {
    T.UINT8: "B",
    T.INT8: "b",
    T.UINT16: "H",
    T.INT16: "h",
    T.UINT32: "I",
    T.INT32: "i",
    T.FLOAT32: "f",
    T.BOOL: "?",
    T.UINT64: "Q",
    T.INT64: "q",
    T.FLOAT64: "d",
}


class Field(NamedTuple):
    """One metadata value: its type, what it holds, and for an array the type of the elements."""

    type: GGUFValueType
    value: Scalar | Sequence[Scalar]
    element: GGUFValueType | None = None


def array_of(element: GGUFValueType, value: Sequence[Scalar]) -> Field:
    """An array field.

    >>> array_of(T.INT32, [1, 2]).type.name
    'ARRAY'
    """
    return Field(T.ARRAY, value, element)


class Place(NamedTuple):
    """Where the parts of one key lie, in bytes from the start of the file."""

    start: int  # the length of the key
    type: int  # the value type
    value: int  # the value; of an array, its element type
    end: int


class Section:
    """A key/value section under construction, and the whole file around it."""

    def __init__(self, version: int = 3, byteorder: str = "little") -> None:
        self.version = version
        self.order = "<" if byteorder == "little" else ">"
        self.length_format = "I" if version == 1 else "Q"
        self.places: dict[str, Place] = {}
        self.count = 0
        self._body = bytearray()

    @property
    def end(self) -> int:
        """Offset of the first byte after what is there so far."""
        return 8 + 2 * struct.calcsize(self.length_format) + len(self._body)

    def pack(self, format: str, number: Scalar) -> bytes:
        """One number in the file's byte order."""
        return struct.pack(self.order + format, number)

    def length(self, number: int) -> bytes:
        """A length or count: 32 bits wide in version 1, 64 later."""
        return self.pack(self.length_format, number)

    def string(self, text: str | bytes) -> bytes:
        """A length and the bytes."""
        data = text if isinstance(text, bytes) else text.encode("utf-8")
        return self.length(len(data)) + data

    def scalar(self, type: GGUFValueType, value: Scalar) -> bytes:
        """One value that is not an array."""
        if type is T.STRING:
            assert isinstance(value, str | bytes)
            return self.string(value)
        return self.pack(FORMATS[type], value)

    def value(self, field: Field) -> bytes:
        """The value as it stands after its type."""
        if field.element is None:
            assert isinstance(field.value, Scalar)
            return self.scalar(field.type, field.value)
        assert isinstance(field.value, list | tuple)
        elements = b"".join(self.scalar(field.element, item) for item in field.value)
        return self.pack("I", field.element) + self.length(len(field.value)) + elements

    def add(self, key: str | bytes, field: Field) -> Section:
        """Append a sound key and value."""
        return self.add_raw(key, field.type, self.value(field))

    def add_raw(self, key: str | bytes, type_number: int, value: bytes) -> Section:
        """Append a key with any type number and any bytes for its value."""
        name = key if isinstance(key, str) else key.decode("utf-8", "replace")
        start = self.end
        self._body += self.string(key)
        type_at = self.end
        self._body += self.pack("I", type_number & 0xFFFFFFFF) + value
        self.places[name] = Place(start, type_at, type_at + 4, self.end)
        self.count += 1
        return self

    def add_bytes(self, data: bytes) -> Section:
        """Append bytes that are no whole key."""
        self._body += data
        return self

    def file(
        self,
        *,
        version: bytes | None = None,
        tensor_count: int = 0,
        key_count: int | None = None,
        tail: bytes = b"",
    ) -> bytes:
        """The whole file; a count or the version can be another than the true one."""
        head = b"GGUF" + (self.pack("I", self.version) if version is None else version)
        counts = self.length(tensor_count) + self.length(self.count if key_count is None else key_count)
        return head + counts + bytes(self._body) + tail


def section_of(fields: Mapping[str, Field], version: int = 3, byteorder: str = "little") -> Section:
    """A section with these keys."""
    section = Section(version, byteorder)
    for key, field in fields.items():
        section.add(key, field)
    return section


MODEL = "tokenizer.ggml.model"
PRE = "tokenizer.ggml.pre"
TOKENS = "tokenizer.ggml.tokens"
TOKEN_TYPE = "tokenizer.ggml.token_type"
SCORES = "tokenizer.ggml.scores"
MERGES = "tokenizer.ggml.merges"
BOS = "tokenizer.ggml.bos_token_id"
EOS = "tokenizer.ggml.eos_token_id"

# "Ġ" stands for the space and "Ċ" for the newline, as in every byte-level vocabulary.
TINY_TOKENS = [
    *("<|endoftext|>", "Ċ", "Ġ", "!", "d", "e", "h", "l", "o", "r", "w"),
    *("ll", "he", "hell", "hello", "Ġw", "or", "Ġwor", "ld", "Ġworld"),
]
TINY_MERGES = ["l l", "h e", "he ll", "hell o", "Ġ w", "o r", "Ġw or", "l d", "Ġwor ld"]

TINY_VOCABULARY: dict[str, Field] = {
    "general.architecture": Field(T.STRING, "llama"),
    "general.name": Field(T.STRING, "tiny"),
    MODEL: Field(T.STRING, "gpt2"),
    PRE: Field(T.STRING, "gpt-2"),
    TOKENS: array_of(T.STRING, TINY_TOKENS),
    TOKEN_TYPE: array_of(T.INT32, [TokenType.CONTROL] + [TokenType.NORMAL] * (len(TINY_TOKENS) - 1)),
    MERGES: array_of(T.STRING, TINY_MERGES),
    BOS: Field(T.UINT32, 0),
    EOS: Field(T.UINT32, 0),
}


def tiny_vocabulary(changes: Mapping[str, Field | None] | None = None) -> dict[str, Field]:
    """The tiny vocabulary with some keys changed or added, or left out where the change is None.

    >>> PRE in tiny_vocabulary({PRE: None})
    False
    """
    fields = {**TINY_VOCABULARY, **(changes or {})}
    return {key: field for key, field in fields.items() if field is not None}
