"""Reads rows of tables: parquet and Arrow by pyarrow, comma-separated values by csv_rows.py.

Only the columns asked for are read. Text is returned as bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from ..._util.extras import imported
from ...errors import printable
from .csv_rows import csv_rows
from .records import CorpusError, is_binary_table

_ROWS = 128  # decoded at a time; rows may be large
_LARGE = 1 << 24  # bytes of rows whose memory is given back at once
_IPC_FILE = b"ARROW1"

Row = tuple[Any, ...]


def table_rows(stream: Any, name: str, columns: Sequence[str], start: int = 0) -> Iterator[list[Row]]:
    """The rows of a table from number `start` on, each with the values of `columns`.

    `CorpusError` if the table is broken or has no such column.
    """
    if not is_binary_table(name):
        yield from _csv_rows(stream, name, columns, start)
        return
    pyarrow = imported("pyarrow", "corpora", f"{name}: reading parquet and arrow")
    try:
        batches = _parquet if name.endswith(".parquet") else _arrow
        for batch in batches(stream, name, columns, start):
            yield list(zip(*(_values(batch.column(column), pyarrow) for column in columns)))
            del batch
    except (pyarrow.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # the disk's or the network's
            raise
        raise CorpusError(f"{name}: the table is broken: {error}") from error


def _parquet(stream: Any, name: str, columns: Sequence[str], start: int) -> Iterator[Any]:
    parquet = imported("pyarrow.parquet", "corpora", f"{name}: reading parquet")
    file = parquet.ParquetFile(stream, buffer_size=1 << 20, pre_buffer=False)
    _check_columns(file.schema_arrow.names, name, columns)
    first = 0
    for group in range(file.num_row_groups):
        rows = file.metadata.row_group(group).num_rows
        before, first = first, first + rows
        if first <= start:
            continue
        is_large = False
        for batch in file.iter_batches(_ROWS, [group], list(dict.fromkeys(columns)), use_threads=False):
            if before + batch.num_rows > start:
                yield batch.slice(max(start - before, 0))
            before += batch.num_rows
            is_large = is_large or batch.nbytes >= _LARGE
            del batch  # before the next one is read
        if is_large:  # the pool keeps what it freed: twice the size of a text of a gigabyte
            imported("pyarrow", "corpora", "").default_memory_pool().release_unused()


def _arrow(stream: Any, name: str, columns: Sequence[str], start: int) -> Iterator[Any]:
    ipc = imported("pyarrow.ipc", "corpora", f"{name}: reading arrow")
    is_file = stream.read(len(_IPC_FILE)) == _IPC_FILE
    stream.seek(0)
    reader = (ipc.open_file if is_file else ipc.open_stream)(stream)
    _check_columns(reader.schema.names, name, columns)
    batches = map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader
    before = 0
    for batch in batches:
        for at in range(max(start - before, 0), batch.num_rows, _ROWS):
            yield batch.slice(at, _ROWS)
        before += batch.num_rows


def _values(column: Any, pyarrow: Any) -> list[Any]:
    """The values of a column; text as bytes, which take less memory than str."""
    kind = column.type
    if pyarrow.types.is_dictionary(kind):
        column, kind = column.dictionary_decode(), kind.value_type
    if pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind):
        column = column.cast(pyarrow.large_binary())
    if pyarrow.types.is_large_binary(column.type):
        return binary_values(column)
    values: list[Any] = column.to_pylist()
    return values


def binary_values(column: Any) -> list[bytes | None]:
    """The values of an array of large binaries. `to_pylist` copies each twice, and one may have a gigabyte."""
    if not len(column):
        return []
    _, offsets, data = column.buffers()
    ends = memoryview(offsets).cast("B").cast("q")[column.offset : column.offset + len(column) + 1]
    view = memoryview(b"" if data is None else data).cast("B")
    spans = zip(ends, ends[1:], column.is_valid().to_pylist())
    return [bytes(view[begin:end]) if is_there else None for begin, end, is_there in spans]


def _csv_rows(stream: Any, name: str, columns: Sequence[str], start: int) -> Iterator[list[Row]]:
    rows = csv_rows(stream)
    header = [field.decode("utf-8", "surrogateescape") for field in next(rows, [])]
    _check_columns(header, name, columns)
    places = [header.index(column) for column in columns]
    wanted = islice(rows, start, None)
    while some := [
        tuple(row[at] if at < len(row) else None for at in places) for row in islice(wanted, _ROWS)
    ]:
        yield some


def _check_columns(names: Sequence[str], name: str, columns: Sequence[str]) -> None:
    for column in columns:
        if column not in names:
            there = ", ".join(map(printable, names)) or "none"
            raise CorpusError(
                f"{name}: there is no column {printable(column)}; text_column=NAME names another one; there are {there}"
            )
