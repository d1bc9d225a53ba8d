"""The command that changes a model, for what is no GGUF on this machine (others in test_names.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggufbpe.gguf.change import COMMAND, Change
from ggufbpe.hub.model_location import IMPORTED, fix_command


@pytest.mark.parametrize("name", ["folder", "a folder"])
def test_files_of_another_program_are_imported_by_the_command(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "tokenizer.json").write_text("{}")
    command = fix_command(f"{IMPORTED}{folder}", ["--set", "a=b"])
    shown = f"'{folder}'" if " " in name else folder
    expected = f"ggufbpe import {shown} -o vocab.gguf && ggufbpe fix vocab.gguf --set a=b -o fixed.gguf"
    assert command == expected
    assert COMMAND.findall(f"either {command}, or {command}") == [command, command]
    assert Change.of_command(command) == Change({"a": "b"})


def test_a_path_that_begins_with_a_dash_is_no_flag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("-m.gguf").touch()
    Path("-t").mkdir()
    Path("-t", "tokenizer.json").write_text("{}")
    assert fix_command("-m.gguf", ["--set", "a=b"]) == "ggufbpe fix ./-m.gguf --set a=b -o fixed.gguf"
    assert fix_command(f"{IMPORTED}-t", []).startswith("ggufbpe import ./-t -o vocab.gguf && ")
