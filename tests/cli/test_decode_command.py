"""`ggufbpe decode` shows the documents in shards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import Run, call
from small_models import small_model

from ggufbpe.cli import decode
from ggufbpe.cli._arguments import UsageError
from ggufbpe.data.corpora.corpus_encoding import encode_corpus

__all__ = ["call", "small_model"]  # fixtures


@pytest.fixture(scope="module")
def shards(small_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve documents, encoded: "hello\\n0" to "hello\\n11"."""
    folder = tmp_path_factory.mktemp("decode")
    source = folder / "texts.jsonl"
    source.write_text("".join(json.dumps({"text": f"hello\n{number}"}) + "\n" for number in range(12)))
    encode_corpus(source, small_model, folder / "shards", workers=1)
    return folder / "shards"


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--count", "2"], ['     0      4 tokens  "hello\\n0"', '     1      4 tokens  "hello\\n1"']),
        (["--start", "11"], ['    11      5 tokens  "hello\\n11"']),
        (["--start", "12"], []),
        (["--start", "11", "--count", "99999999999999999999"], ['    11      5 tokens  "hello\\n11"']),
        (["--count", "1", "--ids"], ["     0      4 tokens  259 10 48 267"]),
    ],
)
def test_lines(flags: list[str], expected: list[str], call: Run, shards: Path, small_model: Path) -> None:
    assert call(decode, shards, "-m", small_model, *flags).text.splitlines() == expected


def test_ten_are_shown(call: Run, shards: Path, small_model: Path) -> None:
    assert len(call(decode, shards, "-m", small_model).text.splitlines()) == 10


def test_one_document_whole(call: Run, shards: Path, small_model: Path) -> None:
    assert call(decode, shards, "-m", small_model, "--document", "3").out == b"hello\n3"
    assert call(decode, shards, "-m", small_model, "--document", "3", "--ids").out == b"259 10 51 267\n"


def test_json(call: Run, shards: Path, small_model: Path) -> None:
    [line] = call(decode, shards, "-m", small_model, "--document", "1", "--json").text.splitlines()
    found = json.loads(line)
    assert (found["number"], found["text"], found["ids"]) == (1, "hello\n1", [259, 10, 49, 267])


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--document", "1", "--count", "1"], "--document, or --start and --count, not both"),
        (["--start", "-1"], "documents are counted from 0"),
        (["--document", "12"], "there is no document 12"),
    ],
)
def test_what_is_not_there(flags: list[str], words: str, call: Run, shards: Path, small_model: Path) -> None:
    with pytest.raises(UsageError, match=words):
        call(decode, shards, "-m", small_model, *flags)


@pytest.mark.parametrize("form", ["mask", "labels"])
def test_what_the_assistant_wrote(form: Any, call: Run, small_model: Path, tmp_path: Path) -> None:
    """With control tokens, since the end of a turn is one; in either form of a mask."""
    chat = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": " world" * 40}]
    source = tmp_path / "chats.jsonl"
    source.write_text(json.dumps({"messages": chat}))
    encode_corpus(source, small_model, tmp_path / "out", format="npy", chats=True, mask=True, mask_form=form)
    answer = " world" * 40
    head = "<|im_start|>user\\nhello<|im_end|>\\n<|im_start|>assistant\\n"
    lines = call(decode, tmp_path / "out", "-m", small_model, "--mask").text.splitlines()
    assert lines[0] == "     0     63 tokens"
    assert lines[1] == f'           20 tokens  -      "{head}"'
    assert lines[2].startswith('           41 tokens  label  " world world')
    assert lines[3] == '            2 tokens  -      "\\n<|im_end|>"'
    assert "…" in lines[2]
    whole = call(decode, tmp_path / "out", "-m", small_model, "--mask", "--document", "0").text
    assert f'label  "{answer}<|im_end|>"' in whole
    assert "<|im_end|>" in call(decode, tmp_path / "out", "-m", small_model, "--special").text
    found = json.loads(call(decode, tmp_path / "out", "-m", small_model, "--mask", "--json").text)
    assert (len(found["mask"]), sum(found["mask"])) == (len(found["ids"]), 41)
    with pytest.raises(UsageError, match="--mask shows text"):
        call(decode, tmp_path / "out", "-m", small_model, "--mask", "--ids")


def test_shards_without_a_mask(call: Run, shards: Path, small_model: Path) -> None:
    with pytest.raises(ValueError, match="these shards have no mask"):
        call(decode, shards, "-m", small_model, "--mask")
