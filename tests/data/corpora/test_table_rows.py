"""Rows of parquet, Arrow, comma-separated values and JSON."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import ROOT
from recorded_chats import VOCABULARY

from ggufbpe import Tokenizer, check_corpus, encode_corpus
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


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("may_lack", [False, True])
def test_two_columns_of_one_name(name: str, may_lack: bool) -> None:
    table, stream = TABLE.rename_columns(["text", "id", "text"]), io.BytesIO()
    if name.endswith(".parquet"):
        pq.write_table(table, stream)
    elif name.endswith(".csv"):
        stream.write(b"text,id,text\na,b,c\n")
    else:
        with (pa.ipc.new_stream if name.startswith("stream") else pa.ipc.new_file)(
            stream, table.schema
        ) as writer:
            writer.write_table(table)
    stream.seek(0)
    with pytest.raises(CorpusError, match=f"{name}: there are 2 columns 'text'; give each a name of its own"):
        list(table_rows(stream, name, ["text"], may_lack=may_lack))
    stream.seek(0)
    assert next(table_rows(stream, name, ["id"], may_lack=may_lack))[0] == (
        (b"b",) if name == "a.csv" else (0,)
    )


@pytest.mark.parametrize("name", NAMES)
def test_none_of_the_columns_that_may_be_there(name: str) -> None:
    [row, *_] = next(iter(table_rows(io.BytesIO(written(name)), name, ["messages", "text"], may_lack=True)))
    assert row == (None, "é0".encode())
    with pytest.raises(
        CorpusError,
        match=f"{name}: there is none of the columns messages, prompt; there are 'text', 'id', 'kind'",
    ):
        list(table_rows(io.BytesIO(written(name)), name, ["messages", "prompt"], may_lack=True))


@pytest.mark.parametrize("name", NAMES[:3])
def test_a_table_that_is_cut_off(name: str) -> None:
    with pytest.raises(CorpusError, match=f"{name}: the table is broken"):
        list(table_rows(io.BytesIO(written(name)[:-200]), name, ["text"]))


def test_a_wrong_byte_in_a_page_with_a_checksum() -> None:
    stream = io.BytesIO()
    pq.write_table(TABLE, stream, write_page_checksum=True, compression="none", use_dictionary=False)
    data = stream.getvalue().replace("é250".encode(), "é350".encode(), 1)
    message = "could not verify page integrity, CRC checksum verification failed for page_ordinal 0"
    with pytest.raises(CorpusError, match=rf"a\.parquet: the table is broken: {message}$"):
        list(table_rows(io.BytesIO(data), "a.parquet", ["text"]))
    again = io.BytesIO()
    pq.write_table(pq.read_table(io.BytesIO(data)), again)  # docs/corpora.md says so
    [*_, last] = table_rows(again, "a.parquet", ["text"])
    assert last[-1] == (b"\xc3\xa9299",)
    page = " ".join((ROOT / "docs" / "corpora.md").read_text("utf-8").split())
    assert f'"the table is broken: {message}"' in page


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


NO_TEXTS = [
    (pa.array([3, 0, 7]), "a number"),
    (pa.array([True, False, True]), "true or false"),
    (pa.array([10**12] * 3), "a number"),
    (pa.array([[72, 105]] * 3), "a list"),
    (pa.array([1.5, None, 2.0]), "a number"),
    (pa.array([None, 1, 2]), "null"),
]


@pytest.mark.parametrize(("column", "kind"), NO_TEXTS)
def test_a_column_of_other_things_has_no_text(column: Any, kind: str, tmp_path: Path) -> None:
    """Python's `bytes` makes three NULs of 3, and "Hi" of [72, 105]."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": column}), path)
    tok = Tokenizer.from_gguf(VOCABULARY)
    with pytest.raises(CorpusError, match=f"row 1: the column 'text' has {kind}, not a text"):
        encode_corpus(path, tok, tmp_path / "out")
    found = encode_corpus(path, tok, tmp_path / "out", on_error="skip")
    assert (found.documents, found.bad_records) == (0, 3)


# ---- JSON -----------------------------------------------------------------------------------------------

RECORDS = [{"instruction": f"question {number}", "output": "answer"} for number in range(3)]
LINES = "".join(json.dumps(record) + "\n" for record in RECORDS)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(RECORDS),
        json.dumps(RECORDS, indent=1),
        LINES,
        LINES.replace("\n", "\r\n\n"),
        "\ufeff" + LINES,
    ],
)
@pytest.mark.parametrize("start", [0, 2])
def test_json_is_an_array_or_lines(text: str, start: int) -> None:
    """`datasets` writes JSON lines to files named .json."""
    batches = table_rows(io.BytesIO(text.encode()), "a.json", ["instruction", "system"], start)
    assert [row for batch in batches for row in batch] == [
        (record["instruction"], None) for record in RECORDS[start:]
    ]


NO_JSON = [
    ("nonsense", "not JSON: Expecting value"),
    ("[" * 100_000, "not JSON"),
    (json.dumps(RECORDS)[:-9], "not JSON"),
    (LINES + "nonsense\n", "neither JSON nor JSON lines: line 4: not JSON"),
    (LINES + LINES[:20], "neither JSON nor JSON lines: line 4: not JSON"),
    (json.dumps(RECORDS) + "\n" + json.dumps(RECORDS), "line 1: not an object"),
    (json.dumps(RECORDS[0], indent=1) * 2, "line 1: not JSON"),
]


@pytest.mark.parametrize(("text", "reason"), NO_JSON)
def test_a_file_that_is_no_json_ends_the_run(text: str, reason: str, tmp_path: Path) -> None:
    """Even when bad records are left out, since all chats of the file would be one of them."""
    (tmp_path / "a.json").write_text(text)
    options: dict[str, Any] = {"chats": True, "chat_template": "known:chatml", "on_error": "skip"}
    with pytest.raises(CorpusError, match=rf"a\.json: .*{reason}"):
        encode_corpus(tmp_path / "a.json", Tokenizer.from_gguf(VOCABULARY), tmp_path / "out", **options)


def test_json_lines_in_a_file_of_json_are_encoded(tmp_path: Path) -> None:
    tok = Tokenizer.from_gguf(VOCABULARY)
    (tmp_path / "a.json").write_text(LINES + '{"text": "no chat"}\n')
    found = encode_corpus(
        tmp_path / "a.json",
        tok,
        tmp_path / "out",
        chats=True,
        chat_template="known:chatml",
        on_error="skip",
    )
    assert (found.documents, found.bad_records) == (len(RECORDS), 1)
    assert check_corpus(tmp_path / "out", tok)[1:] == ([], len(RECORDS), "")
