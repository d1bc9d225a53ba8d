"""One document that is most of a corpus: how much memory it takes, and that it is read as a short one is."""

from __future__ import annotations

import csv
import io
import itertools
import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import Run, posix_only, run
from conftest import GPT2

from ggufbpe import Tokenizer, count_files, encode_corpus, stats
from ggufbpe._util.utf8 import original_bytes
from ggufbpe.data.corpora import byte_formats, long_lines, parquet_writer
from ggufbpe.data.corpora import csv_rows as module
from ggufbpe.data.corpora.csv_rows import csv_rows
from ggufbpe.data.corpora.long_lines import text_of_long_line
from ggufbpe.data.corpora.records import CorpusError, decoded_line, record_of
from ggufbpe.data.corpora.shard_formats import FORMS
from ggufbpe.data.corpora.storage import folder_at
from ggufbpe.data.corpora.table_rows import table_rows
from ggufbpe.data.statistics import file_counts, text_groups
from ggufbpe.tokenizer.chunking import chunks_of_stream

__all__ = ["run"]  # the fixture

# ---- the same as a short one ----------------------------------------------------------------------------


def read_or_error(data: bytes) -> list[list[bytes]] | str:
    try:
        return list(csv_rows(io.BytesIO(data)))
    except CorpusError as error:
        return str(error).partition(";")[0]


def rows_or_error(data: bytes) -> list[list[bytes]] | str:
    """The rows as Python reads them; an error where a row that is added would be taken into a quoted field."""
    if rows_of_python(data + b"\nZ")[-1] != [b"Z"]:
        return "a quoted field is never closed"
    return rows_of_python(data)


def rows_of_python(data: bytes) -> list[list[bytes]]:
    text = io.TextIOWrapper(io.BytesIO(data), "utf-8-sig", "surrogateescape", newline="")
    return [[field.encode("utf-8", "surrogateescape") for field in row] for row in csv.reader(text) if row]


@pytest.mark.slow
@pytest.mark.parametrize("block", [1, 3, 1 << 20])
def test_comma_separated_values_are_read_as_python_reads_them(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BLOCK", block)
    every = (bytes(text) for size in range(7) for text in itertools.product(b'a",\r\n', repeat=size))
    assert [data for data in every if read_or_error(data) != rows_or_error(data)] == []


@pytest.mark.parametrize("rows", [b'text\na\n"b ""c""\nd\n', b'text\na\n"b ""c""\nd""'])
def test_what_is_behind_a_quote_that_is_never_closed_is_no_document(rows: bytes, tmp_path: Path) -> None:
    """Python's csv takes all of the file that follows for one field."""
    path, tok = tmp_path / "a.csv", Tokenizer.from_gguf(GPT2)
    path.write_bytes(rows)
    message = r"a\.csv: row 2: a quoted field is never closed; it begins with 'b "
    for read in (
        lambda: encode_corpus(path, tok, tmp_path / "out"),
        lambda: count_files(tok, path, field="text"),
    ):
        with pytest.raises(CorpusError, match=message):
            read()
    found = encode_corpus(path, tok, tmp_path / "out", on_error="skip")
    assert (found.documents, found.bad_records) == (1, 1)


@pytest.mark.parametrize(
    ("rows", "start", "place", "beginning"),
    [
        ("a\n" * 300 + '"b', 0, "row 301", "b"),
        ("a\n" * 300 + '"b', 200, "row 301", "b"),
        ('"' + "é" * 39, 0, "row 1", "é" * 20),
        ('"a' + "é" * 39, 0, "row 1", "a" + "é" * 19),  # the next one has its first byte among the first 40
    ],
)
def test_a_quote_that_is_never_closed_is_named_by_its_row_and_what_follows_it(
    rows: str, start: int, place: str, beginning: str
) -> None:
    with pytest.raises(CorpusError) as error:
        list(table_rows(io.BytesIO(f"text\n{rows}".encode()), "a.csv", ["text"], start))
    problem = "a quoted field is never closed; it begins with"
    assert str(error.value) == f"a.csv: {place}: {problem} {beginning!r}"


def test_a_byte_order_mark_is_not_of_the_first_column() -> None:
    assert list(csv_rows(io.BytesIO(b"\xef\xbb\xbfid,text\n"))) == [[b"id", b"text"]]


class Searched(bytes):
    """Bytes that count how many of them are looked at."""

    count = 0

    def find(self, wanted: Any, start: Any = 0, end: Any = None) -> int:
        found = super().find(wanted, start, end)
        type(self).count += (found if found >= 0 else len(self) if end is None else end) - start
        return found


ROWS = [b"1,some text\n", b"1,some text\r\n", b"1,some text\r", b'1,"some text"\r', b"1,a\r2,b\r3,c\n"]


@pytest.mark.parametrize("some", ROWS)
def test_each_byte_is_looked_at_a_few_times_whatever_ends_a_row(some: bytes) -> None:
    data = Searched(some * 10_000)
    blocks = iter([data])
    Searched.count = 0
    assert list(csv_rows(Mock(read=lambda _: next(blocks, b"")))) == rows_of_python(data)
    assert Searched.count < 4 * len(data)


ESCAPES = [
    b"\\n",
    b"\\\\",
    b'\\"',
    b"\\u00e9",
    b"\\ud83d\\ude00",
    b"\\ud83d",
    b"\\uDE00",
    b"\\uDC00\\\\u",
    b"\\udcff",
]
PIECES = [b"a", b"bcd", "é者😀".encode(), *ESCAPES]
BROKEN = [b"\t", b"\\x", b'"', b"\xff", b"\xe8\x80"]


def text_or_none(line: bytes) -> bytes | None:
    try:
        return original_bytes(record_of(decoded_line(line), "text").text)
    except ValueError:
        return None


@pytest.mark.slow
@pytest.mark.parametrize("pieces", [PIECES[:3], PIECES[:-4], PIECES, PIECES + BROKEN], ids=len)
def test_long_lines_of_json_are_read_as_short_ones(
    pieces: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(1)
    monkeypatch.setattr(long_lines, "_LONG", 5)
    for _ in range(2000):
        monkeypatch.setattr(long_lines, "_PIECE", rng.randrange(24, 48))
        fields = [b"".join(rng.choices(pieces, k=rng.choice([0, 3, 20, 60]))) for _ in range(4)]
        line = b'{"x": "%b", "text": "%b", "%b": [{"text": "%b"}]}' % tuple(fields)
        assert text_of_long_line(line, "text") == text_or_none(line), line


@pytest.mark.parametrize("size", [8, 60])
def test_long_records_are_counted_and_measured_as_short_ones(
    size: int, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(1)
    words = ["low ", "lower", "naïve ", "者", "<|endoftext|>", "\n", "it's ", "\udc80"]
    with (tmp_path / "a.jsonl").open("w") as file:
        for number in range(40):
            record = {"text": "".join(rng.choices(words, k=rng.randrange(60)))}
            record["kind"] = rng.choice(["a", "b" * 30, 3, None, ["c"]])
            file.write(json.dumps(record) + ("\n" if number % 5 else "\r\n\n"))
        file.write("{}\n[]\n")
    found = []
    for patched in (False, True):
        if patched:
            monkeypatch.setattr(long_lines, "LONG_LINE", size)
            monkeypatch.setattr(long_lines, "_LONG", size)
            monkeypatch.setattr(text_groups, "LONG_TEXT", size)
            monkeypatch.setattr(file_counts, "LONG_TEXT", size)
            monkeypatch.setattr(chunks_of_stream, "__defaults__", (True, 16))  # bytes of a chunk
        errors: list[Exception] = []
        by_kind = stats(
            GPT2,
            [tmp_path / "a.jsonl"],
            by_field="kind",
            report=lambda _, error, errors=errors: errors.append(error),
        )
        result = run("count", "-m", GPT2, "--json", tmp_path / "a.jsonl")
        found.append((by_kind.to_dict(), list(map(str, errors)), result))
    assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.parametrize("longest", [3, 50, 400])
def test_a_row_of_parquet_goes_on_in_the_next_page(
    longest: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_writer, "_PAGE", 24)
    monkeypatch.setattr(parquet_writer, "GROUP_TOKENS", 100)
    monkeypatch.setattr(parquet_writer, "GROUP_ROWS", 20)
    rng = np.random.default_rng(1)
    for number in range(30):
        lengths = rng.integers(0, longest, rng.integers(1, 60)) * rng.integers(0, 2)
        ids = rng.integers(0, 70_000, lengths.sum()).astype("uint32")
        written = []
        for cuts in ([], rng.integers(0, len(ids) + 1, 9), rng.integers(0, len(ids) + 1, 90)):
            written.append(write_shard(tmp_path / f"{number}-{len(cuts)}", ids, lengths, sorted(cuts)))
        assert written[0].read_bytes() == written[1].read_bytes() == written[2].read_bytes()
        rows = [part.tolist() for part in np.split(ids, np.cumsum(lengths)[:-1])]
        assert pq.read_table(written[0])["input_ids"].to_pylist() == rows
        batches = pq.ParquetFile(written[0]).iter_batches(7)
        assert [row for batch in batches for row in batch["input_ids"].to_pylist()] == rows


def write_shard(folder: Path, ids: Any, lengths: Any, cuts: list[int]) -> Path:
    """Ids written in several parts."""
    folder.mkdir()
    layout = byte_formats.Layout("uint32", "gpt2.gguf", None)
    writer = parquet_writer.ParquetWriter(FORMS["parquet"], folder_at(str(folder)), "part-00000", layout)
    ends = np.cumsum(lengths)
    begin = rows = 0
    for end in [*cuts, len(ids)]:
        stop = len(ends) if end == len(ids) else max(int(np.searchsorted(ends, end, "right")), rows)
        writer.write([ids[begin:end]], lengths[rows:stop])
        begin, rows = end, stop
    writer.finish()
    return folder / "part-00000.parquet"


def test_a_file_of_parquet_is_described_as_pyarrow_describes_it(tmp_path: Path) -> None:
    lengths = np.array([2, 0, 1])
    ours = pq.ParquetFile(write_shard(tmp_path / "a", np.arange(3, dtype="uint32"), lengths, []))
    table = pa.table({"input_ids": pa.array([[0, 1], [], [2]], pa.large_list(pa.uint32()))})
    pq.write_table(table, tmp_path / "b.parquet", compression="zstd", use_dictionary=False)
    theirs = pq.ParquetFile(tmp_path / "b.parquet")
    assert ours.schema_arrow.equals(theirs.schema_arrow, check_metadata=True)
    assert ours.schema.equals(theirs.schema)
    assert ours.read().equals(theirs.read())
    columns = [file.metadata.row_group(0).column(0).to_dict() for file in (ours, theirs)]
    for fact in ("physical_type", "num_values", "path_in_schema", "compression", "data_page_offset"):
        assert columns[0][fact] == columns[1][fact]
    assert sorted(columns[0]["encodings"]) == sorted(columns[1]["encodings"])


# ---- memory ---------------------------------------------------------------------------------------------

SIZE = 40_000_000  # bytes


def text(size: int) -> str:
    """Not ASCII, so a str of it has four bytes for each character."""
    return "😀" + ('a line of 36 bytes, with a "quote".\n' * (size // 36 + 1))[: size - 4]


def write_json(path: Path, size: int) -> None:
    path.write_text(json.dumps({"text": text(size)}, ensure_ascii=False) + "\n")


def write_surrogate(path: Path, size: int) -> None:
    path.write_text(json.dumps({"text": "\ud800" + text(size)}) + "\n")


def write_csv(path: Path, size: int) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("id", "text"), (1, text(size))])


def write_parquet(path: Path, size: int) -> None:
    pq.write_table(pa.table({"text": [text(size)]}), path)


def write_arrow(path: Path, size: int) -> None:
    table = pa.table({"text": [text(size)]})
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


def write_text(path: Path, size: int) -> None:
    path.write_text(text(size))


def peak_memory(*arguments: object) -> int:
    code = (
        "import sys; from ggufbpe.cli import main; assert main(sys.argv[1:]) == 0; "
        "print(open('/proc/self/status').read())"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], check=True, capture_output=True, text=True
    )
    return int(ran.stdout.partition("VmHWM:")[2].split()[0]) * 1024


@pytest.mark.slow
@posix_only
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="says how much memory a process has had")
@pytest.mark.parametrize(
    ("name", "form", "write"),
    [
        ("a.jsonl", "megatron", write_json),
        ("a.jsonl", "arrow", write_surrogate),
        ("a.csv", "npy", write_csv),
        ("a.parquet", "nanotron", write_parquet),
        ("a.arrow", "megatron", write_arrow),
        ("a.txt", "arrow", write_text),
        ("a.txt", "parquet", write_text),
        ("a.jsonl", "parquet", write_json),
        ("a.parquet", "parquet", write_parquet),
    ],
)
def test_a_document_takes_at_most_five_times_its_size(
    name: str, form: str, write: Callable[[Path, int], None], tmp_path: Path
) -> None:
    used = []
    for size in (1000, SIZE):
        write(tmp_path / name, size)
        used.append(
            peak_memory("encode", "-m", GPT2, tmp_path / name, "-o", tmp_path / "out", "--format", form)
        )
        shutil.rmtree(tmp_path / "out")
    assert used[1] - used[0] <= 5 * SIZE


@pytest.mark.slow
@posix_only
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="says how much memory a process has had")
@pytest.mark.parametrize("command", ["count", "stats"])
@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("a.jsonl", write_json),
        ("a.jsonl", write_surrogate),
        ("a.csv", write_csv),
        ("a.parquet", write_parquet),
        ("a.arrow", write_arrow),
    ],
)
def test_counting_a_document_takes_at_most_five_times_its_size(
    command: str, name: str, write: Callable[[Path, int], None], tmp_path: Path
) -> None:
    used = []
    for size in (1000, SIZE):
        write(tmp_path / name, size)
        used.append(peak_memory(command, "-m", GPT2, "--text-column", "text", tmp_path / name))
    assert used[1] - used[0] <= 5 * SIZE


@pytest.mark.slow
@posix_only
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="says how much memory a process has had")
def test_memory_does_not_grow_with_a_text_without_a_line_break(tmp_path: Path) -> None:
    def used(size: int) -> int:
        (tmp_path / "a.txt").write_bytes(b"low lower lowest " * (size // 17))
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        return peak_memory(
            "encode", "-m", GPT2, tmp_path / "a.txt", "-o", tmp_path / "out", "--lines", "--workers", 1
        )

    assert used(120 << 20) < used(40 << 20) + (30 << 20)
