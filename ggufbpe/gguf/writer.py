"""Writes keys and values as the bytes of a GGUF. No other module does.

Tensors are not written here; edit.py copies them from the file that it changes.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, cast

from ..native.lazy_strings import LazyStrings
from .constants import GGUF_MAGIC, GGUFValueType
from .value_types import SCALARS, Field

_VERSION = 3
_T = GGUFValueType


class Packer:
    """Packs the parts of a file in its byte order, "little" or "big". Types may be those of the `gguf` package, too.

    >>> Packer().key("a.b", Field(GGUFValueType.BOOL, True))
    b'\\x03\\x00\\x00\\x00\\x00\\x00\\x00\\x00a.b\\x07\\x00\\x00\\x00\\x01'
    """

    def __init__(self, byteorder: str = "little", version: int = _VERSION) -> None:
        self.byteorder, self.version = byteorder, version
        self._order = "<" if byteorder == "little" else ">"
        self._length = struct.Struct(self._order + ("I" if version == 1 else "Q"))

    def header(self, key_count: int, tensor_count: int = 0) -> bytes:
        """The header, which comes before the first key."""
        version = self.number(_T.UINT32, self.version)
        return GGUF_MAGIC + version + self.length(tensor_count) + self.length(key_count)

    def key(self, key: str, field: Field) -> bytes:
        """A key with its type and value."""
        return self.string(key) + self.number(_T.UINT32, field.type) + self.value(field)

    def value(self, field: Field) -> bytes:
        """A value as it follows its type; an array begins with the type of its elements."""
        if field.element is None:
            return self._scalar(field.type, field.value)
        items = cast("Sequence[Any]", field.value)
        return self.number(_T.UINT32, field.element) + self.length(len(items)) + self._items(field, items)

    def length(self, number: int) -> bytes:
        """A length or count: 32 bits wide in version 1, 64 later."""
        return self._length.pack(number)

    def string(self, text: str | bytes) -> bytes:
        """A length and the bytes."""
        data = text if isinstance(text, bytes) else text.encode()
        return self.length(len(data)) + data

    def number(self, value_type: GGUFValueType, value: Any) -> bytes:
        """One number or truth value. `struct.error` or `OverflowError` if it does not fit the type."""
        return struct.pack(self._order + SCALARS[value_type][0], value)

    def _scalar(self, value_type: GGUFValueType, value: Any) -> bytes:
        return self.string(value) if value_type == _T.STRING else self.number(value_type, value)

    def _items(self, field: Field, items: Sequence[Any]) -> bytes:
        assert field.element is not None
        if isinstance(items, array):
            numbers = items[:] if self.byteorder != sys.byteorder else items
            if numbers is not items:
                numbers.byteswap()
            return numbers.tobytes()
        if field.element != _T.STRING:
            return struct.pack(f"{self._order}{len(items)}{SCALARS[field.element][0]}", *items)
        if isinstance(items, LazyStrings) and self._length.format == "<Q":
            return items.packed()
        texts = [item if isinstance(item, bytes) else item.encode() for item in items]
        return b"".join(chain.from_iterable(zip(map(self._length.pack, map(len, texts)), texts)))


def packed_file(fields: Mapping[str, Field]) -> bytes:
    """A GGUF of these keys, in their order, without tensors."""
    pack = Packer()
    return b"".join([pack.header(len(fields)), *(pack.key(key, field) for key, field in fields.items())])
