"""Shards are checked against their manifest, and a sample against the tokenizer."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from corpus_cases import TEXTS, json_lines, small_chunks, tok

from ggufbpe import Tokenizer, encode_corpus
from ggufbpe.data.corpora.shard_check import Checked, check_corpus

__all__ = ["small_chunks", "tok"]  # fixtures


@pytest.fixture
def shards(tmp_path: Path, tok: Tokenizer) -> Path:
    """The shards of a small corpus."""
    (tmp_path / "in.jsonl").write_bytes(json_lines())
    encode_corpus([tmp_path / "in.jsonl"], tok, tmp_path / "out")
    return tmp_path / "out"


def test_sound_shards(shards: Path, tok: Tokenizer) -> None:
    assert check_corpus(shards) == Checked(1, [], 0, "")
    assert check_corpus(shards, tok) == Checked(1, [], len(TEXTS), "")
    assert check_corpus(os.fsencode(shards)) == Checked(1, [], 0, "")  # type: ignore[arg-type]
    checked = check_corpus(shards, tok, sample=2)
    assert checked.to_dict() == {
        "is_right": True,
        "shards": 1,
        "problems": [],
        "sampled": 2,
        "not_sampled": "",
    }


def flip(shards: Path) -> None:
    """Change a byte of the ids."""
    path = shards / "part-00000.bin"
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(data)


def remove(shards: Path) -> None:
    """Remove the index."""
    (shards / "part-00000.idx").unlink()


def change(name: str, number: int) -> Callable[[Path], None]:
    """A change of a number of the manifest, for the first shard or, with "all", for the whole."""

    def changed(shards: Path) -> None:
        content = json.loads((shards / "manifest.json").read_bytes())
        if name.startswith("all "):
            content[name.removeprefix("all ")] += number
        else:
            content["shards"][0][name] += number
            content[name] += number
        (shards / "manifest.json").write_text(json.dumps(content))

    return changed


DAMAGE: dict[str, Callable[[Path], None]] = {
    "part-00000.bin: not the bytes that were written": flip,
    "part-00000.idx: missing": remove,
    "part-00000: 7 rows and": change("rows", 1),
    "manifest.json: ": change("all tokens", 1),
}


@pytest.mark.parametrize("problem", DAMAGE)
def test_damage(shards: Path, problem: str) -> None:
    DAMAGE[problem](shards)
    checked = check_corpus(shards)
    assert not checked.is_right
    assert len(checked.problems) == 1
    assert checked.problems[0].startswith(problem)


def test_another_tokenizer(shards: Path, tok: Tokenizer) -> None:
    other = Tokenizer(tok.vocabulary._replace(add_bos=True))
    assert "the tokenizer was another one" in check_corpus(shards, other).problems[0]


def test_a_sample_has_documents(shards: Path, tok: Tokenizer) -> None:
    with pytest.raises(ValueError, match="sample must be 1 or more, not 0"):
        check_corpus(shards, tok, sample=0)


def test_an_input_that_has_changed(shards: Path, tok: Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(json_lines(["other"]))
    checked = check_corpus(shards, tok)
    assert (checked.problems, checked.sampled) == ([], 0)
    assert "in.jsonl" in checked.not_sampled


@pytest.mark.usefixtures("small_chunks")
def test_the_ids_of_a_long_document_are_not_joined_again_for_each_chunk(
    tmp_path: Path, tok: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in.txt").write_text("some words " * 5_000)
    found = encode_corpus(tmp_path / "in.txt", tok, tmp_path / "out")
    joined, real = 0, np.concatenate

    def counted(arrays: Any, **more: Any) -> Any:
        nonlocal joined
        result = real(arrays, **more)
        joined += len(result)
        return result

    monkeypatch.setattr(np, "concatenate", counted)
    assert check_corpus(tmp_path / "out", tok).sampled == 1
    assert joined <= 5 * found.tokens
