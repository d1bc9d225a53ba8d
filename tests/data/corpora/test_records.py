"""Files that are compressed, damaged, or not named and encoded as most are."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from corpus_cases import small_chunks, tok

from ggufbpe import Tokenizer, count_files, encode_corpus, train
from ggufbpe._util.progress import Progress
from ggufbpe.data.corpora.readers import has_records
from ggufbpe.data.corpora.records import CorpusError, decompressed, without_compression

__all__ = ["small_chunks", "tok"]  # fixtures

WORDS = [f"{number * 7919 % 10007} words" for number in range(2000)]
JSON_LINES = "".join(json.dumps({"text": text}) + "\n" for text in WORDS).encode()
MESSAGES = [{"role": "user", "content": "ab"}]
CSV = "".join(f"{text}\n" for text in ["text", *WORDS]).encode()


# ---- damage ---------------------------------------------------------------------------------------------


def whole_before(data: bytes, name: str) -> bytes:
    """What `zcat` writes before it tells the damage."""
    read: list[bytes] = []
    with (
        pytest.raises(CorpusError, match="the compressed data is broken"),
        decompressed(io.BytesIO(data), name) as stream,
    ):
        read.extend(iter(lambda: stream.read(1 << 20), b""))
    return b"".join(read)


DAMAGES = {
    "junk.gz": gzip.compress(JSON_LINES) + b"junk\n",
    "cut.gz": gzip.compress(JSON_LINES)[:-100],
    "crc.gz": gzip.compress(JSON_LINES)[:-8] + bytes(8),
    "cut.zst": (zstandard.compress(JSON_LINES) * 2)[:-100],  # a frame is one block, of which no part is read
    "junk.zst": zstandard.compress(JSON_LINES) + b"junk\n",
}


@pytest.mark.parametrize("name", DAMAGES)
def test_all_is_read_up_to_the_damage(name: str) -> None:
    found = whole_before(DAMAGES[name], name)
    assert JSON_LINES.startswith(found)
    if name != "cut.gz":  # of the others, all of the text comes before the damage
        assert found == JSON_LINES
    assert len(found) > len(JSON_LINES) - 1000
    with (
        pytest.raises(CorpusError, match=rf"{name}: the compressed data is broken"),
        decompressed(io.BytesIO(DAMAGES[name]), name) as stream,
    ):
        stream.read()  # nobody asks for more, so a part would be taken for all


@pytest.mark.parametrize("data", [JSON_LINES, CSV], ids=["jsonl", "csv"])
@pytest.mark.parametrize("end", [b"junk\n", None], ids=["junk", "cut"])
@pytest.mark.usefixtures("small_chunks")
def test_only_what_comes_after_the_damage_is_left_out(
    data: bytes, end: bytes | None, tmp_path: Path, tok: Tokenizer
) -> None:
    packed = gzip.compress(data)
    packed = packed[:-2000] if end is None else packed + end
    path = tmp_path / f"a.{'jsonl' if data is JSON_LINES else 'csv'}.gz"
    path.write_bytes(packed)
    lines = whole_before(packed, path.name).count(b"\n") - (data is CSV)
    assert (1000 < lines < 2000) == (end is None)
    with pytest.raises(CorpusError, match=r"broken: [^;]*; on_error='skip' leaves the rest of the file out$"):
        encode_corpus(path, tok, tmp_path / "out")
    told: list[str] = []
    found = encode_corpus(
        path, tok, tmp_path / "out", on_error="skip", report=lambda _, error: told.append(str(error))
    )
    assert (found.documents, found.bad_records) == (lines, 1)
    assert [error.endswith("; what comes before is read") for error in told] == [True]


# ---- names ----------------------------------------------------------------------------------------------


def test_suffixes_may_be_in_upper_case(tmp_path: Path, tok: Tokenizer) -> None:
    """As older systems have them; the lines of a .JSONL file were one text."""
    few, table = JSON_LINES[:100].rpartition(b"\n")[0], io.BytesIO()
    pq.write_table(pa.table({"text": ["a", "b"]}), table)
    files = {
        "A.JSONL": few,
        "B.JSONL.GZ": gzip.compress(few),
        "C.NDJSON.Zst": zstandard.compress(few),
        "D.CSV": b"text\na\nb\n",
        "E.PARQUET": table.getvalue(),
    }
    expected = few.count(b"\n") + 1
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        found = encode_corpus(tmp_path / name, tok, tmp_path / f"{name}.out")
        assert (name, found.documents) == (name, 2 if name[0] in "DE" else expected)
    assert [has_records(name, None) for name in files] == [True, True, True, False, True]
    assert without_compression("B.JSONL.GZ") == "B.JSONL"


@pytest.mark.parametrize("suffix", [".bz2", ".xz", ".ZIP", ".7z", ".lz4", ".br"])
def test_other_compressions_are_refused(suffix: str, tmp_path: Path, tok: Tokenizer) -> None:
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / f"a.jsonl{suffix}"
    path.write_bytes(bz2.compress(JSON_LINES))
    message = (
        rf"a\.jsonl\{suffix}: \{suffix} is not read; decompress the file, or compress it as \.gz or \.zst"
    )
    with pytest.raises(CorpusError, match=message):
        encode_corpus(path, tok, tmp_path / "out")
    with pytest.raises(CorpusError, match=message):
        train([path], vocab_size=257)
    with pytest.raises(CorpusError, match=message):
        count_files(tok, path)
    (tmp_path / "big.jsonl").write_bytes(JSON_LINES)
    for on_error in ("fail", "skip"):  # before hours of work
        told: list[Progress] = []
        with pytest.raises(CorpusError, match=message):
            encode_corpus(
                [tmp_path / "big.jsonl", path], tok, tmp_path / "out", on_error=on_error, progress=told.append
            )
        assert not told
    found = encode_corpus(path.parent, tok, tmp_path / "out")
    assert (found.documents, +found.skipped) == (0, Counter({"compressed otherwise than by .gz or .zst": 1}))


@pytest.mark.parametrize("suffix", [".tar", ".tgz", ".TAR.GZ", ".tar.zst"])
def test_archives_are_refused(suffix: str, tmp_path: Path, tok: Tokenizer) -> None:
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / f"a{suffix}"
    path.write_bytes(gzip.compress(JSON_LINES) if suffix in (".tgz", ".TAR.GZ") else JSON_LINES)
    message = rf"a{suffix}: an archive is not read; unpack it, and give the folder of its files"
    for read in (
        lambda: encode_corpus(path, tok, tmp_path / "out"),
        lambda: train([path], vocab_size=257),
        lambda: count_files(tok, path),
    ):
        with pytest.raises(CorpusError, match=message):
            read()
    found = encode_corpus(path.parent, tok, tmp_path / "out")
    assert (found.documents, +found.skipped) == (0, Counter({"archived": 1}))


# ---- problems in words ----------------------------------------------------------------------------------


class _Failing(io.BytesIO):
    """A file on a disk that fails."""

    def read(self, *_: object) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    readinto = read1 = read  # type: ignore[assignment]


@pytest.mark.parametrize("name", ["a.txt", "a.gz", "a.zst", "a.parquet"])
def test_an_error_of_the_disk_names_the_file(name: str) -> None:
    with (
        pytest.raises(OSError, match="Input/output error") as error,
        decompressed(_Failing(), name) as stream,
    ):
        stream.read(1)
    assert error.value.filename == name


LINES_THAT_ARE_NOT_JSON = {
    '{"text": "ab"} x': "Extra data at column 16",
    '{"text": "ab': "Unterminated string starting at column 10",
    "{": "Expecting property name enclosed in double quotes at column 2",
    '{"text": %s}' % ("1" * 5000): "Exceeds the limit .*: value has 5000 digits(; on_error|$)",
}


@pytest.mark.parametrize("line", LINES_THAT_ARE_NOT_JSON)
def test_the_place_in_a_line_that_is_not_json_is_its_column(
    line: str, tmp_path: Path, tok: Tokenizer
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(f"{line}\n")
    message = f"line 1: not JSON: {LINES_THAT_ARE_NOT_JSON[line]}"
    for read in (
        lambda: encode_corpus(path, tok, tmp_path / "out", text_column="other"),
        lambda: count_files(tok, path),
        lambda: train([path], vocab_size=257),
    ):
        with pytest.raises(CorpusError, match=message):
            read()


# ---- encodings ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("has_orjson", [True, False])
def test_a_byte_order_mark_may_begin_a_file(
    has_orjson: bool, tmp_path: Path, tok: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_orjson:
        monkeypatch.setitem(sys.modules, "orjson", None)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps({"text": "ab", "messages": MESSAGES}).encode() + b"\n")
    [row] = encode_corpus(path, tok, tmp_path / "out", eos=False).rows()
    assert row.tolist() == tok.encode("ab", add_special=False)
    assert count_files(tok, path).total.bytes == 2
    assert count_files(tok, path, chats=True, chat_template="known:chatml").errors == []
    assert train([path], vocab_size=257).merges == [("a", "b")]


@pytest.mark.parametrize("end", [b"", b"\r\n"])
def test_a_file_of_a_byte_order_mark_is_empty(end: bytes, tmp_path: Path, tok: Tokenizer) -> None:
    """As Windows writes an empty file."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + end)
    found = encode_corpus(path, tok, tmp_path / "out")
    assert (found.documents, found.bad_records) == (0, 0)
    counted = count_files(tok, path, chats=True, chat_template="known:chatml")
    assert (counted.total.tokens, counted.errors) == (0, [])
    assert (count_files(tok, path).total.tokens, count_files(tok, path).errors) == (0, [])


UTF_16 = {
    "utf-16": "iconv -f UTF-16 -t UTF-8",
    "utf-16-be-with-mark": "iconv -f UTF-16 -t UTF-8",
    "utf-16-le": "iconv -f UTF-16LE -t UTF-8",
    "utf-16-be": "iconv -f UTF-16BE -t UTF-8 if the first byte of the file is 0",
}


@pytest.mark.parametrize("has_orjson", [True, False])
@pytest.mark.parametrize("encoding", UTF_16)
def test_utf_16_is_named(
    encoding: str, has_orjson: bool, tmp_path: Path, tok: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_orjson:
        monkeypatch.setitem(sys.modules, "orjson", None)
    path = tmp_path / "a.jsonl"
    line = '{"text": "ab"}\n'
    encoded = b"\xfe\xff" * encoding.endswith("mark") + line.encode(encoding.removesuffix("-with-mark"))
    path.write_bytes(encoded)
    message = f"line 1: the file is in UTF-16, not UTF-8; convert it: {UTF_16[encoding]}"
    for read in (lambda: encode_corpus(path, tok, tmp_path / "out"), lambda: count_files(tok, path)):
        with pytest.raises(CorpusError, match=message):
            read()
    command = UTF_16[encoding].partition(" if ")[0].split()
    if shutil.which("iconv"):
        converted = subprocess.run([*command, path], capture_output=True, check=True).stdout
        assert converted.removeprefix(b"\xef\xbb\xbf") == line.encode()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_a_table_in_utf_16_is_named(encoding: str, tmp_path: Path, tok: Tokenizer) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("id,text\n1,ab\n".encode(encoding))
    with pytest.raises(CorpusError, match=f"a.csv: the file is in UTF-16.* {UTF_16[encoding]}"):
        encode_corpus(path, tok, tmp_path / "out")


def test_a_file_that_ends_in_nuls_is_not_called_utf_16(tmp_path: Path, tok: Tokenizer) -> None:
    """As a file system leaves it after a loss of power."""
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "ab"}\n' + bytes(99))
    with pytest.raises(CorpusError, match="line 2: not JSON: "):
        encode_corpus(tmp_path / "a.jsonl", tok, tmp_path / "out")
