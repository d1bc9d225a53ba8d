"""The header and key/value section of a GGUF file.

    file.gguf -> [this file] -> metadata -> vocabulary -> tokenizer -> ids

Opening reads the section once, in blocks, checks every length against the size of the file, and notes where
each value lies; a value is read again and decoded when it is asked for. Less than a block is read after the
section, so a 40 GB model opens as fast as its vocabulary alone. Nothing in the file is trusted: each way it
can lie has a named error with the byte offset and the key. Nor is it trusted to stay: it is read and not
mapped, as a mapped file that somebody truncates ends the process with SIGBUS.

But: tensors are only copied (`blocks`), and writing is the `gguf` package's work.

Layout, in the file's byte order (ggml/src/gguf.cpp, gguf_init_from_reader):

    "GGUF", version u32, tensor count u64, key count u64, then for each key:
    key string, value type u32, value
    string: length u64, bytes;  array: element type u32, element count u64, elements

Version 1 has 32-bit lengths and counts instead. A big-endian file has the same magic bytes; its version
number, read as little-endian, has a zero lower half.
"""

from __future__ import annotations

import io
import os
import re
import stat
import struct
import sys
from array import array
from collections.abc import Iterator
from copy import copy
from itertools import accumulate, pairwise
from types import TracebackType
from typing import Any, NamedTuple

from ..errors import (
    CorruptMetadataError,
    DuplicateKeyError,
    GGUFError,
    InvalidUTF8Error,
    NotGGUFError,
    ShardError,
    TruncatedFileError,
    UnsupportedVersionError,
    printable,
)
from ..kernel import native
from .constants import GGUF_MAGIC, KEY_SPLIT_COUNT, KEY_SPLIT_NO, GGUFValueType
from .values import SCALARS, Value, numbers_of

_T = GGUFValueType
_VALUE_TYPES = {int(value_type): value_type for value_type in GGUFValueType}

_BLOCK = 1 << 16  # bytes that opening reads at a time; in fresh memory, page faults take longer than reading
_COPIED_BLOCK = 1 << 20
_LONGEST_SECTION = 1 << 29  # the largest vocabularies have 2**25 bytes

_DOWNLOAD_AGAIN = "the file is damaged or its download is unfinished: compare its size and hash, get it again"
_DAMAGED = "the file is damaged or was written by a faulty program: get it again or convert it again"

_FOREIGN_FILES = (  # how other files that are taken for a GGUF begin: (pattern, what it is, what to do)
    (
        rb"version https://git-lfs",
        "a Git LFS pointer, not the model itself",
        "run `git lfs pull` in its folder to get the model",
    ),
    (
        rb".{6}\0\0\{",
        "a safetensors file, not a GGUF",
        "convert the model with llama.cpp's convert_hf_to_gguf.py",
    ),
    (
        rb"PK\x03\x04",
        "a zip archive (a PyTorch checkpoint is one), not a GGUF",
        "convert the model with llama.cpp's convert_hf_to_gguf.py",
    ),
    (
        rb"lmgg|fmgg|tjgg",
        "a GGML file from before GGUF",
        "convert it with llama.cpp's convert_llama_ggml_to_gguf.py, or get the model as GGUF",
    ),
    (
        rb"\s*<(!doctype|html|\?xml)",
        "a web page, not a GGUF: the download gave an error or a login page",
        "open the file in an editor to read what the server said, then download the model again",
    ),
    (rb"\s*\{", "a JSON text, not a GGUF", "give the .gguf file of the model"),
    (rb"\x1f\x8b", "a gzip archive, not a GGUF", "unpack it with `gunzip` first"),
)


class _Entry(NamedTuple):
    """Where one value lies."""

    type: GGUFValueType
    offset: int  # of the value; for arrays, of the element type
    element: GGUFValueType | None  # the element type of an array
    size: int  # elements of an array, bytes of a string
    data: int  # offset of the first element, or of the scalar
    end: int  # offset of the first byte after the value
    lengths: array[int] | None  # byte lengths of the elements of an array of strings, if they are known


class Span(NamedTuple):
    """Bytes of a file, from offset `start` up to `end`."""

    start: int
    end: int


class GGUFFile:
    """The metadata of one GGUF file: a read-only mapping from key to value, with types and offsets.

    >>> with GGUFFile(path) as file:                                        # doctest: +SKIP
    ...     file["tokenizer.ggml.model"], file.array_length("tokenizer.ggml.tokens")
    ('gpt2', 50257)

    Raises a subclass of `GGUFError` where the file is not a sound GGUF, and Python's own `OSError` where it
    cannot be opened.
    """

    path: str
    version: int  # 1, 2 or 3
    byteorder: str  # "little" or "big"
    size: int  # of the file, in bytes, when it was opened
    tensor_count: int
    metadata_end: int  # offset of the first byte after the key/value section

    def __init__(self, path: str | os.PathLike[str], data: bytes | None = None) -> None:
        """`data`: all bytes of a file that is not to be opened; `path` is what errors call it."""
        self.path = os.fsdecode(path)
        self._file = io.BytesIO(data) if data is not None else _open_file(self.path)
        self._entries: dict[str, _Entry] = {}
        self._window, self._window_start = b"", 0  # the block that was read last, and where it begins
        self._closed = False
        try:
            self._opened = self._seen = _state(self._file)
            self.size = self._opened.size
            if self.size == 0:
                raise NotGGUFError("the file is empty", path=self.path, offset=0, remedy="download it again")
            self._read_section(self._read_header())
            self._check_unchanged()
        except BaseException:
            self.close()
            raise

    # ---- the mapping ----------------------------------------------------------------------------

    def keys(self) -> list[str]:
        """The keys, in the file's order."""
        return list(self._entries)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __getitem__(self, key: str) -> Value:
        """The value of `key`, decoded. `InvalidUTF8Error` where a string in it is not UTF-8."""
        entry = self._checked(key)
        if entry.element is _T.STRING:
            strings = self.strings(key)
            return self._strings(key) if strings is None else strings.to_list()
        if entry.element is not None:
            return self._numbers(entry.element, entry.data, entry.size)
        if entry.type is _T.STRING:
            return self._text(entry.data, entry.size, key)
        return self._numbers(entry.type, entry.data, 1)[0]

    def strings(self, key: str) -> Any:
        """The array of strings `key` as a `native.Strings`, which keeps nothing of the file.

        None if it cannot be one: there is no compiled module, or the strings have a NUL or are not UTF-8.
        """
        entry = self._checked(key)
        if native is None:
            return None
        layout = entry.size, self._length.size, self.byteorder == "big"
        return native.Strings.read(self._read, _BLOCK, entry.data, entry.end, *layout)

    def numbers(self, key: str) -> array[int] | array[float]:
        """The array of numbers `key`, without an object for each; of bool, 0 is False."""
        entry = self._checked(key)
        return self._array(entry.type if entry.element is None else entry.element, entry.data, entry.size)

    def value_type(self, key: str) -> GGUFValueType:
        """The type of the value."""
        return self._entries[key].type

    def element_type(self, key: str) -> GGUFValueType | None:
        """The type of an array's elements; None if the value is not an array."""
        return self._entries[key].element

    def array_length(self, key: str) -> int:
        """The number of an array's elements; 0 if the value is not an array."""
        entry = self._entries[key]
        return entry.size if entry.type is _T.ARRAY else 0

    def offset(self, key: str) -> int:
        """Where the value begins, in bytes from the start of the file."""
        return self._entries[key].offset

    def element_offset(self, key: str, index: int) -> int:
        """Where element `index` of an array begins (of a string: its length), in bytes."""
        entry = self._entries[key]
        if entry.element is _T.STRING:
            return entry.data + sum(self._lengths(key)[:index]) + index * self._length.size
        element = entry.type if entry.element is None else entry.element  # UINT8 is 0, and so is not true
        return entry.data + index * SCALARS[element][1]

    def spans(self) -> dict[str, Span]:
        """The bytes of each key with its type and value, in the order of the file, for a copy of it.

        `UnsupportedVersionError` for version 1: a copy would be no more use than the file.
        """
        if self.version == 1:
            raise UnsupportedVersionError(
                "GGUF version 1, which llama.cpp does not read any more",
                path=self.path,
                offset=4,
                remedy="convert the model again",
            )
        before = self._length.size + 4  # of a value: the length of the key and the type; and the key
        starts = [entry.offset - before - len(key.encode()) for key, entry in self._entries.items()]
        return dict(zip(self._entries, map(Span, starts, [*starts[1:], self.metadata_end])))

    def require_first_shard(self) -> None:
        """Raise `ShardError` if this is a later part of a split model (src/llama-model-loader.cpp)."""
        part, count = (self[key] if key in self._entries else 0 for key in (KEY_SPLIT_NO, KEY_SPLIT_COUNT))
        if not isinstance(part, int) or not isinstance(count, int) or part == 0 or count <= 1:
            return
        first, found = re.subn(r"-\d{5}(-of-\d{5}\.gguf)$", r"-00001\1", os.path.basename(self.path))
        raise ShardError(
            f"this is part {part + 1} of {count} of a split model; the tokenizer is in the first part",
            path=self.path,
            offset=self.offset(KEY_SPLIT_NO),
            key=KEY_SPLIT_NO,
            remedy=f"open {printable(first, 300)}" if found else "open the part whose name has -00001-of-",
        )

    def blocks(self, span: Span) -> Iterator[bytes]:
        """The bytes of `span`, which may lie after the metadata, a megabyte at a time.

        `TruncatedFileError` where the file ends before, or has changed since it was opened: what was copied so
        far may be of two files.
        """
        position = span.start
        while position < span.end:
            block = self._read(position, min(span.end - position, _COPIED_BLOCK))
            if not block:
                raise self._changed(position)
            yield block
            position += len(block)
        if _state(self._file) != self._opened:
            raise self._changed(span.start)

    def close(self) -> None:
        """Let go of the file. Values cannot be read any more."""
        self._closed = True
        self._window = b""
        self._file.close()

    def __enter__(self) -> GGUFFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- the walk over the section --------------------------------------------------------------

    def _read_header(self) -> int:
        """Check magic and version, set the byte order; returns the number of keys."""
        head = self._bytes(0, min(64, self.size))
        if head[:4] != GGUF_MAGIC:
            raise _not_gguf(self.path, head, self.size)
        if self.size < 8:
            raise self._truncated(4, "the version number")
        version = int.from_bytes(head[4:8], "little")
        self.byteorder = "little"
        if version & 0xFFFF == 0 and version:  # no version is that high: the bytes are the other way round
            version = int.from_bytes(head[4:8], "big")
            self.byteorder = "big"
        if version not in (1, 2, 3):
            raise UnsupportedVersionError(
                f"GGUF version {version}; versions 1, 2 and 3 are known",
                path=self.path,
                offset=4,
                remedy="a newer ggufbpe may read it" if 3 < version < 100 else _DAMAGED,
            )
        self.version = version
        order = "<" if self.byteorder == "little" else ">"
        self._order = order
        self._u32 = struct.Struct(order + "I")
        self._length = struct.Struct(order + ("I" if version == 1 else "Q"))
        self.tensor_count = self._read_length(8, "the number of tensors")
        if self.tensor_count >= 2**63:
            raise CorruptMetadataError(
                f"claims {self.tensor_count} tensors", path=self.path, offset=8, remedy=_DAMAGED
            )
        return self._read_length(8 + self._length.size, "the number of keys")

    def _read_section(self, key_count: int) -> None:
        """Walk all keys and note where their values lie."""
        width = self._length.size
        position = 8 + 2 * width
        smallest = width + 1 + 4 + 1  # a key of one letter with a value of one byte
        if key_count > (self.size - position) // smallest:
            if key_count < 2**20:  # a sane number, so the rest is missing rather than the count wrong
                error: type[TruncatedFileError | CorruptMetadataError] = TruncatedFileError
            else:
                error = CorruptMetadataError
            raise error(
                f"claims {key_count} keys, but the file of {self.size} bytes cannot hold them",
                path=self.path,
                offset=8 + width,
                remedy=_DOWNLOAD_AGAIN,
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
            raise CorruptMetadataError(
                f"key {index} is empty", path=self.path, offset=position, remedy=_DAMAGED
            )
        if key in self._entries:
            raise DuplicateKeyError(
                "the key stands twice", path=self.path, offset=position, key=key, remedy=_DAMAGED
            )
        entry = self._read_value(start + length, key)
        self._check_end(entry.end, position)
        self._entries[key] = entry
        return entry.end

    def _read_value(self, position: int, key: str) -> _Entry:
        """The entry of `key`, whose value type is at `position`."""
        value_type = self._read_type(position, key, "value type")
        offset = position + 4
        if value_type is _T.STRING:
            length = self._read_length(offset, "the length of a string", key)
            start = offset + self._length.size
            if length > self.size - start:
                raise self._too_long(offset, length, "a string", key)
            return _Entry(value_type, offset, None, length, start, start + length, None)
        if value_type is not _T.ARRAY:
            end = offset + SCALARS[value_type][1]
            if end > self.size:
                raise self._truncated(offset, "a value", key)
            return _Entry(value_type, offset, None, 1, offset, end, None)
        element = self._read_type(offset, key, "array element type")
        if element is _T.ARRAY:
            raise CorruptMetadataError(
                "an array of arrays, which GGUF readers refuse",
                path=self.path,
                offset=offset,
                key=key,
                remedy=_DAMAGED,
            )
        count = self._read_length(offset + 4, "the number of elements", key)
        data = offset + 4 + self._length.size
        size = self._length.size if element is _T.STRING else SCALARS[element][1]
        if count > (self.size - data) // size:
            raise self._too_long(offset + 4, count, f"an array of {element.name}", key, unit="elements")
        if element is not _T.STRING:
            return _Entry(value_type, offset, element, count, data, data + count * size, None)
        end, lengths = self._walk_strings(data, count, key)
        return _Entry(value_type, offset, element, count, data, end, lengths)

    def _walk_strings(self, position: int, count: int, key: str) -> tuple[int, array[int] | None]:
        """Where `count` strings that begin at `position` end, and their lengths unless the compiled module walks."""
        lengths = array("Q") if native is None else None
        width, layout = self._length.size, (self._length.size, self.byteorder == "big")
        left = count
        while left:
            length = self._read_length(position, f"the length of string {count - left}", key)
            if length > self.size - position - width:
                raise self._too_long(position, length, f"string {count - left}", key)
            self._check_end(position, position)
            if width + length > _BLOCK:
                done, position = 1, position + width + length
                if lengths is not None:
                    lengths.append(length)
            else:
                self._bytes(position, width + length)  # so at least this one is in the window
                window, start = self._window, self._window_start
                if lengths is None and native is not None:
                    done, end = native.Strings.walk(window, position - start, left, *layout)
                else:
                    done, end = self._note_lengths(window, position - start, left, lengths)
                position = start + end
            left -= done
        return position, lengths

    def _note_lengths(
        self, data: bytes | memoryview, position: int, count: int, lengths: array[int] | None
    ) -> tuple[int, int]:
        """How many of `count` strings from `position` on lie in `data` whole, and where the last of them ends."""
        note = (array("Q") if lengths is None else lengths).append
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

    # ---- bytes of the file ----------------------------------------------------------------------

    def _read(self, position: int, size: int) -> bytes:
        """Up to `size` bytes from `position` on. Others, a forked process too, may read the same file."""
        if isinstance(self._file, io.FileIO) and hasattr(os, "pread"):
            return os.pread(self._file.fileno(), size, position)
        self._file.seek(position)
        return self._file.read(size)

    def _bytes(self, position: int, size: int) -> bytes:
        """`size` bytes from `position` on, which lie in the file by its size."""
        start = position - self._window_start
        if start < 0 or start + size > len(self._window):
            self._window, self._window_start, start = self._read(position, max(_BLOCK, size)), position, 0
            if len(self._window) < size:
                raise self._changed(position + len(self._window))
        return self._window[start : start + size]

    def _whole(self, start: int, end: int) -> bytes | memoryview:
        """The bytes of a value."""
        if isinstance(self._file, io.BytesIO):
            return self._file.getbuffer()[start:end]
        data = self._read(start, end - start)
        if len(data) < end - start:
            raise self._changed(start + len(data))
        return data

    def _check_end(self, end: int, position: int) -> None:
        if end > _LONGEST_SECTION:
            raise CorruptMetadataError(
                f"the metadata would be longer than {_LONGEST_SECTION} bytes",
                path=self.path,
                offset=position,
                remedy=_DAMAGED,
            )

    def _checked(self, key: str) -> _Entry:
        """The entry of `key`, in a file whose metadata still is what was read."""
        entry = self._entries[key]
        if self._closed:
            raise ValueError("the file is closed")
        self._check_unchanged()
        return entry

    def _check_unchanged(self) -> None:
        """`TruncatedFileError` where the metadata is no longer what was read; a file may grow, as in a download."""
        now = _state(self._file)
        if now == self._seen:
            return
        if now.size <= self._seen.size:
            raise self._changed(min(now.size, self.metadata_end))
        again = copy(self)
        again.size, again._entries, again._window = now.size, {}, b""
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
            raise CorruptMetadataError(
                f"{what} {number} does not exist (0 to {max(_VALUE_TYPES)} do)",
                path=self.path,
                offset=position,
                key=key,
                remedy=_DAMAGED,
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
                remedy=_DAMAGED,
            ) from None

    def _lengths(self, key: str) -> array[int]:
        """The byte lengths of an array of strings."""
        entry = self._entries[key]
        if entry.lengths is None:
            lengths = array("Q")
            data = self._whole(entry.data, entry.end)
            if self._note_lengths(data, 0, entry.size, lengths) != (entry.size, len(data)):
                raise self._changed(entry.data)
            entry = self._entries[key] = entry._replace(lengths=lengths)
        return entry.lengths or array("Q")

    def _strings(self, key: str) -> list[str]:
        position, lengths, width = self._entries[key].data, self._lengths(key), self._length.size
        ends = list(accumulate(lengths, lambda end, length: end + width + length, initial=position))
        data = bytes(self._whole(position, ends[-1]))  # `bytes.decode` wants bytes
        first = position - width
        pieces = [data[start - first : end - position] for start, end in pairwise(ends)]
        try:
            return list(map(bytes.decode, pieces))
        except UnicodeDecodeError:
            for index, (start, length) in enumerate(zip(ends, lengths)):
                self._text(start + width, length, key, f"string {index}")
            raise

    def _numbers(
        self, value_type: GGUFValueType, position: int, count: int
    ) -> list[int] | list[float] | list[bool]:
        numbers = self._array(value_type, position, count)
        if value_type is _T.BOOL:
            return [number != 0 for number in numbers]
        return numbers.tolist()

    def _array(self, value_type: GGUFValueType, position: int, count: int) -> array[int] | array[float]:
        numbers, size = numbers_of(value_type, ()), SCALARS[value_type][1]
        numbers.frombytes(self._whole(position, position + count * size))
        if self.byteorder != sys.byteorder:
            numbers.byteswap()
        return numbers

    # ---- errors ---------------------------------------------------------------------------------

    def _truncated(self, position: int, what: str, key: str | None = None) -> TruncatedFileError:
        return TruncatedFileError(
            f"the file ends after {self.size} bytes, inside {what}",
            path=self.path,
            offset=position,
            key=key,
            remedy=_DOWNLOAD_AGAIN,
        )

    def _changed(self, position: int) -> TruncatedFileError:
        return TruncatedFileError(
            "the file was truncated or replaced while it was open",
            path=self.path,
            offset=position,
            remedy="try again when nobody writes it any more",
        )

    def _too_long(
        self, position: int, length: int, what: str, key: str | None, unit: str = "bytes"
    ) -> CorruptMetadataError | TruncatedFileError:
        """A length that leads past the end: a lie if it is absurd, else an unfinished download."""
        error = TruncatedFileError if length < 2**30 else CorruptMetadataError
        return error(
            f"{what} of {length} {unit} leads past the end of the file ({self.size} bytes)",
            path=self.path,
            offset=position,
            key=key,
            remedy=_DOWNLOAD_AGAIN,
        )


class _State(NamedTuple):
    """What changes when somebody writes a file."""

    size: int
    modified: int  # nanoseconds


def _state(file: io.FileIO | io.BytesIO) -> _State:
    if isinstance(file, io.BytesIO):
        return _State(len(file.getbuffer()), 0)
    status = os.fstat(file.fileno())
    return _State(status.st_size, status.st_mtime_ns)


def _open_file(path: str) -> io.FileIO:
    """The file, open for reading; `NotGGUFError` for what is no file."""
    if os.path.isdir(path):
        raise NotGGUFError("this is a directory", path=path, remedy="give the .gguf file in it")
    if not stat.S_ISREG(os.stat(path).st_mode):  # asked before opening: to open a pipe is to wait
        raise NotGGUFError(
            "this is not a regular file but a pipe or device, which has no size to check lengths against",
            path=path,
            remedy="save it to a file first",
        )
    return open(path, "rb", buffering=0)


def _not_gguf(path: str, head: bytes, size: int) -> NotGGUFError | TruncatedFileError:
    """The error for a file that does not begin with "GGUF", naming what it is instead where that shows."""
    if GGUF_MAGIC.startswith(head):
        return TruncatedFileError(
            f"the file ends after {size} bytes, inside the magic", path=path, offset=0, remedy=_DOWNLOAD_AGAIN
        )
    for pattern, problem, remedy in _FOREIGN_FILES:
        if re.match(pattern, head, re.DOTALL | re.IGNORECASE):
            return NotGGUFError(f"this is {problem}", path=path, offset=0, remedy=remedy)
    return NotGGUFError(
        f"this is not a GGUF: it begins with {head[:4]!r} instead of {GGUF_MAGIC!r}",
        path=path,
        offset=0,
        remedy="give a .gguf model, or convert the model with llama.cpp's convert_hf_to_gguf.py",
    )
