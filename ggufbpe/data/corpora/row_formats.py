"""Writes tables by pyarrow, and reads rows of Arrow and parquet back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._util.extras import imported
from .byte_formats import Layout
from .hashed_files import FileFacts, HashedFile
from .marked_ids import IDS, arrays_of
from .storage import Folder

GROUP_TOKENS, GROUP_ROWS = 1 << 20, 1 << 16  # of a row group or record batch, about
COLUMN = IDS


def arrow_schema(layout: Layout) -> Any:
    """pyarrow's schema: a column of lists for each array."""
    pyarrow = imported("pyarrow", "corpora", "writing parquet and arrow")
    arrays = arrays_of(layout).items()
    return pyarrow.schema([(name, pyarrow.large_list(getattr(pyarrow, dtype)())) for name, dtype in arrays])


class TableWriter:
    """Writes columns of lists, to Arrow, or to parquet by the form's suffix.

    Where a record batch or row group ends depends on the lengths of rows, not on chunks.
    """

    def __init__(self, form: Any, folder: Folder, stem: str, layout: Layout) -> None:
        self._schema = arrow_schema(layout)
        self._pyarrow = imported("pyarrow", "corpora", "writing arrow")
        self._data = HashedFile(folder, stem + form.suffix)
        try:
            if form.suffix == ".parquet":
                parquet = imported("pyarrow.parquet", "corpora", "writing parquet")
                self._writer = parquet.ParquetWriter(self._data, self._schema, compression="zstd")
            else:
                ipc = imported("pyarrow.ipc", "corpora", "writing arrow")
                self._writer = ipc.new_file(self._data, self._schema)
        except BaseException:  # a full disk: they write at once
            self._data.discard()
            raise
        self.layout = layout
        self._dtype = layout.held
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
        if not self._lengths:
            return
        ids = np.zeros(0, self._dtype) if self._ids is None else np.frombuffer(self._ids, self._dtype)
        self._ids = ids[self._tokens :].copy() if len(ids) > self._tokens else None
        offsets = np.concatenate([[0], np.cumsum(self._lengths)]).astype("int64")
        columns = self.columns(ids[: self._tokens], offsets)
        self._writer.write_batch(self._pyarrow.record_batch(columns, schema=self._schema))
        self._lengths, self._tokens = [], 0

    def columns(self, held: npt.NDArray[Any], offsets: npt.NDArray[Any]) -> list[Any]:
        """The columns of rows, which begin and end at `offsets` of their ids."""
        return [self.lists(held, offsets)]

    def lists(self, values: npt.NDArray[Any], offsets: npt.NDArray[Any]) -> Any:
        """A column of lists, which begin and end at `offsets` of the values."""
        return self._pyarrow.LargeListArray.from_arrays(offsets, self._pyarrow.array(values))

    def finish(self) -> list[FileFacts]:
        self._flush()
        self._writer.close()
        return [self._data.finish()]

    def discard(self) -> None:
        with suppress(OSError):  # closing writes the footer, which fails if the disk is full
            self._writer.close()
        self._data.discard()


def row_batches(folder: Folder, name: str, start: int = 0, column: str = COLUMN) -> Iterator[Any]:
    """The lists in a column of a file from number `start` on, batch by batch."""
    with folder.open(name) as file:
        if name.endswith(".parquet"):
            # without threads: one that still holds a buffer when the interpreter ends would abort the process
            parquet = imported("pyarrow.parquet", "corpora", "reading parquet").ParquetFile(
                file, pre_buffer=False
            )
            for group in range(parquet.num_row_groups):
                count = parquet.metadata.row_group(group).num_rows
                if start < count:
                    table = parquet.read_row_group(group, [column], use_threads=False)
                    yield table.column(column).combine_chunks().slice(start)
                start = max(start - count, 0)
            return
        arrow = imported("pyarrow.ipc", "corpora", "reading arrow").open_file(file)
        for number in range(arrow.num_record_batches):
            lists = arrow.get_batch(number).column(column)
            if start < len(lists):
                yield lists.slice(start)
            start = max(start - len(lists), 0)
