"""What commands say of files that were not read, and how they write files (cli/_files.py)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from commands import Run, run
from conftest import GPT2

from ggufbpe.cli._arguments import Parser, UsageError, parse_arguments
from ggufbpe.cli._files import (
    GivenPath,
    add_no_ignore,
    ignored_of,
    require_folder,
    require_free,
    say_what_is_not_utf8,
    say_what_was_left_out,
    write_file,
    write_outputs,
)
from ggufbpe.data.corpora.corpus_files import ignored_by_git

__all__ = ["run"]  # the fixture


def test_a_path_stays_as_it_is_given() -> None:
    assert os.fspath(GivenPath("https://host//a/../b")) == "https://host//a/../b"


def test_whether_git_is_asked() -> None:
    parser = Parser("ggufbpe count")
    add_no_ignore(parser)
    assert ignored_of(parse_arguments(parser, [])) is ignored_by_git
    assert ignored_of(parse_arguments(parser, ["--no-ignore"])) is None


@pytest.mark.parametrize(
    ("skipped", "remedy", "said"),
    [
        ({}, "", ""),
        ({"link": 0}, "", ""),
        ({"pipe": 1, "link": 2}, "", "ggufbpe: skipped in directories: 2 link, 1 pipe\n"),
        ({"link": 2}, "name it", "ggufbpe: skipped in directories: 2 link (name it)\n"),
        (
            {"link": 0, "written by ggufbpe encode": 3, "compressed otherwise than by .gz or .zst": 1},
            "name it",
            "ggufbpe: skipped in directories: 1 compressed otherwise than by .gz or .zst, "
            "3 written by ggufbpe encode\n",
        ),
        (
            {"link": 1, "compressed otherwise than by .gz or .zst": 1},
            "name it",
            "ggufbpe: skipped in directories: 1 compressed otherwise than by .gz or .zst, 1 link (name it)\n",
        ),
    ],
)
def test_files_that_were_left_out(
    skipped: dict[str, int], remedy: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    say_what_was_left_out(skipped, remedy)
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, ""),
        (1, "ggufbpe: 1 byte is not UTF-8; each counts as one character (U+FFFD)\n"),
        (7, "ggufbpe: 7 bytes are not UTF-8; each counts as one character (U+FFFD)\n"),
    ],
)
def test_bytes_that_are_not_utf_8(count: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    say_what_is_not_utf8(count)
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(
    ("target", "source", "force", "words"),
    [
        ("new", "there", False, None),
        ("there", None, True, None),
        ("there", None, False, "'there' already exists; --force overwrites it"),
        ("folder", None, True, "'folder' is a directory"),
        ("there", "there", True, "'there' is the input file; give another name"),
        ("link", "there", True, "'link' is the input file"),
        ("broken link", None, False, "'broken link' already exists"),
        ("missing/", None, True, "'missing/' is not the name of a file"),
        ("", None, True, "'' is not the name of a file"),
        ("there/new", None, True, "'there' is not a directory"),
        ("there/missing/new", None, True, "'there' is not a directory"),
        ("missing/new", None, False, None),  # the folder is made
        (os.devnull, None, False, None),  # where nothing is replaced
    ],
)
def test_targets(
    target: str,
    source: str | None,
    force: bool,
    words: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there").touch()
    Path("folder").mkdir()
    Path("link").symlink_to("there")
    Path("broken link").symlink_to("nowhere")
    if words is None:
        require_free(target, force, source)
    else:
        with pytest.raises(UsageError, match=words):
            require_free(target, force, source)


def test_folders_of_targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    require_folder("new")
    require_folder(str(tmp_path / "new"))
    for target, words in (
        ("no/new", r"'no' is not a directory \(No such"),
        ("file/new", "'file' is not a directory:"),
    ):
        with pytest.raises(UsageError, match=words):
            require_folder(target)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(UsageError, match="'new': nothing can be written there"):
        require_folder("new")
    require_folder(os.devnull)


def test_files_are_written_with_their_folders(tmp_path: Path) -> None:
    one, other = tmp_path / "a" / "b" / "one", tmp_path / "other"
    write_outputs({str(one): b"1", str(other): b"2"})
    assert (one.read_bytes(), other.read_bytes()) == (b"1", b"2")


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_file(str(path), iter([b"one ", b"two"]))
    assert path.read_bytes() == b"one two"

    def failing() -> object:
        yield b"half"
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        write_file(str(path), failing())  # type: ignore[arg-type]
    assert path.read_bytes() == b"one two"
    assert list(tmp_path.iterdir()) == [path]


def test_standard_output(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    write_outputs({"-": b"\xff1"})
    write_file("-", iter([b"2", b"3"]))
    assert capfdbinary.readouterr().out == b"\xff123"


OF_FILES: list[list[str | Path]] = [
    ["fix", GPT2, "--set", "general.name=x"],
    ["encode", "text.txt"],
    ["split", "-p", "Hello world"],
    ["page"],
]


@pytest.mark.parametrize("command", OF_FILES, ids=lambda command: command[0])
def test_an_output_without_a_name_is_refused(command: list[str | Path], run: Run) -> None:
    result = run(*command, "-o", "")
    assert (result.code, result.out) == (2, b"")
    assert f"-o '': the name is empty; give a {'path' if command[0] == 'fix' else 'folder'}\n" in result.err


@pytest.mark.parametrize("command", OF_FILES, ids=lambda command: command[0])
def test_what_cannot_go_to_standard_output_is_not_written_to_a_file_of_that_name(
    command: list[str | Path], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("Hello world")
    result = run(*command, "-o", "-")
    assert (result.code, result.out, os.listdir()) == (2, b"", ["text.txt"])
    several = (
        "-o -: this command writes several files, so it cannot write to standard output; give a folder\n"
    )
    examined = (
        "-o -: this command examines the copy before it puts it in place, so it cannot write to standard"
    )
    assert (examined if command[0] == "fix" else several) in result.err
    if command != ["page"]:  # which needs its WebAssembly
        assert run(*command, "-o", "./-").code == 0
