"""Paths that cannot be asked for, and the command that changes a model (names are in test_names.py)."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest
from conftest import GPT2

from ggufbpe.cli import main
from ggufbpe.gguf.change import COMMAND, Change
from ggufbpe.gguf.reader import GGUFFile
from ggufbpe.hub.model_location import IMPORTED, fix_command, locate


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
LINK = "link the other parts into a folder named fixed, then "


def place_model(name: str, content: bytes = b"") -> Path:
    """A file at the path `name`, or a link to one elsewhere: in the folder cache to a blob, as in the hub's cache."""
    folder, path = Path(name).parent, Path(name)
    file = {"link": Path("elsewhere", path.name), "cache": Path("blobs", "0" * 64)}.get(folder.name, path)
    for each in (path, file):
        each.parent.mkdir(exist_ok=True)
    file.write_bytes(content)
    if file != path:
        path.symlink_to(file.absolute())
    return path


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (PART, f"ggufbpe fix {PART} --set a=b --in-place"),
        (f"a b/{PART}", f"ggufbpe fix 'a b/{PART}' --set a=b --in-place"),
        (f"link/{PART}", f"ggufbpe fix link/{PART} --set a=b --in-place"),
        (f"cache/{PART}", f"{LINK}ggufbpe fix cache/{PART} --set a=b -o fixed/{PART}"),
        ("cache/my m-00001-of-00003.gguf", "-o 'fixed/my m-00001-of-00003.gguf'"),
        (f"hf:owner/repo/{PART}", f"then {LINK}ggufbpe fix hf:owner/repo/{PART} --set a=b -o fixed/{PART}"),
        (f"lmstudio:owner/repo/{PART}", f"ggufbpe fix lmstudio:owner/repo/{PART} --set a=b -o fixed/{PART}"),
        (f"https://example.org/{PART}", f"then ggufbpe fix {PART} --set a=b --in-place"),
        ("m-00001-of-00001.gguf", "ggufbpe fix m-00001-of-00001.gguf --set a=b -o fixed.gguf"),
    ],
)
def test_the_first_part_of_a_split_model_keeps_its_name(
    name: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """llama.cpp finds the other parts by its name."""
    monkeypatch.chdir(tmp_path)
    if ":" not in name:
        place_model(name)
    command = fix_command(name, ["--set", "a=b"])
    assert command.endswith(expected)
    command = command.rpartition("then ")[2]
    assert COMMAND.findall(f"either {command}, or {command}") == [command, command]
    assert Change.of_command(command) == Change({"a": "b"})


@pytest.mark.parametrize(
    ("name", "copy"),
    [
        ("fixed.gguf", "fixed-2.gguf"),
        ("fixed-2.gguf", "fixed-3.gguf"),
        ("fixed-9.gguf", "fixed-10.gguf"),
        ("./fixed.gguf", "fixed-2.gguf"),
        ("other/fixed.gguf", "fixed.gguf"),
        ("fixed-it.gguf", "fixed.gguf"),
        ("cache/fixed.gguf", "fixed.gguf"),
    ],
)
@pytest.mark.parametrize("is_absolute", [False, True])
def test_a_copy_of_a_copy_has_the_next_number(
    name: str, copy: str, is_absolute: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`fix` refuses an output that is the model itself."""
    monkeypatch.chdir(tmp_path)
    place_model(name, GPT2.read_bytes())
    command = fix_command(os.path.abspath(name) if is_absolute else name, ["--set", "general.name=x"])
    assert command.endswith(f" -o {copy}")
    assert COMMAND.findall(f"either {command}, or {command}") == [command, command]
    assert main(shlex.split(command)[1:]) == 0
    assert Path(copy).exists()


def test_a_copy_of_a_served_copy_has_the_next_number() -> None:
    """The server names a model without its suffix, and the user puts the path in place of the name."""
    assert fix_command("fixed", ["--set", "a=b"]) == "ggufbpe fix fixed --set a=b -o fixed-2.gguf"
    assert fix_command("fixed-2", ["--set", "a=b"]) == "ggufbpe fix fixed-2 --set a=b -o fixed-3.gguf"


def test_what_a_store_protects_is_not_changed_through_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DVC and git-annex name files by their content, too, and make them read-only."""
    monkeypatch.chdir(tmp_path)
    kept = tmp_path / "ab" / "cdef"
    kept.parent.mkdir()
    kept.write_bytes(GPT2.read_bytes())
    kept.chmod(0o444)
    Path(PART).symlink_to(kept)
    assert fix_command(PART, ["--set", "a=b"]).endswith(f" -o fixed/{PART}")
    kept.chmod(0o644)
    assert fix_command(PART, ["--set", "a=b"]).endswith(" --in-place")


@pytest.mark.parametrize("place", ["link", "cache"])
@pytest.mark.parametrize("given", [PART, f"./{PART}", "absolute"])
def test_the_command_for_a_link_in_the_current_folder_runs(
    place: str, given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = place_model(f"{place}/{PART}", GPT2.read_bytes()).parent
    monkeypatch.chdir(folder)
    command = fix_command(
        os.path.abspath(PART) if given == "absolute" else given, ["--set", "general.name=x"]
    )
    if command.startswith(LINK):
        os.mkdir("fixed")
    assert main(shlex.split(command.removeprefix(LINK))[1:]) == 0
    assert Path(PART).is_symlink()
    changed = Path("fixed", PART) if place == "cache" else Path("..", "elsewhere", PART)
    with GGUFFile(changed) as file:
        assert file["general.name"] == "x"


@pytest.mark.parametrize("folder", ["closed", "./closed"])
def test_a_path_in_a_folder_that_is_closed(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Ollama's blobs are to users who are not in its group: such a file is not said to be missing."""
    monkeypatch.chdir(tmp_path)
    asked = os.lstat

    def lstat(path: str) -> os.stat_result:
        if path.startswith(folder):
            raise PermissionError(13, "Permission denied", path)
        return asked(path)

    monkeypatch.setattr(os, "lstat", lstat)
    with pytest.raises(PermissionError):
        locate(f"{folder}/model.gguf")
