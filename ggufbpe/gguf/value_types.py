"""The `struct` format and size in bytes of each GGUF value type, for reader and writer."""

# No `from __future__ import annotations`: `typing` would compile each annotation of a NamedTuple at every import.

from array import array
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from .constants import GGUFValueType

Value = int | float | bool | str | list[int] | list[float] | list[bool] | list[str]

_T = GGUFValueType
SCALARS = {  # value type: (format of `struct` and `array`, size in bytes)
    _T.UINT8: ("B", 1),
    _T.INT8: ("b", 1),
    _T.UINT16: ("H", 2),
    _T.INT16: ("h", 2),
    _T.UINT32: ("I", 4),
    _T.INT32: ("i", 4),
    _T.FLOAT32: ("f", 4),
    _T.BOOL: ("B", 1),
    _T.UINT64: ("Q", 8),
    _T.INT64: ("q", 8),
    _T.FLOAT64: ("d", 8),
}


class Field(NamedTuple):
    """One metadata value: its `type`, the `value`, and for an array the type of each `element`."""

    type: GGUFValueType
    value: int | float | bool | str | bytes | Sequence[Any]
    element: GGUFValueType | None = None


def numbers_of(value_type: GGUFValueType, values: Iterable[Any]) -> "array[Any]":
    """An array of `values` whose items are as large as in a GGUF."""
    code = SCALARS[value_type][0]
    return array(code if code not in "Ii" or array("i").itemsize == 4 else "Ll"[code == "i"], values)
