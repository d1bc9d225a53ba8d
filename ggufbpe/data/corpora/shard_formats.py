"""The formats of shards: how ids and the index of documents are written, and read back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from . import byte_formats as by
from .byte_formats import NPY_HEADER, Layout, Lengths
from .hashed_files import FileFacts
from .marked_ids import IDS
from .marked_shards import MarkedBytesWriter, MarkedTableWriter, array_file
from .parquet_writer import ParquetWriter
from .row_formats import TableWriter, row_batches
from .storage import Folder

Ends = Callable[[Folder, str], Any]


class ShardWriter(Protocol):
    """A shard that is being written."""

    def write(self, ids: list[npt.NDArray[Any]], lengths: npt.NDArray[Any]) -> None:
        """Append ids, and release each array then; the list is empty afterwards.

        Rows of these lengths end in them, of which the first may have begun in ids written before. The ids behind
        these rows belong to one that has not ended.
        """

    def finish(self) -> list[FileFacts]:
        """Finish the files."""

    def discard(self) -> None:
        """Remove what was written."""


class ShardForm(NamedTuple):
    """A format. `indexes` makes the other files of a shard, by suffix; `ends` reads where rows end.

    `marked_writer` is for ids with marks, which become arrays beside the ids.
    """

    suffix: str
    writer: Callable[[ShardForm, Folder, str, Layout], ShardWriter]
    marked_writer: Callable[[ShardForm, Folder, str, Layout], ShardWriter] = MarkedBytesWriter
    wide: str = "uint32"  # the type of ids that need more than 16 bits
    indexes: dict[str, Callable[[Lengths, Layout], Iterator[Any]]] = {}  # noqa: RUF012 - a NamedTuple
    ends: Ends | None = None
    has_header: bool = False

    def open(self, folder: Folder, stem: str, layout: Layout) -> ShardWriter:
        """Begin a shard."""
        return (self.marked_writer if layout.is_marked else self.writer)(self, folder, stem, layout)


FORMS: dict[str, ShardForm] = {
    "megatron": ShardForm(
        ".bin", by.BytesWriter, wide="int32", indexes={".idx": by.megatron_index}, ends=by.megatron_ends
    ),
    "nanotron": ShardForm(
        ".ds",
        by.BytesWriter,
        indexes={".ds.index": by.nanotron_index, ".ds.metadata": by.nanotron_metadata},
        ends=by.nanotron_ends,
    ),
    "npy": ShardForm(
        ".npy", by.BytesWriter, indexes={".index.npy": by.npy_index}, ends=by.npy_ends, has_header=True
    ),
    "parquet": ShardForm(".parquet", ParquetWriter, MarkedTableWriter),
    "arrow": ShardForm(".arrow", TableWriter, MarkedTableWriter),
}


def id_dtype(form: ShardForm, vocab_size: int) -> str:
    """The type of the ids of a vocabulary."""
    return "uint16" if vocab_size <= 1 << 16 else form.wide


def document_ends(form: ShardForm, folder: Folder, stem: str, layout: Layout) -> Any:
    """Where the rows of a shard end, in ids; None where each file of rows says it itself."""
    if form.ends is None:
        return None
    if form.has_header and layout.window is not None:
        return np.arange(1, count_rows(form, folder, stem, layout)[0] + 1) * layout.window
    return form.ends(folder, stem)


def read_rows(
    form: ShardForm, folder: Folder, stem: str, layout: Layout, ends: Any, start: int = 0, array: str = IDS
) -> Iterator[npt.NDArray[Any]]:
    """The rows of one of a shard's arrays from number `start` on; `ends` are those of `document_ends`."""
    if ends is None:
        for lists in row_batches(folder, stem + form.suffix, start, array):
            values, offsets = lists.values.to_numpy(zero_copy_only=False), lists.offsets.to_numpy()
            for number in range(len(lists)):
                yield values[offsets[number] : offsets[number + 1]]
        return
    form, infix, layout = array_file(form, array, layout)
    dtype = np.dtype(layout.dtype).newbyteorder("<")
    head = NPY_HEADER if form.has_header else 0
    with folder.open(stem + infix + form.suffix) as file:
        begin = int(ends[start - 1]) if 0 < start <= len(ends) else 0
        file.seek(head + begin * dtype.itemsize)
        for end in ends[start:].tolist():
            yield np.frombuffer(file.read((end - begin) * dtype.itemsize), dtype)
            begin = end


def count_rows(form: ShardForm, folder: Folder, stem: str, layout: Layout) -> tuple[int, int]:
    """The number of rows by the index of a shard, and of ids."""
    if form.ends is None:
        lengths = [len(lists) for lists in row_batches(folder, stem + form.suffix)]
        return sum(lengths), sum(len(lists.flatten()) for lists in row_batches(folder, stem + form.suffix))
    width = np.dtype(layout.dtype).itemsize
    tokens = (folder.size(stem + form.suffix) - NPY_HEADER * form.has_header) // width
    if form.has_header and layout.window is not None:
        return tokens // layout.window, tokens
    ends = form.ends(folder, stem)
    return len(ends), int(ends[-1]) if len(ends) else 0
