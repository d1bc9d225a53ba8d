"""Writes parquet, a row for each document, in as much memory as a page takes.

pyarrow's writer makes one page of a row, however long it is, with some copies of it in memory, and refuses rows of 2
GiB. In version 1 of data pages a row may continue in the next page, so this module writes ids as they come. Pages are
compressed by pyarrow, which also reads such files (row_formats.py).

Encoding a text file of 150 MB takes 1,276 MB of memory with pyarrow's writer, also with pages of 1 MB, and 172 MB with
this one; 161 MB of JSON lines with short texts take 247 MB and 140 MB.

Sources: parquet-format's parquet.thrift (structs and the numbers of their fields), Encodings.md and LogicalTypes.md.
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._util.extras import imported
from .byte_formats import Ids, Layout
from .hashed_files import FileFacts, hashed_file
from .row_formats import COLUMN, GROUP_ROWS, GROUP_TOKENS, arrow_schema
from .storage import Folder
from .thrift import Value, binary, boolean, i8, i32, i64, list_of, struct, varint

_MAGIC = b"PAR1"
# A row group of rows shorter than GROUP_TOKENS is one page: only a longer row goes on in the next.
_PAGE = 2 * GROUP_TOKENS + GROUP_ROWS
_INT32 = i32(1)  # enum Type
_PLAIN, _RLE = i32(0), i32(3)  # enum Encoding
_ZSTD = i32(6)  # enum CompressionCodec
_OPTIONAL, _REPEATED = i32(1), i32(2)  # enum FieldRepetitionType
_LIST, _UNSIGNED = i32(3), {16: i32(12), 32: i32(13)}  # enum ConvertedType
_HAS_ID, _EMPTY = 3, 1  # definition levels: both the list and its elements could be null


class ParquetWriter:
    """Writes a column of lists. Where pages and row groups end depends on the lengths of rows, not on chunks.

    An entry of a page is an id, or an empty row.
    """

    def __init__(self, form: Any, folder: Folder, stem: str, layout: Layout) -> None:
        self._pyarrow = imported("pyarrow", "corpora", "writing parquet")
        self._layout = layout
        self._data = hashed_file(folder, stem + form.suffix, [_MAGIC])
        self._repetitions = np.empty(_PAGE, "u1")  # by entry: 0 begins a row
        self._definitions = np.empty(_PAGE, "u1")
        self._ids = np.empty(_PAGE, "<u4")
        self._in_page = self._ids_in_page = 0  # entries and ids
        self._open = 0  # ids of a row that has not ended
        self._groups: list[Value] = []
        self._all_rows = 0  # of these
        self._begin_group()

    def _begin_group(self) -> None:
        self._rows = self._tokens = self._entries = self._uncompressed = 0
        self._begin = self._data.size

    def write(self, ids: list[npt.NDArray[Any]], lengths: npt.NDArray[Any]) -> None:
        queue = Ids(ids)
        while len(lengths):
            ends = np.cumsum(lengths[: GROUP_ROWS - self._rows])
            count = int(np.searchsorted(ends, GROUP_TOKENS - self._tokens)) + 1
            some, lengths = lengths[: min(count, len(ends))], lengths[min(count, len(ends)) :]
            self._end_rows(queue, some)
            if self._tokens >= GROUP_TOKENS or self._rows >= GROUP_ROWS:
                self._end_group()
        for part in queue.rest():
            self._append(Ids([part]), len(part), np.arange(0 if self._open else 1), np.arange(0))
            self._open += len(part)

    def _end_rows(self, ids: Ids, lengths: npt.NDArray[Any]) -> None:
        sizes = np.maximum(lengths, 1)
        sizes[0] -= self._open
        ends = np.cumsum(sizes)
        begins = ends - sizes
        self._append(ids, int(ends[-1]), begins[1 if self._open else 0 :], begins[lengths == 0])
        self._rows += len(lengths)
        self._tokens += int(lengths.sum())
        self._open = 0

    def _append(self, ids: Ids, count: int, begins: npt.NDArray[Any], empty: npt.NDArray[Any]) -> None:
        """Append entries, of which some begin rows and some are `empty` rows; both are given in ascending order."""
        at = 0
        while at < count:
            size = min(count - at, _PAGE - self._in_page)
            page = slice(self._in_page, self._in_page + size)
            self._repetitions[page] = 1
            self._repetitions[page][self._between(begins, at, at + size) - at] = 0
            without = self._between(empty, at, at + size) - at
            self._definitions[page] = _HAS_ID
            self._definitions[page][without] = _EMPTY
            for part in ids.take(size - len(without)):
                self._ids[self._ids_in_page : self._ids_in_page + len(part)] = part
                self._ids_in_page += len(part)
            self._in_page += size
            at += size
            if self._in_page == _PAGE:
                self._end_page()

    def _between(self, places: npt.NDArray[Any], begin: int, end: int) -> Any:
        low, high = np.searchsorted(places, (begin, end))
        return places[low:high]

    # ---- pages and row groups -----------------------------------------------------------------------

    def _end_page(self) -> None:
        count = self._in_page
        parts = [
            self._levels(self._repetitions[:count], 1),
            self._levels(self._definitions[:count], 2),
            self._ids[: self._ids_in_page].tobytes(),
        ]
        page = b"".join(parts)
        compressed = self._pyarrow.compress(page, "zstd")
        facts = struct({1: i32(count), 2: _PLAIN, 3: _RLE, 4: _RLE})
        _, head = struct({1: i32(0), 2: i32(len(page)), 3: i32(compressed.size), 5: facts})
        self._data.write(head)
        self._data.write(compressed)
        self._entries += count
        self._uncompressed += len(head) + len(page)
        self._in_page = self._ids_in_page = 0

    def _levels(self, levels: npt.NDArray[Any], width: int) -> bytes:
        """Numbers of `width` bits in the hybrid of run lengths and bits: one run, of one number or of bits."""
        first = int(levels[0])
        if (levels == first).all():
            encoded = varint(len(levels) << 1) + bytes([first])
        else:
            bits = np.unpackbits(levels[:, None], axis=1, count=width, bitorder="little")
            groups = -(-len(levels) // 8)
            packed = np.packbits(bits, bitorder="little").tobytes()
            encoded = varint(groups << 1 | 1) + packed.ljust(groups * width, b"\0")
        return len(encoded).to_bytes(4, "little") + encoded

    def _end_group(self) -> None:
        if self._in_page:
            self._end_page()
        size = self._data.size - self._begin
        column = struct(
            {
                1: _INT32,
                2: list_of([_PLAIN, _RLE]),
                3: list_of([binary(part.encode()) for part in (COLUMN, "list", "element")]),
                4: _ZSTD,
                5: i64(self._entries),
                6: i64(self._uncompressed),
                7: i64(size),
                9: i64(self._begin),
            }
        )
        chunks = list_of([struct({2: i64(self._begin), 3: column})])
        self._groups.append(struct({1: chunks, 2: i64(self._uncompressed), 3: i64(self._rows), 6: i64(size)}))
        self._all_rows += self._rows
        self._begin_group()

    # ---- the end of the file ------------------------------------------------------------------------

    def finish(self) -> list[FileFacts]:
        if self._rows:
            self._end_group()
        _, footer = self._footer()
        self._data.write(footer + len(footer).to_bytes(4, "little") + _MAGIC)
        return [self._data.finish()]

    def discard(self) -> None:
        self._data.discard()

    def _footer(self) -> Value:
        from ... import __version__

        arrow = base64.b64encode(arrow_schema(self._layout).serialize().to_pybytes())
        return struct(
            {
                1: i32(2),
                2: list_of(_schema(8 * np.dtype(self._layout.dtype).itemsize)),
                3: i64(self._all_rows),
                4: list_of(self._groups),
                5: list_of([struct({1: binary(b"ARROW:schema"), 2: binary(arrow)})]),
                6: binary(f"ggufbpe version {__version__}".encode()),
            }
        )


def _schema(width: int) -> list[Value]:
    """The elements of the tree of columns, each before its children: what pyarrow makes of a list of integers."""
    is_list = struct({3: struct({})})
    is_unsigned = struct({10: struct({1: i8(width), 2: boolean(False)})})
    return [
        struct({4: binary(b"schema"), 5: i32(1)}),
        struct({3: _OPTIONAL, 4: binary(COLUMN.encode()), 5: i32(1), 6: _LIST, 10: is_list}),
        struct({3: _REPEATED, 4: binary(b"list"), 5: i32(1)}),
        struct({1: _INT32, 3: _OPTIONAL, 4: binary(b"element"), 6: _UNSIGNED[width], 10: is_unsigned}),
    ]
