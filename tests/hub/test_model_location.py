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


PART = "m-00001-of-00003.gguf"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (PART, f"ggufbpe fix {PART} --set a=b --in-place"),
        (f"a b/{PART}", f"ggufbpe fix 'a b/{PART}' --set a=b --in-place"),
        (f"blobs/{PART}", f"ggufbpe fix blobs/{PART} --set a=b -o {PART}"),  # a link, as in the hub's cache
        ("blobs/my m-00001-of-00003.gguf", "-o 'my m-00001-of-00003.gguf'"),
        (f"hf:owner/repo/{PART}", f"then ggufbpe fix hf:owner/repo/{PART} --set a=b -o {PART}"),
        (f"https://example.org/{PART}", f"then ggufbpe fix {PART} --set a=b --in-place"),
        ("m-00001-of-00001.gguf", "ggufbpe fix m-00001-of-00001.gguf --set a=b -o fixed.gguf"),
    ],
)
def test_the_first_part_of_a_split_model_keeps_its_name(
    name: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """llama.cpp finds the other parts by its name."""
    monkeypatch.chdir(tmp_path)
    if "://" not in name and not name.startswith("hf:"):
        Path(name).parent.mkdir(exist_ok=True)
        Path("0" * 64).touch()
        if name.startswith("blobs/"):
            Path(name).symlink_to(Path("0" * 64))
        else:
            Path(name).touch()
    command = fix_command(name, ["--set", "a=b"])
    assert command.endswith(expected)
    command = command.rpartition("then ")[2]
    assert COMMAND.findall(f"either {command}, or {command}") == [command, command]
    assert Change.of_command(command) == Change({"a": "b"})
