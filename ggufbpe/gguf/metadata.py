"""The metadata that a vocabulary is made from, kept apart from its file so that it can be pickled and overridden.

Loading reads this instead of the file. The values read are kept, and nothing else of the file, so the keys that make
the tokenizer are known without a list of them. Strings are shared with the vocabulary, not copied.

models/ checks which values a key may have, for files and overrides alike.
"""

# No `from __future__ import annotations`: `typing` would compile each annotation of a NamedTuple at every import.

import struct
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from .._util.errors import printable
from .._util.utf8 import has_utf8
from ..native.lazy_strings import LazyStrings, lazy_strings, shared_strings
from .constants import GGUFValueType, TokenizerKey
from .reader import GGUFFile
from .schema import KEY_TYPES
from .value_types import Field, Value, numbers_of

_T = GGUFValueType
_UNREAD = object()
# The types tried for an override's Python value if the key wants none that fits.
USUAL_TYPES = (_T.BOOL, _T.STRING, _T.UINT32, _T.INT32, _T.UINT64, _T.INT64, _T.FLOAT32)

Overrides = Mapping[str, Value | None]


class _Entry(NamedTuple):
    type: GGUFValueType
    element: GGUFValueType | None  # of an array
    length: int  # elements of an array
    value: Any  # a number or str; an array; LazyStrings or a list of str; or _UNREAD


class Metadata:
    """Keys and values of a `GGUFFile`, with `overrides` in place of some; None removes a key.

    Made of other metadata, it shares all that these have read; their strings are not decoded again.

    `TypeError` for a value that no GGUF can hold, `ValueError` for a key that no tokenizer has.
    """

    def __init__(self, source: "GGUFFile | Metadata", overrides: Overrides | None = None) -> None:
        if overrides is not None and not isinstance(overrides, Mapping):
            raise TypeError(f"overrides must be a mapping of keys to values, not {type(overrides).__name__}")
        self.path: str = source.path
        before = source.overridden if isinstance(source, Metadata) else ()
        self.overridden: frozenset[str] = frozenset([*before, *(overrides or ())])
        self._file: GGUFFile | None = source._file if isinstance(source, Metadata) else source
        self._entries: dict[str, _Entry | None] = {}
        if isinstance(source, Metadata):
            self._entries |= source._entries
        for key, value in (overrides or {}).items():
            self._entries[key] = None if value is None else _entry_of(key, value)

    def detach(self) -> None:
        """Drop the file, and all that was not read."""
        self._file = None
        self._entries = {
            key: entry for key, entry in self._entries.items() if entry and entry.value is not _UNREAD
        }

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._entry(key) is not None

    def __getitem__(self, key: str) -> Value:
        value = self._read(key)
        return list(value) if isinstance(value, (array, list, LazyStrings)) else value

    def strings(self, key: str) -> LazyStrings | None:
        """The array of strings by the compiled engine, always the same one, or None: see `GGUFFile.strings`."""
        value = self._read(key)
        return value if isinstance(value, LazyStrings) else None

    def numbers(self, key: str) -> "array[int] | array[float]":
        """The array of numbers `key`, which must not be changed."""
        value: array[int] | array[float] = self._read(key)
        return value

    def kind(self, key: str) -> tuple[int, int, int] | None:
        """The types of a value and of its elements, -1 if it is no array, and their number; None without the key."""
        entry = self._entry(key)
        return entry and (entry.type, -1 if entry.element is None else entry.element, entry.length)

    def value_type(self, key: str) -> GGUFValueType:
        """The type of the value."""
        return self._known(key).type

    def element_type(self, key: str) -> GGUFValueType | None:
        """The type of an array's elements; None if the value is not an array."""
        return self._known(key).element

    def array_length(self, key: str) -> int:
        """The number of an array's elements; 0 if the value is not an array."""
        return self._known(key).length

    def offset(self, key: str) -> int | None:
        """Where the value begins in the file; None for an override, or without the file."""
        return None if self._file is None or key in self.overridden else self._file.offset(key)

    def element_offset(self, key: str, index: int) -> int | None:
        """Where element `index` of an array begins, likewise."""
        if self._file is None or key in self.overridden:
            return None
        return self._file.element_offset(key, index)

    def to_bytes(self) -> bytes:
        """A GGUF of these keys, sorted by name: the same bytes wherever the same values come from."""
        from .writer import packed_file

        entries = sorted((key, entry) for key, entry in self._entries.items() if entry is not None)
        return packed_file({key: Field(entry.type, entry.value, entry.element) for key, entry in entries})

    def _entry(self, key: str) -> _Entry | None:
        if key not in self._entries and self._file is not None:
            entry = None
            if key in self._file:
                kind = self._file.value_type(key), self._file.element_type(key)
                entry = _Entry(*kind, self._file.array_length(key), _UNREAD)
            self._entries[key] = entry
        return self._entries.get(key)

    def _known(self, key: str) -> _Entry:
        entry = self._entry(key)
        if entry is None:
            raise KeyError(key)
        return entry

    def _read(self, key: str) -> Any:
        entry = self._known(key)
        if entry.value is _UNREAD and self._file is not None:
            entry = entry._replace(value=_value(self._file, key))
            self._entries[key] = entry
        return entry.value


def _value(file: GGUFFile, key: str) -> Any:
    if file.element_type(key) is None:
        return file[key]
    if file.element_type(key) is not _T.STRING:
        return file.numbers(key)
    texts = file.strings(key)
    return file[key] if texts is None else shared_strings(texts)


# ---- overrides ------------------------------------------------------------------------------------------


def _entry_of(key: str, value: Value) -> _Entry:
    """`value` with the type that `key` has in llama.cpp if it fits; else with another, for loading to refuse."""
    if not isinstance(key, str):
        raise TypeError(f"the keys of overrides must be str, not {type(key).__name__}")
    if key not in KEY_TYPES and not key.startswith(("general.", f"{TokenizerKey.CHAT_TEMPLATE}.")):
        import difflib

        near = difflib.get_close_matches(key, KEY_TYPES, n=2)
        hint = f"; near: {', '.join(near)}" if near else ""
        raise ValueError(f"there is no tokenizer key {printable(key)} to override{hint}")
    value = value.tolist() if hasattr(value, "tolist") else value  # of numpy
    wanted = KEY_TYPES.get(key, _T.STRING)
    types = (*(wanted if isinstance(wanted, tuple) else (wanted,)), *USUAL_TYPES)
    is_array = isinstance(value, Sequence) and not isinstance(value, (str, bytes))
    items: Sequence[Any] = cast("Sequence[Any]", value) if is_array else [value]
    fitting = next((each for each in types if _all_fit(each, items)), None)
    if fitting is not None and not is_array:
        return _Entry(fitting, None, 0, value)
    if fitting is _T.STRING:
        texts = list(items)
        kept = texts if any("\0" in text for text in texts) else lazy_strings(texts)
        return _Entry(_T.ARRAY, fitting, len(items), kept)
    if fitting is not None:
        return _Entry(_T.ARRAY, fitting, len(items), numbers_of(fitting, items))
    raise TypeError(f"{key} cannot be {printable(repr(value))}: a GGUF cannot hold it")


def _all_fit(value_type: GGUFValueType, values: Sequence[Any]) -> bool:
    """Return whether each value can be of `value_type`; integers and texts are not tried one by one."""
    kinds = set(map(type, values))
    if kinds == {int}:
        return fits(value_type, min(values)) and fits(value_type, max(values))
    if kinds == {str}:
        return fits(value_type, "".join(values))
    return all(fits(value_type, value) for value in values)


def fits(value_type: GGUFValueType, value: Any) -> bool:
    """Whether a value of `value_type` can be `value`, in kind and range."""
    from .writer import Packer

    if value_type is _T.STRING:
        return isinstance(value, str) and has_utf8(value)
    if value_type is _T.BOOL:
        return isinstance(value, bool)
    kind = float if value_type in (_T.FLOAT32, _T.FLOAT64) else int
    if not isinstance(value, kind) or isinstance(value, bool):
        return False
    try:
        Packer().number(value_type, value)
    except (struct.error, OverflowError):
        return False
    return True
