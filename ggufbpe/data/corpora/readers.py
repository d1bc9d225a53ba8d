"""Reads the texts in files of records: JSON lines and tables."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from ..._util.errors import printable
from .records import (
    DEFAULT_FIELD,
    CorpusError,
    Report,
    fields_of,
    has_json_lines,
    is_binary_table,
    is_json,
    is_table,
    lines,
    record_of,
    utf8,
)
from .table_rows import table_rows

T = TypeVar("T")
_Found = Iterator["tuple[int, tuple[bytes, dict[str, Any]] | ValueError]"]


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
        yield from _reported(_of_table(stream, name, field, also), name, "row", report)
        return
    from .long_lines import LONG_LINE, fields_of_long_line  # it imports json

    columns = [DEFAULT_FIELD if field is None else field, *([] if also is None else [also])]

    def read(line: bytes) -> tuple[bytes, dict[str, Any]]:
        if len(line) >= LONG_LINE and (fields := fields_of_long_line(line, columns)):
            text, *others = fields
            if isinstance(text, bytes):
                return text, dict(zip(columns[1:], map(_as_text, others)))
        record = record_of(line.decode("utf-8", "surrogateescape"), field)
        return utf8(record.text), record.fields

    yield from read_lines(stream, name, report, read)


def read_lines(stream: Any, name: str, report: Report, read: Callable[[bytes], T]) -> Iterator[T]:
    """The results of `read` for each line. Its `ValueError`s are reported together, at the end."""

    def found() -> Iterator[tuple[int, T | ValueError]]:
        for number, line in enumerate(lines(stream), 1):
            if number == 1:
                line = line.removeprefix(BOM_UTF8)
            if not line.strip():
                continue
            try:
                yield number, read(line)
            except ValueError as error:
                yield number, error

    return _reported(found(), name, "line", report)


def chats_of_table(stream: Any, name: str, report: Report, read: Callable[[bytes], T]) -> Iterator[T]:
    """The results of `read` for the chat in each row of a table, given as the body of a request in JSON."""
    import json  # not at the top: `count` of texts starts without them

    from .chat_records import chat_of_record

    def read_record(record: dict[str, Any]) -> T:
        return read(json.dumps(chat_of_record(record).body).encode())

    return read_chat_records(stream, name, report, read_record)


def read_chat_records(
    stream: Any, name: str, report: Report, read: Callable[[dict[str, Any]], T], also: str | None = None
) -> Iterator[T]:
    """The results of `read` for the fields of each record: of a table those of chats and `also`, of a line all.

    A file that is named neither as a table nor as JSON is read as JSON lines.
    """
    if not (is_table(name) or is_json(name)):
        return read_lines(
            stream, name, report, lambda line: read(fields_of(line.decode("utf-8", "surrogateescape")))
        )
    from .chat_records import COLUMNS

    columns = [*COLUMNS, *([] if also is None else [also])]
    rows = (row for some in table_rows(stream, name, columns, may_lack=True) for row in some)

    def found() -> Iterator[tuple[int, T | ValueError]]:
        for number, row in enumerate(rows, 1):
            try:
                yield number, read(dict(zip(columns, map(_as_text, row))))
            except ValueError as error:
                yield number, error

    return _reported(found(), name, "row", report)


def _reported(
    results: Iterator[tuple[int, T | ValueError]], name: str, what: str, report: Report
) -> Iterator[T]:
    """The results; errors among them are reported together, at the end."""
    bad, first = 0, ""
    for number, one in results:
        if isinstance(one, ValueError):
            bad, first = bad + 1, first or f"{what} {number}: {one}"
        else:
            yield one
    if bad:
        left_out = "" if bad == 1 else f" (the first of {bad} {what}s)"
        report(name, CorpusError(f"left out: {first}{left_out}"))


def _of_table(stream: Any, name: str, field: str | None, also: str | None) -> _Found:
    column = DEFAULT_FIELD if field is None else field
    columns = [column, *([] if also is None else [also])]
    rows = (row for some in table_rows(stream, name, columns) for row in some)
    for number, (text, *others) in enumerate(rows, 1):
        if not isinstance(text, (str, bytes)):
            yield number, ValueError(f"the column {printable(column)} has no text")
            continue
        fields = dict(zip(columns[1:], map(_as_text, others)))
        yield number, (text if isinstance(text, bytes) else utf8(text), fields)


def _as_text(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
