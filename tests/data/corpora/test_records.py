"""Files that are compressed, damaged, or not named and encoded as most are."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import pytest
import zstandard
from corpus_cases import small_chunks, tok

from ggufbpe import Tokenizer, encode_corpus
from ggufbpe.data.corpora.records import CorpusError, decompressed

__all__ = ["small_chunks", "tok"]  # fixtures

WORDS = [f"{number * 7919 % 10007} words" for number in range(2000)]
JSON_LINES = "".join(json.dumps({"text": text}) + "\n" for text in WORDS).encode()
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
    "cut.zst": zstandard.compress(JSON_LINES)[:-100],
    "junk.zst": zstandard.compress(JSON_LINES) + b"junk\n",
}


@pytest.mark.parametrize("name", DAMAGES)
def test_all_is_read_up_to_the_damage(name: str) -> None:
    found = whole_before(DAMAGES[name], name)
    assert JSON_LINES.startswith(found)
    assert len(found) >= (len(JSON_LINES) - 1000 if name.endswith(".gz") else 0)
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
    found = encode_corpus(path, tok, tmp_path / "out", on_error="skip")
    assert (found.documents, found.bad_records) == (lines, 1)
