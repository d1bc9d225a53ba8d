"""Writes raw ids with an index of documents in another file: the formats of Megatron, nanotron and numpy.

Sources: Megatron-LM, megatron/core/datasets/indexed_dataset.py (_IndexWriter); datatrove, pipeline/tokens/tokenizer.py
(TokenizedFile), whose files nanotron reads; numpy.lib.format.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from .hashed_files import FileFacts, HashedFile, hashed_file
from .records import CorpusError
from .storage import Folder

_MEGATRON = b"MMIDIDX\x00\x00"
_CODES = {"uint8": 1, "int32": 4, "uint16": 8}  # of Megatron's DType
_LONGEST = (1 << 31) - 1  # tokens of a sequence there
NPY_HEADER = 128  # bytes, of any array of one or two dimensions
_AT_ONCE = 1 << 20  # numbers of an index, computed at a time


class Layout(NamedTuple):
    """How ids are laid out in a shard."""

    dtype: str
    tokenizer: str  # its name, for information
    window: int | None  # tokens of each row, if all have the same length
    mask: str | None = None  # how what the assistant wrote is told: "mask" or "labels" (marked_ids.py)
    has_positions: bool = False  # whether rows tell where documents begin
    padding: int | None = None  # the id that fills rows before a document that does not fit; None: it is cut

    @property
    def is_marked(self) -> bool:
        """Whether ids have marks until they are written."""
        return self.mask is not None or self.has_positions

    @property
    def held(self) -> str:
        """The type of ids until they are written."""
        return "uint32" if self.is_marked else self.dtype


class Ids:
    """A queue of consecutive arrays."""

    def __init__(self, arrays: list[npt.NDArray[Any]]) -> None:
        """Empties the list: the ids of a long document take as much memory as its text."""
        self._arrays = list(arrays)
        arrays.clear()

    def take(self, count: int) -> list[npt.NDArray[Any]]:
        """The next `count` ids."""
        arrays = []
        while count:
            head = self._arrays[0]
            arrays.append(head[:count])
            if len(head) > count:
                self._arrays[0] = head[count:]
            else:
                self._arrays.pop(0)
            count -= len(arrays[-1])
        return arrays

    def rest(self) -> list[npt.NDArray[Any]]:
        """The remaining ones."""
        arrays, self._arrays = self._arrays, []
        return arrays


class Lengths:
    """Lengths of rows, and where rows begin and end, computed in parts to save memory."""

    def __init__(self, arrays: list[Any]) -> None:
        self.all = np.concatenate([np.zeros(0, np.int64), *arrays])

    def parts(self, dtype: str) -> Iterator[Any]:
        for at in range(0, len(self.all), _AT_ONCE):
            yield self.all[at : at + _AT_ONCE].astype(dtype)

    def ends(self, dtype: str, factor: int = 1) -> Iterator[Any]:
        before = 0
        for part in self.parts("int64"):
            ends = np.cumsum(part) + before
            before = int(ends[-1])
            yield (ends * factor).astype(dtype)

    def begins(self, dtype: str, factor: int) -> Iterator[Any]:
        lengths = self.parts("int64")
        for ends, part in zip(self.ends("int64"), lengths):
            yield ((ends - part) * factor).astype(dtype)


def megatron_index(lengths: Lengths, layout: Layout) -> Iterator[Any]:
    """What `_IndexWriter` of Megatron writes, where each document is one sequence."""
    count = len(lengths.all)
    width = np.dtype(layout.dtype).itemsize
    yield _MEGATRON + struct.pack("<QBQQ", 1, _CODES[layout.dtype], count, count + 1)
    yield from lengths.parts("<i4")
    yield from lengths.begins("<i8", width)
    for at in range(0, count + 1, _AT_ONCE):  # each document is one sequence
        yield np.arange(at, min(at + _AT_ONCE, count + 1), dtype="<i8")


def megatron_ends(folder: Folder, stem: str) -> Any:
    """Where the sequences of an index of Megatron's end, in ids."""
    data = folder.read(f"{stem}.idx")
    head = len(_MEGATRON) + 8 + 1
    if data[: len(_MEGATRON)] != _MEGATRON or len(data) < head + 16:
        raise CorpusError(f"{stem}.idx: not an index of Megatron's")
    [count] = struct.unpack_from("<Q", data, head)
    return np.cumsum(np.frombuffer(data, "<i4", count, head + 16), dtype=np.int64)


def nanotron_index(lengths: Lengths, layout: Layout) -> Iterator[Any]:
    """The ends of documents, in ids."""
    return lengths.ends("<u8")


def nanotron_ends(folder: Folder, stem: str) -> Any:
    """Read the ends of documents from a shard of nanotron's format, as an int64 array."""
    return np.frombuffer(folder.read(f"{stem}.ds.index"), "<u8").astype(np.int64)


def nanotron_metadata(lengths: Lengths, layout: Layout) -> Iterator[Any]:
    """The tokenizer and bytes per id; the number of ids; the same with a prefix, such as 1.23 M."""
    tokens = int(lengths.all.sum())
    width = np.dtype(layout.dtype).itemsize
    yield f"{layout.tokenizer}|{width}\n{tokens}\n{metric(tokens)}T".encode()


def metric(number: int) -> str:
    """A number with three digits and a prefix, as the package humanize writes it.

    >>> metric(0), metric(999), metric(1_234_567), metric(999_999)
    ('0.00 ', '999 ', '1.23 M', '1.00 M')
    """
    power = len(str(number)) - 1 if number else 0
    power += round(number, 2 - power) >= 10 ** (power + 1)
    prefix = ["", "k", "M", "G", "T", "P", "E"][power // 3]
    return f"{number / 1000 ** (power // 3):.{2 - power % 3}f} {prefix}"


def npy_header(layout: Layout, tokens: int) -> bytes:
    """The header of an array of ids, two-dimensional if rows have one length."""
    shape = (tokens,) if layout.window is None else (tokens // layout.window, layout.window)
    descr = npy.dtype_to_descr(np.dtype(layout.dtype).newbyteorder("<"))
    head = io.BytesIO()
    npy.write_array_header_1_0(head, {"descr": descr, "fortran_order": False, "shape": shape})
    return head.getvalue()


def npy_index(lengths: Lengths, layout: Layout) -> Iterator[Any]:
    """The ends of documents, in ids, as an array of numpy's."""
    yield npy_header(Layout("int64", "", None), len(lengths.all))
    yield from lengths.ends("<i8")


def npy_ends(folder: Folder, stem: str) -> Any:
    """Read the ends of documents from a shard in numpy's format, as an int64 array."""
    with folder.open(f"{stem}.index.npy") as file:
        return np.frombuffer(file.read()[NPY_HEADER:], "<i8")


class BytesWriter:
    """Writes raw ids, and index files."""

    def __init__(self, form: Any, folder: Folder, stem: str, layout: Layout) -> None:
        self._form, self._folder, self._stem, self._layout = form, folder, stem, layout
        head = [bytes(NPY_HEADER)] if form.has_header else []
        self._data = hashed_file(folder, stem + form.suffix, head)
        self._lengths: list[Any] = []
        self._tokens = 0

    def write(self, ids: list[npt.NDArray[Any]], lengths: npt.NDArray[Any]) -> None:
        while ids:
            part = ids.pop(0)
            self._data.write(part.astype(part.dtype.newbyteorder("<"), copy=False))
            self._tokens += len(part)
            del part  # before the next one is written
        if len(lengths) and int(lengths.max()) > _LONGEST:
            raise CorpusError(
                f"a document has {int(lengths.max())} tokens; the forms have at most {_LONGEST}"
            )
        self._lengths.append(lengths.astype("int32"))

    def finish(self) -> list[FileFacts]:
        if self._form.has_header:
            self._data.begin_with(npy_header(self._layout, self._tokens))
        indexes: list[HashedFile] = []
        try:
            lengths = Lengths(self._lengths)
            for suffix, make in self._form.indexes.items():
                if self._form.has_header and self._layout.window is not None:
                    continue  # the shape of the array says it
                indexes.append(hashed_file(self._folder, self._stem + suffix, make(lengths, self._layout)))
            return [file.finish() for file in (self._data, *indexes)]
        except BaseException:
            for file in indexes:
                file.discard()
            raise

    def discard(self) -> None:
        self._data.discard()
