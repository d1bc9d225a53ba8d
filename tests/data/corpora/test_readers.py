"""Texts of records, and a report of those that have none."""

from __future__ import annotations

import io
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reference import write_metadata
from small_models import CHATML, with_template

from ggufbpe import count_files
from ggufbpe.data.corpora.readers import has_records, read_lines, records


@pytest.mark.parametrize(
    ("name", "field", "expected"),
    [
        ("a.jsonl", None, True),
        ("a.jsonl.gz", None, True),
        ("a.parquet", None, True),
        ("a.txt", None, False),
        ("a.csv", None, False),
        ("a.csv", "text", True),
    ],
)
def test_has_records(name: str, field: str | None, expected: bool) -> None:
    assert has_records(name, field) is expected


def read(
    data: bytes, name: str, field: str | None = None, also: str | None = None
) -> tuple[list[Any], list[str]]:
    """The records, and what is reported."""
    told: list[str] = []
    found = list(
        records(io.BytesIO(data), name, field, lambda file, error: told.append(f"{file}: {error}"), also)
    )
    return found, told


def test_json_lines() -> None:
    data = b'{"text": "a", "id": 1}\n\n{"text": "\\u00e9"}\n{"id": 2}\nnot JSON\n'
    found, told = read(data, "a.jsonl")
    assert [(text, fields.get("id")) for text, fields in found] == [(b"a", 1), ("é".encode(), None)]
    assert len(told) == 1
    assert told[0].startswith("a.jsonl: left out: line 4: ")
    assert told[0].endswith("(the first of 2 lines)")


def test_another_field() -> None:
    found, told = read(b'{"text": "a", "body": "b"}\n', "a.jsonl", "body")
    assert ([text for text, _ in found], told) == ([b"b"], [])


def test_comma_separated_values() -> None:
    found, told = read(b"id,text\n1,a\n2\n", "a.csv", "text", also="id")
    assert found == [(b"a", {"id": "1"})]
    assert told == ["a.csv: left out: row 2: the column 'text' has no text"]


def test_parquet() -> None:
    stream = io.BytesIO()
    pq.write_table(pa.table({"text": ["a", None, "b"], "id": [1, 2, 3]}), stream)
    found, told = read(stream.getvalue(), "a.parquet", also="id")
    assert found == [(b"a", {"id": 1}), (b"b", {"id": 3})]
    assert told == ["a.parquet: left out: row 2: the column 'text' has no text"]


def test_read_lines() -> None:
    told: list[str] = []

    def number(line: bytes) -> int:
        return int(line)

    found = list(
        read_lines(io.BytesIO(b"1\n\nx\n3"), "n", lambda name, error: told.append(str(error)), number)
    )
    assert found == [1, 3]
    assert len(told) == 1
    assert told[0].startswith("left out: line 3: invalid literal")


SHAREGPT = {"conversations": [{"from": "human", "value": "hello"}, {"from": "gpt", "value": "world"}]}
ALPACA = {"instruction": "hello", "output": "world"}
MESSAGES = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "world"}]


def test_chats_that_are_counted_have_the_forms_that_encode_reads(tmp_path: Path) -> None:
    """Lines of JSON and rows of tables, with columns that some records lack."""
    model = write_metadata(tmp_path / "model.gguf", with_template(CHATML))
    (tmp_path / "plain.json").write_text(json.dumps(MESSAGES))
    one = count_files(model, tmp_path / "plain.json", chats=True).tokens
    (tmp_path / "a.jsonl").write_text(f"{json.dumps(SHAREGPT)}\n{json.dumps(ALPACA)}\n")
    assert count_files(model, tmp_path / "a.jsonl", chats=True).tokens == 2 * one
    rows = [{"messages": MESSAGES}, ALPACA, {"instruction": "hello"}]
    pq.write_table(
        pa.Table.from_pylist([{"messages": None, **ALPACA, **row} for row in rows]), tmp_path / "a.parquet"
    )
    errors: list[str] = []
    found = count_files(
        model, tmp_path / "a.parquet", chats=True, report=lambda _, error: errors.append(str(error))
    )
    assert (found.tokens, errors) == (3 * one, [])
    (tmp_path / "b.jsonl").write_text(json.dumps({"prompt": "a", "chosen": "b", "rejected": "c"}))
    with pytest.raises(ValueError, match="line 1: a preference pair, which is two chats"):
        count_files(model, tmp_path / "b.jsonl", chats=True)


def test_messages_of_a_table_may_have_a_date(tmp_path: Path) -> None:
    """As in WildChat; by way of JSON, which has no dates, this ended in a TypeError."""
    model = write_metadata(tmp_path / "model.gguf", with_template(CHATML))
    (tmp_path / "plain.json").write_text(json.dumps(MESSAGES))
    dated = [{**message, "timestamp": datetime(2024, 5, 6)} for message in MESSAGES]
    pq.write_table(pa.table({"messages": [dated]}), tmp_path / "dated.parquet")
    plain, found = (
        count_files(model, tmp_path / name, chats=True) for name in ("plain.json", "dated.parquet")
    )
    assert found.tokens == plain.tokens
