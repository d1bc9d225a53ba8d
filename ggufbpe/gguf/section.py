"""Walks over the header and key/value section of a GGUF file and notes where each value lies.

The section is walked once, in blocks, and every length is checked against the size of the file. Nothing in the file
is trusted: each way in which it can lie has its own error, with the byte offset and the key.

Layout, in the file's byte order (ggml/src/gguf.cpp, gguf_init_from_reader):

    "GGUF", version u32, tensor count u64, key count u64, then for each key:
    key string, value type u32, value
    string: length u64, bytes;  array: element type u32, element count u64, elements

Version 1 has 32-bit lengths and counts instead. A big-endian file has the same magic bytes; its version
number, read as little-endian, has a zero lower half.
"""

# No `from __future__ import annotations`: `typing` would compile each annotation of a NamedTuple at every import.

import os
import struct
from array import array
from collections.abc import Callable, Container, Sequence
from functools import partial
from io import FileIO
from typing import NamedTuple

from .._util.errors import (
    CorruptMetadataError,
    DuplicateKeyError,
    GGUFError,
    InvalidUTF8Error,
    TruncatedFileError,
    UnsupportedVersionError,
    printable,
)
from ..native import native
from ..native.lazy_strings import LazyStrings, compiled
from ..native.table_cache import FEWEST_STRINGS, KnownArray
from .constants import GGUF_MAGIC, GGUFValueType
from .source import DOWNLOAD_AGAIN, Source, Stream, not_gguf
from .value_types import SCALARS

_T = GGUFValueType
_VALUE_TYPES = {int(value_type): value_type for value_type in GGUFValueType}
_Walk = Callable[[bytes, int, int], tuple[int, int]]  # as `native.Strings.walk`, in one layout of lengths
_PACKED = {"width": 8, "big_endian": False}  # the layout of `native.PackedStrings`
_FIRST = 512  # strings that are walked before the first look at how long they are
DAMAGED = "the file is damaged or was written by a faulty program: download it again or convert it again"


class Entry(NamedTuple):
    """Where one value lies."""

    type: GGUFValueType
    offset: int  # of the value; for arrays, of the element type
    element: GGUFValueType | None  # the element type of an array
    size: int  # elements of an array, bytes of a string
    data: int  # offset of the first element, or of the scalar
    end: int  # offset of the first byte after the value
    lengths: Sequence[int] | None  # byte lengths of the elements of an array of strings, if they are known


class Section(Source):
    """Where the values of a file lie. `GGUFFile` reads them."""

    LONGEST = 1 << 29  # bytes of a section; the largest vocabularies have 2**25

    version: int  # 1, 2 or 3
    byteorder: str  # "little" or "big"
    tensor_count: int
    metadata_end: int  # offset of the first byte after the key/value section

    def __init__(
        self,
        path: str | os.PathLike[str] | Source,
        data: bytes | Stream | None = None,
        size: int | None = None,
        taken: Container[str] = (),
    ) -> None:
        """`taken` are arrays of strings that `strings` will be asked for: they are read on the way past them."""
        super().__init__(path, data, size)
        self._entries: dict[str, Entry] = {}
        self._taken: dict[str, LazyStrings | None] = {}
        self._to_take = taken if native is not None else ()
        self._seen = self._opened
        self.metadata_end = 0  # until all keys have been walked
        try:
            self._read_section(self._read_header())
            self._check_unchanged()
        except BaseException as error:
            self._close_after(error)
            raise

    def strings(self, key: str) -> LazyStrings | None:
        """The array of strings `key` as the compiled engine keeps it, without the file.

        None if that is impossible: there is no compiled engine, or the strings have a NUL or are not UTF-8.
        """
        entry = self._checked(key)
        if native is None:
            return None
        if key not in self._taken:
            end, texts = self._take_strings(entry.data, entry.size, key)
            if end != entry.end:
                raise self._changed(entry.data)
            return texts
        return self._taken[key]

    def coming(self, key: str, count: int, done: int, data: int, position: int, sure: int) -> None:
        """Called before bytes are read that may not be here yet; hub/remote/forecast.py asks for them and what follows.

        Of the `count` elements of `key`, the first of which is at `data`, `done` lie before `position`; the last ends
        at `sure` or behind it.
        """

    # ---- the walk -------------------------------------------------------------------------------

    def _read_header(self) -> int:
        """Check magic and version, set the byte order; returns the number of keys."""
        head = self._bytes(0, min(64, self.size))
        if head[:4] != GGUF_MAGIC:
            raise not_gguf(self.path, head, self.size)
        if self.size < 8:
            raise self._truncated(4, "the version number")
        version = int.from_bytes(head[4:8], "little")
        self.byteorder = "little"
        if version & 0xFFFF == 0 and version:  # no version is that high: the byte order is reversed
            version = int.from_bytes(head[4:8], "big")
            self.byteorder = "big"
        if version not in (1, 2, 3):
            raise UnsupportedVersionError(
                f"GGUF version {version}; versions 1, 2 and 3 are known",
                path=self.path,
                offset=4,
                remedy="a newer ggufbpe may read it" if 3 < version < 100 else DAMAGED,
            )
        self.version = version
        order = "<" if self.byteorder == "little" else ">"
        self._order = order
        self._u32 = struct.Struct(order + "I")
        self._length = struct.Struct(order + ("I" if version == 1 else "Q"))
        self._layout = {"width": self._length.size, "big_endian": self.byteorder == "big"}
        self.tensor_count = self._read_length(8, "the number of tensors")
        if self.tensor_count >= 2**63:
            raise self._corrupt(8, f"claims {self.tensor_count} tensors")
        return self._read_length(8 + self._length.size, "the number of keys")

    def _read_section(self, key_count: int) -> None:
        """Walk all keys and note where their values lie."""
        width = self._length.size
        position = 8 + 2 * width
        smallest = width + 1 + 4 + 1  # a key of one letter with a value of one byte
        if key_count > (self.size - position) // smallest:
            if key_count < 2**20:  # a sane number: the rest is missing rather than the count wrong
                error: type[TruncatedFileError | CorruptMetadataError] = TruncatedFileError
            else:
                error = CorruptMetadataError
            raise error(
                f"claims {key_count} keys, but the file of {self.size} bytes cannot hold them",
                path=self.path,
                offset=8 + width,
                remedy=DOWNLOAD_AGAIN,
            )
        for index in range(key_count):
            position = self._read_entry(position, index)
        self.metadata_end = position

    def _read_entry(self, position: int, index: int) -> int:
        """Note key `index`, which begins at `position`; returns where the next one begins."""
        length = self._read_length(position, f"the length of key {index}")
        start = position + self._length.size
        if length > self.size - start:
            raise self._too_long(position, length, f"key {index}", None)
        key = self._text(start, length, None)
        if not key:
            raise self._corrupt(position, f"key {index} is empty")
        if key in self._entries:
            raise DuplicateKeyError(
                "the key occurs twice", path=self.path, offset=position, key=key, remedy=DAMAGED
            )
        entry = self._read_value(start + length, key)
        self._check_end(entry.end, position)
        self._entries[key] = entry
        return entry.end

    def _read_value(self, position: int, key: str) -> Entry:
        """The entry of `key`, whose value type is at `position`."""
        value_type = self._read_type(position, key, "value type")
        offset = position + 4
        if value_type is _T.STRING:
            length = self._read_length(offset, "the length of a string", key)
            start = offset + self._length.size
            if length > self.size - start:
                raise self._too_long(offset, length, "a string", key)
            self._check_end(start + length, offset)
            self.coming(key, 1, 1, start, start + length, start + length)
            return Entry(value_type, offset, None, length, start, start + length, None)
        if value_type is not _T.ARRAY:
            end = offset + SCALARS[value_type][1]
            if end > self.size:
                raise self._truncated(offset, "a value", key)
            return Entry(value_type, offset, None, 1, offset, end, None)
        element = self._read_type(offset, key, "array element type")
        if element is _T.ARRAY:
            raise self._corrupt(offset, "an array of arrays, which GGUF readers refuse", key)
        count = self._read_length(offset + 4, "the number of elements", key)
        data = offset + 4 + self._length.size
        size = self._length.size if element is _T.STRING else SCALARS[element][1]
        if count > (self.size - data) // size:
            raise self._too_long(offset + 4, count, f"an array of {element.name}", key, unit="element")
        self._check_end(data + count * size, offset + 4)
        if element is not _T.STRING:
            end = data + count * size
            self.coming(key, count, count, data, end, end)
            return Entry(value_type, offset, element, count, data, end, None)
        lengths = None
        if key in self._to_take:
            end, self._taken[key] = self._take_strings(data, count, key)
        elif native is not None:
            end = self._walk_strings(
                data, count, key, partial(native.Strings.walk, **self._layout), skips=True
            )
        else:
            lengths = array("Q")
            end = self._walk_strings(data, count, key, partial(self._note_lengths, lengths))
        return Entry(value_type, offset, element, count, data, end, lengths)

    def _take_strings(self, position: int, count: int, key: str) -> tuple[int, LazyStrings | None]:
        """Return where `count` strings from `position` on end, and what `strings` gives of them."""
        known = None
        if isinstance(self._file, FileIO) and count >= FEWEST_STRINGS and self._layout == _PACKED:
            known = KnownArray(self.path, key, count)
            size, texts = known.read(self._file.fileno(), position, self.size)
            if texts is not None:
                self._check_end(position + size, position)
                return position + size, texts
        scanner = compiled().Scanner(count)
        end = self._walk_strings(position, count, key, partial(scanner.add, **self._layout))
        if (strings := scanner.take()) is None:
            return end, None
        texts = LazyStrings(strings)
        texts.unknown_as = known
        return end, texts

    def _walk_strings(self, position: int, count: int, key: str, walk: _Walk, skips: bool = False) -> int:
        """Return where `count` strings from `position` on end, all of which `walk` has seen.

        If it `skips`, it does not see those that are longer than a block, which are then not read.
        """
        width = self._length.size
        left, data = count, position
        while left:
            length = self._read_length(position, f"the length of string {count - left}", key)
            if length > self.size - position - width:
                raise self._too_long(position, length, f"string {count - left}", key)
            self._check_end(position, position)
            if left < count:
                self.coming(key, count, count - left, data, position, position + left * width + length)
            if skips and width + length > self.BLOCK:
                done, position = 1, position + width + length
            else:
                self._bytes(position, width + length)  # so that at least this one is in the window
                start = self._window_start
                done, end = walk(self._window, position - start, min(left, max(count - left, _FIRST)))
                position = start + end
            left -= done
        return position

    def _note_lengths(
        self, lengths: "array[int]", data: bytes | memoryview, position: int, count: int
    ) -> tuple[int, int]:
        """How many of `count` strings from `position` on lie wholly in `data`, and where the last of them ends."""
        note = lengths.append
        unpack, width, end = self._length.unpack_from, self._length.size, len(data)
        for index in range(count):
            if position + width > end:
                return index, position
            (length,) = unpack(data, position)
            if length > end - position - width:
                return index, position
            position += width + length
            note(length)
        return count, position

    # ---- a file that changes --------------------------------------------------------------------

    def _checked(self, key: str) -> Entry:
        """The entry of `key`, in a file whose metadata has not changed since it was read."""
        entry = self._entries[key]
        if self._closed:
            raise ValueError("the file is closed")
        self._check_unchanged()
        return entry

    def _close_after(self, error: BaseException | None) -> None:
        """Close the file after `error`. `TruncatedFileError` if a write to the file may have caused the error."""
        try:
            if isinstance(error, GGUFError) and not self._closed:  # parts may be of different versions
                self._check_unchanged()
        finally:
            self.close()

    def _check_unchanged(self) -> None:
        """`TruncatedFileError` if the metadata has changed since it was read; a file may grow, as in a download."""
        now = self._state()
        if now == self._seen:
            return
        if now.size <= self._seen.size:
            raise self._changed(min(now.size, self.metadata_end))
        from copy import copy

        again = copy(self)
        again.size, again._entries, again._window, again._to_take = now.size, {}, b"", ()
        try:
            again._read_section(again._read_header())
        except GGUFError:
            raise self._changed(0) from None
        bare = [
            {key: entry._replace(lengths=None) for key, entry in file._entries.items()}
            for file in (self, again)
        ]
        if bare[0] != bare[1]:
            raise self._changed(0)
        self._seen = now

    # ---- single items ---------------------------------------------------------------------------

    def _read_length(self, position: int, what: str, key: str | None = None) -> int:
        if position + self._length.size > self.size:
            raise self._truncated(position, what, key)
        length: int = self._length.unpack(self._bytes(position, self._length.size))[0]
        return length

    def _read_type(self, position: int, key: str, what: str) -> GGUFValueType:
        if position + 4 > self.size:
            raise self._truncated(position, f"the {what}", key)
        number = self._u32.unpack(self._bytes(position, 4))[0]
        if number not in _VALUE_TYPES:
            raise self._corrupt(
                position, f"{what} {number} does not exist (0 to {max(_VALUE_TYPES)} do)", key
            )
        return _VALUE_TYPES[number]

    def _text(self, start: int, length: int, key: str | None, what: str = "") -> str:
        """The string of `length` bytes at `start`; `key` is None for a key itself."""
        self._check_end(start + length, start)
        data = self._bytes(start, length)
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise InvalidUTF8Error(
                f"{what or ('the value' if key else 'a key')} is not UTF-8: byte 0x{data[error.start]:02X} "
                f"in {printable(data.decode('utf-8', 'backslashreplace'))}",
                path=self.path,
                offset=start + error.start,
                key=key,
                remedy=DAMAGED,
            ) from None

    def _check_end(self, end: int, position: int) -> None:
        if end > self.LONGEST:
            raise self._corrupt(position, f"the metadata would be longer than {self.LONGEST} bytes")

    # ---- errors ---------------------------------------------------------------------------------

    def _corrupt(self, position: int, problem: str, key: str | None = None) -> CorruptMetadataError:
        return CorruptMetadataError(problem, path=self.path, offset=position, key=key, remedy=DAMAGED)

    def _truncated(self, position: int, what: str, key: str | None = None) -> TruncatedFileError:
        from .._util.wording import counted  # for errors alone

        return TruncatedFileError(
            f"the file ends after {counted(self.size, 'byte')}, inside {what}",
            path=self.path,
            offset=position,
            key=key,
            remedy=DOWNLOAD_AGAIN,
        )

    def _too_long(
        self, position: int, length: int, what: str, key: str | None, unit: str = "byte"
    ) -> CorruptMetadataError | TruncatedFileError:
        """The error for a length past the end: corrupt if it is absurd, else an unfinished download."""
        from .._util.wording import counted

        error = TruncatedFileError if length < 2**30 else CorruptMetadataError
        return error(
            f"{what} of {counted(length, unit)} leads past the end of the file ({self.size} bytes)",
            path=self.path,
            offset=position,
            key=key,
            remedy=DOWNLOAD_AGAIN,
        )
