"""GGUF bytes written by hand, so that they can be wrong in every way.

The `gguf` package writes version 3 only, and nothing unsound. `Section` has any version and byte order,
remembers where each part of a key lies, and takes numbers that lie. `TINY_VOCABULARY` is a complete byte
pair vocabulary of 20 tokens, small enough that a file with it can be read in a hex viewer.

Used by make_malformed.py and make_gguf_variants.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ggufbpe.gguf.constants import GGUFValueType, TokenType
from ggufbpe.gguf.value_types import Field
from ggufbpe.gguf.writer import Packer

T = GGUFValueType
Scalar = int | float | bool | str | bytes


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
        self.pack = Packer(byteorder, version)
        self.places: dict[str, Place] = {}
        self.count = 0
        self._body = bytearray()

    @property
    def end(self) -> int:
        """Offset of the first byte after what is there so far."""
        return len(self.pack.header(0)) + len(self._body)

    def add(self, key: str | bytes, field: Field) -> Section:
        """Append a sound key and value."""
        return self.add_raw(key, field.type, self.pack.value(field))

    def add_raw(self, key: str | bytes, type_number: int, value: bytes) -> Section:
        """Append a key with any type number and any bytes for its value."""
        name = key if isinstance(key, str) else key.decode("utf-8", "replace")
        start = self.end
        self._body += self.pack.string(key)
        type_at = self.end
        self._body += self.pack.number(T.UINT32, type_number & 0xFFFFFFFF) + value
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
        header = self.pack.header(self.count if key_count is None else key_count, tensor_count)
        if version is not None:
            header = header[:4] + version + header[8:]
        return header + bytes(self._body) + tail


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
