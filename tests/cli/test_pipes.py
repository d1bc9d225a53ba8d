"""What is not written to a terminal has whole lines: a pipe gets what a terminal without an edge would.

A pipe that gets a file gets nothing else.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import GPT2
from reference import with_pre

from ggufbpe.cli import _output, main

pytestmark = pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")

LONG = " ".join(["a rather long name of a folder"] * 6)  # wider than any terminal that is guessed
TEXT = "in 2024, naïve"  # a row of its tokens fits everywhere
COMMANDS = {
    "compare": ["compare", "a.gguf", "b.gguf", "-p", TEXT],
    "diagnose": ["diagnose", "-m", "a.gguf", "-p", TEXT, "--ids", "[1, 2, 3]"],
    "diff": ["diff", "a.gguf", "b.gguf", "-p", TEXT],
    "doctor": ["doctor", "-m", "b.gguf"],
    "explain": ["explain", "-m", "a.gguf", TEXT],
    "explain why not": ["explain", "-m", "a.gguf", TEXT, "--why-not", "20"],
    "info": ["info", "-m", "a.gguf"],
    "stats": ["stats", "-m", "a.gguf", "-m", "b.gguf", "text"],
    "verify": ["verify", "-m", "a.gguf", "--against", "b.gguf", "text"],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two models, one of which splits otherwise, and a text, in a folder whose name fills more than a line."""
    (tmp_path / LONG).mkdir()
    monkeypatch.chdir(tmp_path / LONG)
    Path("a.gguf").symlink_to(GPT2)
    with_pre(GPT2, "llama-bpe", tmp_path / LONG / "b.gguf")
    Path("text").write_text(TEXT, encoding="utf-8")
    return Path.cwd()


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_lines_are_whole_in_a_pipe(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = [os.path.abspath(each) if os.path.exists(each) else each for each in COMMANDS[command]]
    main(arguments)
    piped = capsys.readouterr().out
    monkeypatch.setattr(_output, "terminal_width", lambda: 4000)
    monkeypatch.setattr("ggufbpe.cli.doctor._WIDTH", 4000)
    monkeypatch.setattr("ggufbpe.cli.diff._WIDTH", 4000)
    main(arguments)
    wide = capsys.readouterr().out
    assert max(map(len, piped.splitlines())) > 100 or command in ("compare", "explain", "info")
    assert without_rates(piped) == without_rates(wide)


def without_rates(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.endswith("MB/s")]


WRITERS = {
    "export": ["export", "a.gguf", "--to", "vocab-gguf", "--no-check"],
    "import": ["import", "vocab.txt", "--no-check"],
    "fix": ["fix", "a.gguf", "--set", "general.name=x"],
}


@pytest.mark.skipif(os.name == "nt", reason="no such devices there")
@pytest.mark.parametrize("command", WRITERS)
def test_a_pipe_gets_the_file_alone(command: str, folder: Path) -> None:
    (folder / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\n")
    written = [sys.executable, "-m", "ggufbpe", *WRITERS[command], "-o"]
    subprocess.run([*written, "file.gguf"], check=True, capture_output=True)
    piped = subprocess.run([*written, "/dev/stdout"], check=True, capture_output=True)
    assert piped.stdout == (folder / "file.gguf").read_bytes()
    assert b"wrote /dev/stdout" in piped.stderr
    assert b"(0 bytes" not in piped.stderr
    both = subprocess.run([*written, "/dev/stdout", "--json"], capture_output=True)
    assert both.returncode == 2
    assert b"only one of them can be standard output" in both.stdout
    nowhere = subprocess.run(
        [*written, os.devnull, "--json"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert (nowhere.returncode, nowhere.stderr) == (0, b"")
