"""`ggufbpe import` makes a vocabulary out of another program's files, and reports how."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Run, call
from panicking import UNREADABLE_BY_THE_LIBRARY
from small_models import small_model

from ggufbpe import GGUFError, Tokenizer
from ggufbpe.cli import export, import_
from ggufbpe.cli._arguments import UsageError

__all__ = ["call", "small_model"]  # fixtures


@pytest.fixture
def files(call: Run, small_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The small model as merges.txt and vocab.json, in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    call(export, small_model, "--to", "merges.txt", "-o", "files/", "--no-check")
    return tmp_path / "files"


@pytest.mark.parametrize("inside", ["", "merges.txt"])
def test_a_file_and_its_folder(
    inside: str, call: Run, files: Path, small_model: Path, tmp_path: Path
) -> None:
    found = call(import_, files / inside, "-o", "made.gguf", "--no-check")
    made = tmp_path / "made.gguf"
    lines = found.text.splitlines()
    assert (found.code, lines[0]) == (0, f"wrote made.gguf ({made.stat().st_size} bytes)")
    assert "268 tokens, 9 merges" in lines
    assert any(line.startswith("pre-tokenizer: gpt-2 (") for line in lines)
    text = "hello world, it's 12345"
    assert Tokenizer.from_gguf(made).encode(text) == Tokenizer.from_gguf(small_model).encode(text)


def test_what_is_given_instead_of_found(call: Run, files: Path, tmp_path: Path) -> None:
    given = ("--pre", "qwen2", "--architecture", "llama", "--name", "Mine", "--no-check")
    found = call(import_, files, *given)
    assert "pre-tokenizer: qwen2 (" in found.text
    vocabulary = Tokenizer.from_gguf(tmp_path / "vocab.gguf").vocabulary  # the name by default
    assert (vocabulary.pre, vocabulary.architecture, vocabulary.name) == ("qwen2", "llama", "Mine")


def test_standard_output_has_nothing_but_the_file(call: Run, files: Path, tmp_path: Path) -> None:
    found = call(import_, files, "-o", "-", "--no-check")
    assert found.out.startswith(b"GGUF")
    assert "268 tokens, 9 merges" in found.err
    assert "wrote" not in found.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["files"]


def test_a_file_that_is_there(call: Run, files: Path, tmp_path: Path) -> None:
    (tmp_path / "vocab.gguf").write_text("mine")
    with pytest.raises(UsageError, match=r"'vocab\.gguf' already exists; --force overwrites it"):
        call(import_, files, "--no-check")
    assert call(import_, files, "--no-check", "--force").code == 0
    (files / "tokenizer_config.json").write_text("{}")
    for name in ("merges.txt", "vocab.json", "tokenizer_config.json"):  # all are read
        with pytest.raises(UsageError, match="is the input file"):
            call(import_, files, "-o", files / name, "--no-check", "--force")


def test_a_chat_template_that_cannot_be_parsed_is_told(call: Run, files: Path) -> None:
    (files / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{% for x in"}))
    found = call(import_, files, "--no-check")
    assert found.code == 0
    assert "limit: tokenizer.chat_template cannot be parsed as llama.cpp does it: " in found.text


def test_a_vocabulary_that_cannot_be_opened_is_named_by_its_file(call: Run, files: Path) -> None:
    (files / "tokenizer_config.json").write_text(json.dumps({"gguf": {"token_types": {"6": [0]}}}))
    with pytest.raises(GGUFError, match=r"files/merges\.txt") as refusal:
        call(import_, files)
    assert "vocab.gguf" not in str(refusal.value)


def test_a_file_on_which_the_library_panics(
    call: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tokenizer.json").write_text(json.dumps(UNREADABLE_BY_THE_LIBRARY))
    found = call(import_, "tokenizer.json", "--json")
    shown = json.loads(found.out)
    assert (found.code, shown["verdict"]) == (0, "not_compared")
    assert "not checked: the package tokenizers crashes on this file: " in shown["not_compared"]
