"""Reads the texts in files of records: JSON lines and tables."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from ..._util.errors import printable
from ..._util.utf8 import original_bytes
from .records import (
    DEFAULT_FIELD,
    CorpusError,
    Report,
    as_text,
    decoded_line,
    fields_of,
    has_json_lines,
    is_binary_table,
    is_json,
    is_table,
    lines,
    record_of,
)
from .table_rows import Row, table_rows

S = TypeVar("S")
T = TypeVar("T")


def has_records(name: str, field: str | None) -> bool:
    """Whether a file has records: JSON lines, parquet, arrow, and any file if `field` is given."""
    return field is not None or has_json_lines(name) or is_binary_table(name)


def records(
    stream: Any, name: str, field: str | None, report: Report, also: str | None = None
) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """The texts of records as bytes, with their fields; of a table and a very long line, only the field `also`.

    Records without a text are reported together, at the end. A file not named as a table is read as JSON lines.
    """
    if is_table(name):
        yield from _of_table(stream, name, field, also, report)
        return
    from .long_lines import LONG_LINE, fields_of_long_line  # it imports json

    columns = [DEFAULT_FIELD if field is None else field, *([] if also is None else [also])]

    def read(line: bytes) -> tuple[bytes, dict[str, Any]]:
        if len(line) >= LONG_LINE and (fields := fields_of_long_line(line, columns)):
            text, *others = fields
            if isinstance(text, bytes):
                return text, dict(zip(columns[1:], map(as_text, others)))
        record = record_of(decoded_line(line), field)
        return original_bytes(record.text), record.fields

    yield from read_lines(stream, name, report, read)


def read_lines(stream: Any, name: str, report: Report, read: Callable[[bytes], T]) -> Iterator[T]:
    """The results of `read` for each line. Its `ValueError`s are reported together, at the end."""

    def numbered() -> Iterator[tuple[int, bytes]]:
        for number, line in enumerate(lines(stream), 1):
            if number == 1:
                line = line.removeprefix(BOM_UTF8)
            if line.strip():
                yield number, line

    return _read_each(numbered(), read, name, "line", report)


def read_chat_records(
    stream: Any, name: str, report: Report, read: Callable[[dict[str, Any]], T], also: str | None = None
) -> Iterator[T]:
    """The results of `read` for the fields of each record: of a table those of chats and `also`, of a line all.

    A file that is named neither as a table nor as JSON is read as JSON lines.
    """
    if not (is_table(name) or is_json(name)):
        return read_lines(stream, name, report, lambda line: read(fields_of(decoded_line(line))))
    from .chat_records import COLUMNS

    columns = [*COLUMNS, *([] if also is None else [also])]
    rows = (row for some in table_rows(stream, name, columns, may_lack=True) for row in some)

    def read_row(row: Row) -> T:
        return read(dict(zip(columns, map(as_text, row))))

    return _read_each(enumerate(rows, 1), read_row, name, "row", report)


def _read_each(
    numbered: Iterable[tuple[int, S]], read: Callable[[S], T], name: str, what: str, report: Report
) -> Iterator[T]:
    """The results of `read` for each line or row; its `ValueError`s are reported together, at the end."""
    bad, first = 0, ""
    for number, given in numbered:
        try:
            result = read(given)
        except ValueError as error:
            bad, first = bad + 1, first or f"{what} {number}: {error}"
        else:
            yield result
    if bad:
        left_out = "" if bad == 1 else f" (the first of {bad} {what}s)"
        report(name, CorpusError(f"left out: {first}{left_out}"))


def _of_table(
    stream: Any, name: str, field: str | None, also: str | None, report: Report
) -> Iterator[tuple[bytes, dict[str, Any]]]:
    column = DEFAULT_FIELD if field is None else field
    columns = [column, *([] if also is None else [also])]
    rows = (row for some in table_rows(stream, name, columns) for row in some)

    def read(row: Row) -> tuple[bytes, dict[str, Any]]:
        text, *others = row
        if not isinstance(text, (str, bytes)):
            raise ValueError(f"the column {printable(column)} has no text")
        data = text if isinstance(text, bytes) else original_bytes(text)
        return data, dict(zip(columns[1:], map(as_text, others)))

    return _read_each(enumerate(rows, 1), read, name, "row", report)
