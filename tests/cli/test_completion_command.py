"""`ggufbpe completion` prints the code that a shell runs once, and the shell gets the words that fit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import Run, call

from ggufbpe._util.extras import NotInstalledError
from ggufbpe.cli import COMMANDS, completion
from ggufbpe.cli._arguments import Parser, UsageError
from ggufbpe.cli.completion import SHELLS, complete, shell_code
from ggufbpe.hub.stores import all_stores
from ggufbpe.hub.stores.stored_model import StoredModel

__all__ = ["call"]  # the fixture

argcomplete = pytest.importorskip("argcomplete")
CODE = {"bash": "complete -o", "zsh": "compdef", "fish": "complete --command ggufbpe"}


@pytest.mark.parametrize("shell", SHELLS)
def test_code_of_each_shell(shell: str, call: Run) -> None:
    found = call(completion, shell)
    assert CODE[shell] in found.text
    assert found.text == shell_code(shell)
    assert found.text.endswith("\n")


def test_what_cannot_be_completed(call: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="invalid choice: 'cmd'"):
        call(completion, "cmd")
    monkeypatch.setitem(sys.modules, "argcomplete", None)
    with pytest.raises(NotInstalledError, match="argcomplete"):
        call(completion, "bash")
    complete(COMMANDS, lambda name, parser: None)  # which the shell calls at each key: nothing happens


def parser_for(line: str, monkeypatch: pytest.MonkeyPatch) -> Parser | None:
    """The parser of the command in a line, as it is given to argcomplete; None if there is no command yet."""
    asked: list[Parser] = []

    def arguments_of(name: str, parser: Parser) -> None:
        assert parser.prog.endswith(f" {name}")
        parser.add_argument("path", nargs="?", metavar="MODEL")
        parser.add_argument("-hf", metavar="OWNER/REPO[:QUANT]")
        parser.add_argument("--pre", metavar="NAME")
        parser.add_argument("--name", dest="pattern", metavar="MODEL_NAME")
        parser.add_argument("--other", metavar="TEXT")
        asked.append(parser)

    given: list[Any] = []
    monkeypatch.setenv("COMP_LINE", line)
    monkeypatch.setattr(argcomplete, "autocomplete", lambda parser, **_: given.append(parser))
    complete(COMMANDS, arguments_of)
    assert all(f" {name} " in given[0].format_help() for name in COMMANDS)
    assert len(asked) <= 1  # other commands are not even imported
    return asked[0] if asked else None


@pytest.mark.parametrize(
    ("line", "command"),
    [("ggufbpe inf", None), ("ggufbpe info --pre x", "info"), ("ggufbpe --debug doctor m", "doctor")],
)
def test_only_the_command_in_the_line_is_asked(
    line: str, command: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    parser = parser_for(line, monkeypatch)
    assert (parser and parser.prog) == (command and f"ggufbpe {command}")


@pytest.mark.parametrize(
    ("line", "flags"),
    [("ggufbpe --q", "--quiet"), ("ggufbpe --de", "--debug"), ("ggufbpe info --q", "--quiet")],
)
def test_flags(line: str, flags: str, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_SHELL": "bash",
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "_ARGCOMPLETE_STDOUT_FILENAME": str(tmp_path / "words"),
    }
    subprocess.run([sys.executable, "-m", "ggufbpe"], env=environment, check=True)
    assert (tmp_path / "words").read_text().strip() == flags


@pytest.mark.parametrize(
    ("dest", "prefix", "expected"),
    [
        ("pre", "gpt-2", ["gpt-2"]),
        ("pre", "no such", []),
        ("hf", "own", ["owner/repo"]),  # without the one that has a commit
        ("pattern", "small", ["small:latest"]),
        ("pattern", "OLLAMA", ["ollama:small:latest"]),
        ("pattern", "", ["ollama:small:latest", "hf:owner/repo", "hf:owner/repo@abc"]),
        ("path", "m", ["model.gguf"]),
        ("path", "small", ["small:latest"]),
    ],
)
def test_words(
    dest: str, prefix: str, expected: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "model.gguf").touch()
    (tmp_path / "more.txt").touch()
    monkeypatch.chdir(tmp_path)
    models = [
        StoredModel("ollama:small:latest", "/x", "Ollama", bare_names=("small:latest",)),
        StoredModel("ollama:broken:latest", "", "Ollama", problem="gone"),
        StoredModel("hf:owner/repo", "/y", "Hugging Face"),
        StoredModel("hf:owner/repo@abc", "/z", "Hugging Face"),
        StoredModel("ollama:\x1b[31m", "/w", "Ollama"),
    ]
    monkeypatch.setattr(all_stores, "stored_models", lambda: iter(models))
    parser = parser_for("ggufbpe info ", monkeypatch)
    assert parser is not None
    completers: dict[str, Any] = {each.dest: getattr(each, "completer", None) for each in parser.arguments()}
    assert completers[dest](prefix) == expected
    assert completers["other"] is None
