"""`ggufbpe split` prints the parts of a text as JSON lines or text, or writes them to files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Run, call
from conftest import GPT2, ROOT

from ggufbpe import Tokenizer
from ggufbpe.cli import split
from ggufbpe.cli._arguments import UsageError

__all__ = ["call"]  # a fixture

TEXT = "One two.\n\nThree four naïve.\n\nFive."
GIVEN = ("-m", GPT2, "-p", TEXT, "--size", 7)


def test_lines_of_json(call: Run) -> None:
    rows = [json.loads(line) for line in call(split, *GIVEN).text.splitlines()]
    tok = Tokenizer.from_gguf(GPT2)
    assert [(row["start"], row["end"]) for row in rows] == tok.split(TEXT, 7)
    assert [row["text"] for row in rows] == [TEXT[row["start"] : row["end"]] for row in rows]
    assert [row["tokens"] for row in rows] == [tok.count(row["text"], add_special=False) for row in rows]


def test_tokens_that_are_added_count_if_asked_for(call: Run) -> None:
    wpm = ROOT / "fixtures/vocabs/wpm.gguf"
    tok = Tokenizer.from_gguf(wpm)
    lines = call(split, "-m", wpm, "-p", TEXT, "--size", 7, "--add-special").text.splitlines()
    rows = [json.loads(line) for line in lines]
    assert [(row["start"], row["end"]) for row in rows] == tok.split(TEXT, 5)
    assert [row["tokens"] for row in rows] == [len(tok.encode(row["text"])) for row in rows]


def test_texts_with_a_separator(call: Run) -> None:
    assert call(split, *GIVEN, "--separator", "|").text == "One two.\n\n|Three four naïve.\n\n|Five."
    bare = call(split, *GIVEN, "--separator", "|", "--keep-separator", "none")
    assert bare.text == "One two.|Three four naïve.|Five."


def test_files(call: Run, tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    assert call(split, *GIVEN, "-o", folder).out == b""
    names = ["part-1.txt", "part-2.txt", "part-3.txt"]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert b"".join((folder / name).read_bytes() for name in names) == TEXT.encode()
    with pytest.raises(UsageError, match="parts' already exists; -o needs the name of a new directory"):
        call(split, *GIVEN, "-o", folder)


def test_bytes_that_are_not_utf8(call: Run, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"a\xffb c d")
    assert call(split, "-m", GPT2, "-f", path, "--size", 2, "--separator", "").out == b"a\xffb c d"


def test_an_overlap_that_is_too_large(call: Run) -> None:
    with pytest.raises(UsageError, match="overlap must be 0 or more and less than size"):
        call(split, *GIVEN, "--overlap", 7)


def test_the_flag_of_truncate_is_taken_too(call: Run) -> None:
    arguments = ("-m", GPT2, "-p", "one two three four")
    assert call(split, *arguments, "--limit", 2).out == call(split, *arguments, "--size", 2).out
    assert len(call(split, *arguments, "--limit", 2).out.splitlines()) == 3


def test_a_text_or_file_without_its_flag(call: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # a long path would be cut in the message
    (tmp_path / "a.txt").write_text("a")
    with pytest.raises(UsageError, match=r"a.txt' needs a flag: -f .*a.txt"):
        call(split, "-m", GPT2, "a.txt")
    with pytest.raises(UsageError, match="'one two' needs a flag: -p 'one two'"):
        call(split, "-m", GPT2, "one two")
