"""Reads the metadata of a GGUF file, decoding each value on demand.

    file.gguf -> source.py (bytes) -> section.py (where each value lies) -> reader.py (values) -> models/ (vocabulary)

Opening a file notes only where each value is. Less than a block is read past the metadata, so a 40 GB model opens as
fast as its vocabulary alone. Each read checks that the file has not changed since it was opened.

Tensors are only copied (`blocks`); writing is in writer.py.
"""

from __future__ import annotations

import os
import re
import sys
from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from types import TracebackType

from .._util.errors import ShardError, UnsupportedVersionError, printable
from ..native import native
from .constants import KEY_SPLIT_COUNT, KEY_SPLIT_NO, GGUFValueType
from .section import Section
from .source import ByteRange
from .value_types import SCALARS, Value, numbers_of

_T = GGUFValueType


class GGUFFile(Section):
    """The metadata of one GGUF file: a read-only mapping from key to value, with types and offsets.

    >>> with GGUFFile("model.gguf") as file:
    ...     file["tokenizer.ggml.model"], file.array_length("tokenizer.ggml.tokens")
    ('gpt2', 50257)

    Raises a subclass of `GGUFError` if the file is not a sound GGUF, and Python's own `OSError` if it cannot be
    opened.
    """

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
        """The value of `key`, decoded. `InvalidUTF8Error` if a string in it is not UTF-8."""
        entry = self._checked(key)
        if entry.element is _T.STRING:
            texts = self.strings(key)
            return self._strings(key) if texts is None else [*texts]
        if entry.element is not None:
            return self._numbers(entry.element, entry.data, entry.size)
        if entry.type is _T.STRING:
            return self._text(entry.data, entry.size, key)
        return self._numbers(entry.type, entry.data, 1)[0]

    def raw_strings(self, key: str, most: int | None = None) -> list[bytes]:
        """The string `key`, or the first `most` of an array of strings, UTF-8 or not; [] for other types."""
        entry = self._checked(key)
        if entry.element is not _T.STRING:
            return [bytes(self._whole(entry.data, entry.end))] if entry.type is _T.STRING else []
        data, found, end = self._whole(entry.data, entry.end), [], 0
        for length in self._lengths(key)[:most]:
            start = end + self._length.size
            end = start + length
            found.append(bytes(data[start:end]))
        return found

    def numbers(self, key: str) -> array[int] | array[float]:
        """The array of numbers `key`, without a Python object for each; of bool, 0 is False."""
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
        if entry.element is _T.STRING and entry.lengths is None and native is not None:
            data = self._whole(entry.data, entry.end)
            done, end = native.Strings.walk(data, 0, index, **self._layout)
            if done != index:
                raise self._changed(entry.data)
            return entry.data + int(end)
        if entry.element is _T.STRING:
            return entry.data + sum(self._lengths(key)[:index]) + index * self._length.size
        element = entry.type if entry.element is None else entry.element  # not `or`: UINT8 is 0
        return entry.data + index * SCALARS[element][1]

    def spans(self) -> dict[str, ByteRange]:
        """The bytes of each key with its type and value, in the order of the file, for copying.

        `UnsupportedVersionError` for version 1: a copy would be as useless as the file.
        """
        if self.version == 1:
            raise UnsupportedVersionError(
                "GGUF version 1, which llama.cpp no longer reads",
                path=self.path,
                offset=4,
                remedy="convert the model again",
            )
        before = self._length.size + 4  # the key's length and the value's type, beside the key itself
        starts = [entry.offset - before - len(key.encode()) for key, entry in self._entries.items()]
        return dict(zip(self._entries, map(ByteRange, starts, [*starts[1:], self.metadata_end])))

    def require_first_shard(self) -> None:
        """Raise `ShardError` if this is a later part of a split model (src/llama-model-loader.cpp)."""
        part = self[KEY_SPLIT_NO] if KEY_SPLIT_NO in self else 0  # noqa: SIM401 - no dict, has no get
        count = self.part_count
        if not isinstance(part, int) or part == 0 or count <= 1:
            return
        named = re.fullmatch(r"(.*)-(\d{5})(-of-\d{5}\.gguf)", os.path.basename(self.path), re.DOTALL)
        if named is None:
            remedy = "open the part whose name has -00001-of-"
        elif int(named[2]) == 1:
            remedy = "its name says that it is the first: give all parts the names that they had"
        else:
            remedy = f"open {printable(f'{named[1]}-00001{named[3]}', 300)}"
        raise ShardError(
            f"this is part {part + 1} of {count} of a split model; the tokenizer is in the first part",
            path=self.path,
            offset=self.offset(KEY_SPLIT_NO),
            key=KEY_SPLIT_NO,
            remedy=remedy,
        )

    @property
    def part_count(self) -> int:
        """The number of parts of a split model; 0 if the file does not say so."""
        count = self[KEY_SPLIT_COUNT] if KEY_SPLIT_COUNT in self else 0  # noqa: SIM401 - no dict, has no get
        return count if isinstance(count, int) else 0

    def __enter__(self) -> GGUFFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close_after(error)

    # ---- decoding -------------------------------------------------------------------------------

    def _lengths(self, key: str) -> Sequence[int]:
        """The byte lengths of an array of strings."""
        entry = self._entries[key]
        if entry.lengths is None:
            lengths = array("Q")
            data = self._whole(entry.data, entry.end)
            if self._note_lengths(lengths, data, 0, entry.size) != (entry.size, len(data)):
                raise self._changed(entry.data)
            entry = self._entries[key] = entry._replace(lengths=lengths)
        return entry.lengths or ()

    def _strings(self, key: str) -> list[str]:
        position, lengths, width = self._entries[key].data, self._lengths(key), self._length.size
        ends = list(accumulate(lengths, lambda end, length: end + width + length, initial=position))
        data = bytes(self._whole(position, ends[-1]))  # bytes, for `bytes.decode`
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
        end, block = position + count * size, max(self.BLOCK // size, 1) * size
        for start in range(
            position, end, block
        ):  # memory for all of it at once would be fresh, which takes longer
            numbers.frombytes(self._whole(start, min(start + block, end)))
        if self.byteorder != sys.byteorder:
            numbers.byteswap()
        return numbers
