"""Writes Arrow files by pyarrow, and reads rows of Arrow and parquet back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ..._util.extras import imported
from .byte_formats import Layout
from .hashed_files import FileFacts, HashedFile
from .storage import Folder

if TYPE_CHECKING:
    import numpy.typing as npt

GROUP_TOKENS, GROUP_ROWS = 1 << 20, 1 << 16  # of a row group or record batch, about
COLUMN = "input_ids"


def arrow_schema(layout: Layout) -> Any:
    """pyarrow's schema: a column of lists."""
    pyarrow = imported("pyarrow", "corpora", "writing parquet and arrow")
    return pyarrow.schema([(COLUMN, pyarrow.large_list(getattr(pyarrow, layout.dtype)()))])


class ArrowWriter:
    """Writes a column of lists. Where a record batch ends depends on the lengths of rows, not on chunks."""

    def __init__(self, form: Any, folder: Folder, stem: str, layout: Layout) -> None:
        self._schema = arrow_schema(layout)
        self._pyarrow = imported("pyarrow", "corpora", "writing arrow")
        self._numpy = imported("numpy", "corpora", "shards")
        self._data = HashedFile(folder, stem + form.suffix)
        self._writer = imported("pyarrow.ipc", "corpora", "writing arrow").new_file(self._data, self._schema)
        self._dtype = layout.dtype
        self._ids: Any = None  # of rows not written yet: an array, or several in a row as bytes
        self._lengths: list[int] = []
        self._tokens = 0  # of these rows, if complete

    def write(self, ids: list[npt.NDArray[Any]], lengths: npt.NDArray[Any]) -> None:
        while ids:
            self._append(ids.pop(0))
        for length in lengths.tolist():
            self._lengths.append(length)
            self._tokens += length
            if self._tokens >= GROUP_TOKENS or len(self._lengths) >= GROUP_ROWS:
                self._flush()

    def _append(self, ids: npt.NDArray[Any]) -> None:
        if self._ids is None:
            self._ids = ids
            return
        if not isinstance(self._ids, bytearray):
            self._ids = bytearray(self._ids.data.cast("B"))
        # extended in place: a list of arrays and their join take twice the memory
        self._ids.extend(ids.data.cast("B"))

    def _flush(self) -> None:
        numpy, pyarrow = self._numpy, self._pyarrow
        if not self._lengths:
            return
        ids = numpy.zeros(0, self._dtype) if self._ids is None else numpy.frombuffer(self._ids, self._dtype)
        self._ids = ids[self._tokens :].copy() if len(ids) > self._tokens else None
        offsets = numpy.concatenate([[0], numpy.cumsum(self._lengths)]).astype("int64")
        column = pyarrow.LargeListArray.from_arrays(offsets, pyarrow.array(ids[: self._tokens]))
        self._writer.write_batch(pyarrow.record_batch([column], schema=self._schema))
        self._lengths, self._tokens = [], 0

    def finish(self) -> list[FileFacts]:
        self._flush()
        self._writer.close()
        return [self._data.finish()]

    def discard(self) -> None:
        with suppress(OSError):  # closing writes the footer, which fails if the disk is full
            self._writer.close()
        self._data.discard()


def row_batches(folder: Folder, name: str, start: int = 0) -> Iterator[Any]:
    """The lists in a file from number `start` on, batch by batch."""
    with folder.open(name) as file:
        if name.endswith(".parquet"):
            parquet = imported("pyarrow.parquet", "corpora", "reading parquet").ParquetFile(file)
            for group in range(parquet.num_row_groups):
                count = parquet.metadata.row_group(group).num_rows
                if start < count:
                    yield parquet.read_row_group(group).column(COLUMN).combine_chunks().slice(start)
                start = max(start - count, 0)
            return
        arrow = imported("pyarrow.ipc", "corpora", "reading arrow").open_file(file)
        for number in range(arrow.num_record_batches):
            lists = arrow.get_batch(number).column(COLUMN)
            if start < len(lists):
                yield lists.slice(start)
            start = max(start - len(lists), 0)
