"""`ggufbpe export` writes the files of a format, and says what was written and what differs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from commands import Run, call
from panicking import panic
from small_models import small_model

from ggufbpe import Tokenizer
from ggufbpe.analysis.oracles import library_adapters
from ggufbpe.cli import export
from ggufbpe.cli._arguments import UsageError

__all__ = ["call", "small_model"]  # fixtures

QUICK = ("--no-check",)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("kind", "output", "files"),
    [
        ("tokenizer.json", None, ["tokenizer.json", "tokenizer_config.json"]),
        ("tokenizer.json", "made/", ["made/tokenizer.json", "made/tokenizer_config.json"]),
        ("tokenizer.json", "mine.json", ["mine.json"]),  # beside which no configuration is looked for
        ("merges.txt", None, ["merges.txt", "vocab.json"]),
        ("tiktoken", None, ["small.tiktoken", "small.tiktoken.json"]),
        ("tiktoken", "x.tiktoken", ["x.tiktoken", "x.tiktoken.json"]),
        ("vocab-gguf", None, ["small-vocab.gguf"]),
        ("vocab-gguf", "any name", ["any name"]),
    ],
)
def test_where_files_go(
    kind: str, output: str | None, files: list[str], call: Run, small_model: Path, folder: Path
) -> None:
    renumber = ["--renumber"] if kind == "tiktoken" else []
    given = [] if output is None else ["-o", output]
    found = call(export, small_model, "--to", kind, *QUICK, *given, *renumber)
    written = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert (found.code, written) == (0, files)
    for file in files:
        assert f"wrote {file} ({(folder / file).stat().st_size} bytes)" in found.text.splitlines()


def test_one_file_on_standard_output(call: Run, small_model: Path, folder: Path) -> None:
    found = call(export, small_model, "--to", "tokenizer.json", "-o", "-", *QUICK)
    assert json.loads(found.out)["model"]["type"] == "BPE"
    assert "lost, since tokenizer_config.json is not written: " in found.err
    assert not list(folder.iterdir())


@pytest.mark.parametrize("kind", ["tokenizer.json", "merges.txt", "vocab-gguf"])
def test_a_device_gets_the_main_file_alone(kind: str, call: Run, small_model: Path, folder: Path) -> None:
    found = call(export, small_model, "--to", kind, "-o", os.devnull, *QUICK)
    assert (found.code, list(folder.iterdir())) == (0, [])
    assert f"wrote {os.devnull} (" in found.text
    assert ("lost, since " in found.err) is (kind != "vocab-gguf")


def test_the_copy_has_the_same_ids(call: Run, small_model: Path, folder: Path) -> None:
    call(export, small_model, "--to", "vocab-gguf", *QUICK)
    text = "hello world<|im_end|>"
    assert Tokenizer.from_gguf(folder / "small-vocab.gguf").encode(text) == Tokenizer.from_gguf(
        small_model
    ).encode(text)


@pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")
def test_files_that_are_read_are_never_replaced(call: Run, folder: Path) -> None:
    (folder / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\n")
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    with pytest.raises(UsageError, match=r"tokenizer_config\.json' is the input file"):
        call(export, "vocab.txt", "--to", "tokenizer.json", "-o", ".", *QUICK, "--force")
    assert (folder / "tokenizer_config.json").read_text() == '{"do_lower_case": false}'
    assert not (folder / "tokenizer.json").exists()


def test_files_are_not_replaced(call: Run, small_model: Path, folder: Path) -> None:
    (folder / "tokenizer_config.json").write_text("mine")
    with pytest.raises(UsageError, match=r"'tokenizer_config\.json' already exists; --force overwrites it"):
        call(export, small_model, "--to", "tokenizer.json", *QUICK)
    assert not (folder / "tokenizer.json").exists()
    assert call(export, small_model, "--to", "tokenizer.json", *QUICK, "--force").code == 0


@pytest.mark.parametrize("given", ["notes", "notes/"])
def test_a_file_where_a_directory_is_meant(given: str, call: Run, small_model: Path, folder: Path) -> None:
    (folder / "notes").write_text("mine")
    words = rf"'notes' is a file, and '{given}' is taken for a directory; the name of a file ends in \.txt"
    with pytest.raises(UsageError, match=words):
        call(export, small_model, "--to", "merges.txt", "-o", given, *QUICK, "--force")
    assert (folder / "notes").read_text() == "mine"


def test_a_library_that_panics_on_the_files(
    call: Run, small_model: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library_adapters, "open_tokenizers", lambda _: panic())
    found = call(export, small_model, "--to", "tokenizer.json", "--json")
    shown = json.loads(found.out)
    assert (found.code, shown["verdict"]) == (0, "not_compared")
    assert "not checked: the package tokenizers crashes on this file: " in shown["not_compared"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "which format"),
        (["--to", "yaml"], "there is no format 'yaml'; there are tokenizer.json"),
        (["--to", "merges.txt", "--renumber"], "--renumber is for --to tiktoken"),
        (["--to", "merges.txt", "--code-points"], "--code-points is for --to tokenizer.json"),
        (["--to", "vocab-gguf", "--override-kv", "a.b=int:1"], "keeps the file's keys unchanged"),
    ],
)
def test_arguments_that_make_no_sense(arguments: list[str], words: str, call: Run, small_model: Path) -> None:
    with pytest.raises(UsageError, match=words):
        call(export, small_model, *arguments)


def test_a_library_that_does_not_accept_the_files(
    call: Run, small_model: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: bytes) -> None:
        raise RuntimeError("no such step")

    monkeypatch.setattr(library_adapters, "open_tokenizers", refuse)
    found = call(export, small_model, "--to", "tokenizer.json", "--json")
    shown = json.loads(found.out)
    assert (found.code, shown["verdict"]) == (0, "not_compared")
    assert "not checked: the library does not accept the files: 'no such step'" in shown["not_compared"]
