"""Rows of parquet, Arrow and comma-separated values."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ggufbpe.data.corpora.records import CorpusError
from ggufbpe.data.corpora.table_rows import binary_values, table_rows

COUNT = 300  # rows: more than are decoded at a time
TABLE = pa.table(
    {
        "text": [f"é{number}" for number in range(COUNT)],
        "id": list(range(COUNT)),
        "kind": pa.array(["x", None] * (COUNT // 2)).dictionary_encode(),
    }
)


def written(name: str) -> bytes:
    """The table in the format of a file's name."""
    stream = io.BytesIO()
    if name.endswith(".parquet"):
        pq.write_table(TABLE, stream, row_group_size=100)
    elif name.endswith(".csv"):
        stream.write("\r\n".join(["text,id,kind", *(f'"é{n}",{n},x' for n in range(COUNT))]).encode())
    else:
        make = pa.ipc.new_stream if name.startswith("stream") else pa.ipc.new_file
        with make(stream, TABLE.schema) as writer:
            writer.write_table(TABLE, max_chunksize=130)
    return stream.getvalue()


NAMES = ["a.parquet", "a.arrow", "stream.arrow", "a.csv"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("start", [0, 1, 100, 129, 130, 299, 300])
def test_rows_from_any_start(name: str, start: int) -> None:
    batches = list(table_rows(io.BytesIO(written(name)), name, ["id", "text"], start))
    rows = [row for batch in batches for row in batch]
    numbers: list[Any] = [b"%d" % n if name == "a.csv" else n for n in range(start, COUNT)]
    assert rows == [(number, f"é{n}".encode()) for number, n in zip(numbers, range(start, COUNT))]
    assert max(map(len, batches), default=0) <= 128


def test_words_of_a_dictionary() -> None:
    [batch, *_] = table_rows(io.BytesIO(written("a.parquet")), "a.parquet", ["kind"])
    assert batch[:2] == [(b"x",), (None,)]


@pytest.mark.parametrize("name", NAMES)
def test_a_column_that_is_not_there(name: str) -> None:
    with pytest.raises(
        CorpusError, match=f"{name}: there is no column 'body'; .* there are 'text', 'id', 'kind'"
    ):
        list(table_rows(io.BytesIO(written(name)), name, ["body"]))


@pytest.mark.parametrize("name", NAMES[:3])
def test_a_table_that_is_cut_off(name: str) -> None:
    with pytest.raises(CorpusError, match=f"{name}: the table is broken"):
        list(table_rows(io.BytesIO(written(name)[:-200]), name, ["text"]))


def test_an_error_of_the_disk_is_no_broken_table() -> None:
    class Failing(io.BytesIO):
        def read(self, *_: object) -> bytes:
            raise OSError(5, "Input/output error")

    with pytest.raises(OSError, match="Input/output error") as error:
        list(table_rows(Failing(written("a.parquet")), "a.parquet", ["text"]))
    assert error.value.errno == 5


def test_binary_values() -> None:
    column = pa.array([b"a", None, b"", b"bcd"], pa.large_binary())
    assert binary_values(column) == [b"a", None, b"", b"bcd"]
    assert binary_values(column.slice(2)) == [b"", b"bcd"]
    assert binary_values(column.slice(0, 0)) == []
