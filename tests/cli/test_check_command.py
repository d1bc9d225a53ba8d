"""`ggufbpe check` compares shards with their manifest and their tokenizer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Run, call
from small_models import small_model

from ggufbpe.cli import check
from ggufbpe.cli._arguments import UsageError
from ggufbpe.data.corpora.corpus_encoding import encode_corpus
from ggufbpe.data.corpora.records import CorpusError

__all__ = ["call", "small_model"]  # fixtures


@pytest.fixture
def shards(small_model: Path, tmp_path: Path) -> Path:
    """Two documents, encoded."""
    source = tmp_path / "texts.jsonl"
    source.write_text('{"text": "hello world"}\n{"text": "a b c"}\n')
    encode_corpus(source, small_model, tmp_path / "shards", workers=1)
    return tmp_path / "shards"


def test_sound_shards(call: Run, shards: Path, small_model: Path) -> None:
    assert call(check, shards)[:2] == (0, b"OK: 1 shard\n")
    assert call(check, shards, "-m", small_model)[:2] == (0, b"OK: 1 shard, 2 documents encoded again\n")
    found = json.loads(call(check, shards, "-m", small_model, "--json").out)
    assert (found["is_right"], found["problems"], found["sampled"]) == (True, [], 2)


def test_a_shard_that_was_changed(call: Run, shards: Path) -> None:
    [data] = shards.glob("*.bin")
    data.write_bytes(data.read_bytes()[:-1] + b"\x02")
    found = call(check, shards)
    assert found.code == 1
    assert data.name in found.text
    assert "OK" not in found.text
    assert json.loads(call(check, shards, "--json").out)["is_right"] is False


def test_arguments_that_make_no_sense(call: Run, shards: Path, small_model: Path) -> None:
    for sample in ("-1", "0"):  # of which "OK" would say that ids were compared
        with pytest.raises(UsageError, match=f"--sample must be 1 or more, not {sample}"):
            call(check, shards, "-m", small_model, "--sample", sample)
    with pytest.raises(CorpusError, match="there is no manifest"):
        call(check, shards / "nowhere")


def test_a_file_is_no_folder_of_shards(call: Run, small_model: Path) -> None:
    with pytest.raises(CorpusError, match=r"small.gguf is a file; give the folder that ggufbpe encode wrote"):
        call(check, small_model)


@pytest.mark.parametrize("is_there", [True, False])
def test_nothing_is_ok_where_no_ids_were_compared(
    is_there: bool, call: Run, small_model: Path, tmp_path: Path
) -> None:
    """The corpus has changed since, or is gone."""
    source = tmp_path / "texts.jsonl"
    source.write_text('{"text": "hello"}\n')
    encode_corpus(source, small_model, tmp_path / "out", workers=1)
    if is_there:
        source.write_text('{"text": "hello"}\n{"text": "world"}\n')
    else:
        source.unlink()
    why = "the file has changed since encoding began" if is_there else "No such file or directory"
    done = call(check, tmp_path / "out", "-m", small_model)
    assert (done.code, done.text) == (
        1,
        "1 shard is as written, but no ids were compared with the tokenizer's\n",
    )
    assert done.err == f"ggufbpe: no documents were encoded again: {source}: {why}\n"
    found = json.loads(call(check, tmp_path / "out", "-m", small_model, "--json").out)
    assert (found["verdict"], found["findings"][0]["severity"]) == ("warning", "warning")
    assert call(check, tmp_path / "out").code == 0  # without a model nobody asked for it
