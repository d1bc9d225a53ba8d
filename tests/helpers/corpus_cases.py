"""Texts, files and fixtures for tests that encode corpora into shards."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import GPT2

from ggufbpe import Tokenizer
from ggufbpe.data.corpora import chunks

TEXTS = ["Hello world", "", "naïve 者 \n of two lines", "<|endoftext|> as text", "x" * 300, "a\tb\r\nc", " "]

EOS = 50256


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    return Tokenizer.from_gguf(GPT2)


def expected(tok: Tokenizer, texts: list[str] = TEXTS) -> list[list[int]]:
    return [[*tok.encode(text, add_special=False, parse_special=False), EOS] for text in texts]


def json_lines(texts: list[str] = TEXTS) -> bytes:
    return b"".join(json.dumps({"id": n, "text": text}).encode() + b"\n" for n, text in enumerate(texts))


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of some bytes, so that small corpora have all that large ones have."""
    monkeypatch.setattr(chunks, "CHUNK", 64)
    monkeypatch.setattr(chunks, "_LONG", 200)


def prose(rng: random.Random, size: int, between: str = " ") -> str:
    words = ["low", "lower", "naïve", "12345", "者", "<|endoftext|>", "\t", "it's", "newest"]
    return between.join(rng.choice(words) for _ in range(size))


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of all kinds of files, of some thousand documents."""
    folder = tmp_path_factory.mktemp("large")
    rng = random.Random(3)
    (folder / "a.jsonl").write_bytes(json_lines([prose(rng, rng.randrange(60)) for _ in range(1500)]))
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(json_lines([prose(rng, 9) for _ in range(500)])))
    (folder / "c.txt").write_text(prose(rng, 20_000))
    pq.write_table(pa.table({"text": [prose(rng, 30) for _ in range(500)]}), folder / "d.parquet")
    for number in range(40):
        (folder / f"e{number:02}.txt").write_text(prose(rng, 20))
    return folder
