"""Reads rows of tables: parquet and Arrow by pyarrow, comma-separated values by csv_rows.py, and JSON.

Only the columns asked for are read. Text is returned as bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from ..._util.errors import printable
from ..._util.extras import imported
from .csv_rows import csv_rows
from .records import CorpusError, decoded_line, fields_of, is_binary_table, is_json, require_no_utf_16

_ROWS = 128  # decoded at a time; rows may be large
_LARGE = 1 << 24  # bytes of rows whose memory is given back at once
_IPC_FILE = b"ARROW1"

Row = tuple[Any, ...]
_Found = Callable[[Sequence[str]], list[str]]  # those of a table's columns that are wanted


def table_rows(
    stream: Any,
    name: str,
    columns: Sequence[str],
    start: int = 0,
    may_lack: bool = False,
    argument: str = "field",
) -> Iterator[list[Row]]:
    """The rows of a table from number `start` on, each with the values of `columns`.

    `CorpusError` if the table is broken or has no such column, with the `argument` by which the caller names another.
    If it `may_lack` some, though not all, those are None.
    """

    def found(names: Sequence[str]) -> list[str]:
        return _columns_in(names, name, columns, may_lack, argument)

    if is_json(name):
        yield from _json_rows(stream, name, columns, start)
        return
    if not is_binary_table(name):
        yield from _csv_rows(stream, name, columns, found, start)
        return
    pyarrow = imported("pyarrow", "corpora", f"{name}: reading parquet and arrow")
    try:
        batches = _parquet if name.lower().endswith(".parquet") else _arrow
        for batch in batches(stream, found, start):
            there, none = batch.schema.names, [None] * batch.num_rows
            yield list(zip(*(_values(batch.column(c), pyarrow) if c in there else none for c in columns)))
            del batch
    except (pyarrow.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # the disk's or the network's
            raise
        raise CorpusError(f"{name}: the table is broken: {error}") from error


def _parquet(stream: Any, found: _Found, start: int) -> Iterator[Any]:
    parquet = imported("pyarrow.parquet", "corpora", "reading parquet")
    options = {"buffer_size": 1 << 20, "pre_buffer": False, "page_checksum_verification": True}
    file = parquet.ParquetFile(stream, **options)
    columns = found(file.schema_arrow.names)
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


def _arrow(stream: Any, found: _Found, start: int) -> Iterator[Any]:
    ipc = imported("pyarrow.ipc", "corpora", "reading arrow")
    is_file = stream.read(len(_IPC_FILE)) == _IPC_FILE
    stream.seek(0)
    reader = (ipc.open_file if is_file else ipc.open_stream)(stream)
    found(reader.schema.names)
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


def _csv_rows(
    stream: Any, name: str, columns: Sequence[str], found: _Found, start: int
) -> Iterator[list[Row]]:
    rows = csv_rows(stream)
    header = [field.decode("utf-8", "surrogateescape") for field in next(rows, [])]
    try:
        require_no_utf_16("".join(header[:1]))
    except ValueError as error:
        raise CorpusError(f"{name}: {error}") from None
    there = found(header)
    places = [header.index(column) if column in there else None for column in columns]
    some: list[Row] = []
    before = start
    try:
        for row in islice(rows, start, None):
            some.append(tuple(None if at is None or at >= len(row) else row[at] for at in places))
            del row  # which may be a gigabyte
            if len(some) == _ROWS:
                yield some
                some, before = [], before + _ROWS
    except Exception as error:
        number = before + len(some) + 1
        if some:  # those before the damage
            yield some
        if isinstance(error, CorpusError):  # of csv_rows.py
            raise CorpusError(f"{name}: row {number}: {error}") from None
        raise
    if some:
        yield some


def _json_rows(stream: Any, name: str, columns: Sequence[str], start: int) -> Iterator[list[Row]]:
    """The rows of a file of JSON, held in memory: an array of objects, one object or chat, or one a line."""
    import json  # not at the top: `count` of texts starts without it

    from .chat_records import as_record

    data = stream.read()
    try:
        found = json.loads(data)
    except RecursionError:
        raise CorpusError(f"{name}: not JSON: nested too deep") from None
    except ValueError as error:
        if not str(error).startswith("Extra data"):  # after a whole value
            raise CorpusError(f"{name}: not JSON: {error}") from None
        found = list(_json_lines(data, name))
    found = as_record(found)
    every = found if isinstance(found, list) else [found]
    for at in range(start, len(every), _ROWS):
        some = (
            record if isinstance(record, dict) else {} for record in map(as_record, every[at : at + _ROWS])
        )
        yield [tuple(map(record.get, columns)) for record in some]


def _json_lines(data: bytes, name: str) -> Iterator[dict[str, Any]]:
    """The objects of JSON lines, as `datasets` writes them to files named .json; blank lines have none."""
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            try:
                yield fields_of(decoded_line(line))
            except ValueError as error:
                raise CorpusError(f"{name}: neither JSON nor JSON lines: line {number}: {error}") from None


def _columns_in(
    names: Sequence[str], name: str, columns: Sequence[str], may_lack: bool, argument: str
) -> list[str]:
    """The columns of these that a table has. `CorpusError` says which it does if it has none, or may not lack any.

    Two columns of one name are refused: which of them has the texts is for the owner to say.
    """
    found = [column for column in columns if column in names]
    for column in found:
        if (times := names.count(column)) > 1:
            raise CorpusError(
                f"{name}: there are {times} columns {printable(column)}; give each a name of its own"
            )
    there = ", ".join(map(printable, names)) or "none"
    if may_lack and not found:
        raise CorpusError(f"{name}: there is none of the columns {', '.join(columns)}; there are {there}")
    for column in columns:
        if column not in found and not may_lack:
            raise CorpusError(
                f"{name}: there is no column {printable(column)}; {argument}=NAME names another one; there are {there}"
            )
    return found
