"""Where the text of a command comes from (cli/_input.py)."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from ggufbpe.cli._arguments import Parser, UsageError, parse_arguments
from ggufbpe.cli._input import (
    given_text,
    pipe_has_text,
    read_file,
    read_stdin,
    read_text,
    settle_stdin,
    stdin,
)

NAMES = ("text", "prompt", "file")


def parser() -> Parser:
    made = Parser("ggufbpe try")
    made.add_argument("text", nargs="?")
    made.add_argument("-p", "--prompt")
    made.add_sources("the text")
    return made


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Standard input is a file with a text."""
    path = tmp_path / "stdin"
    path.write_bytes(b"piped\xff")
    with path.open(encoding="utf-8") as file:
        monkeypatch.setattr(sys, "stdin", file)
        yield


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["a text"], b"a text"),
        (["-p", "a text"], b"a text"),
        (["-p", "-"], b"-"),  # a prompt may be one
        (["-f", "FILE"], b"of a file"),
        (["--stdin"], b"piped\xff"),
        (["-"], b"piped\xff"),
        (["-f", "-"], b"piped\xff"),
        ([], b"piped\xff"),  # as there is something in it
    ],
)
def test_sources(arguments: list[str], expected: bytes, piped: None, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"of a file")
    parsed = parse_arguments(parser(), [str(path) if each == "FILE" else each for each in arguments])
    settle_stdin(parsed, *NAMES)
    with given_text(parsed, "try") as given:
        assert (given is None) is (expected == b"piped\xff")
    assert read_text(parsed, "try") == expected


@pytest.mark.parametrize("arguments", [["a", "-p", "b"], ["-p", "a", "--stdin"], ["a", "-f", "b"]])
def test_one_text_only(arguments: list[str], piped: None) -> None:
    parsed = parse_arguments(parser(), arguments)
    settle_stdin(parsed, *NAMES)
    with pytest.raises(
        UsageError, match=r"give one text: TEXT, -p TEXT, -f PATH or --stdin \(see ggufbpe try"
    ):
        read_text(parsed, "try")


def fail_to_read(file: BinaryIO | None, size: int) -> None:
    assert file is not None
    with open(os.devnull, "wb") as only_written:
        os.dup2(only_written.fileno(), file.fileno())
    file.read(size)


@pytest.mark.parametrize("size", [-1, 1])
def test_an_error_in_the_middle_of_a_file_names_the_file(size: int, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a text")
    parsed = parse_arguments(parser(), ["-f", str(path)])
    with pytest.raises(OSError, match="Bad file descriptor") as error, given_text(parsed, "try") as given:
        fail_to_read(given, size)
    assert error.value.filename == str(path)


def test_another_error_while_a_file_is_open_does_not_name_it(tmp_path: Path) -> None:
    """Such as that of a full disk, on which a temporary file is written."""
    path = tmp_path / "file"
    path.write_bytes(b"a text")
    parsed = parse_arguments(parser(), ["-f", str(path)])
    with pytest.raises(OSError, match="No space left") as error, given_text(parsed, "try"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert error.value.filename is None


def test_a_dash_among_others(piped: None) -> None:
    made = Parser("ggufbpe try")
    made.add_argument("paths", nargs="*")
    made.add_argument("--stdin", action="store_true")
    for given, paths, is_stdin in ((["a", "-"], ["a"], True), (["a"], ["a"], False), ([], [], True)):
        parsed = parse_arguments(made, given)
        settle_stdin(parsed, "paths")
        assert (parsed.paths, parsed.stdin) == (paths, is_stdin)


def test_nothing_given_and_nothing_piped(monkeypatch: pytest.MonkeyPatch) -> None:
    with open(os.devnull, encoding="utf-8") as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        parsed = parse_arguments(parser(), [])
        settle_stdin(parsed, *NAMES)
        assert not parsed.stdin
        with pytest.raises(UsageError, match="give one text"):
            read_text(parsed, "try")


def pipe_with(data: bytes, monkeypatch: pytest.MonkeyPatch) -> io.TextIOWrapper:
    """A pipe as standard input, whose writer has written `data` and closed it."""
    reader, writer = os.pipe()
    os.write(writer, data)
    os.close(writer)
    stream = open(reader, encoding="utf-8")  # noqa: SIM115 - closed by the test
    monkeypatch.setattr(sys, "stdin", stream)
    return stream


@pytest.mark.parametrize(("data", "expected"), [(b"a", True), (b"", False)])
def test_only_a_pipe_with_something_in_it_counts(
    data: bytes, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pipe_with(data, monkeypatch):
        assert pipe_has_text() is expected
        assert read_stdin() == data  # looking takes nothing away


def test_a_standard_input_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert not pipe_has_text()
    with pytest.raises(ValueError, match="standard input is closed"):
        stdin()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x")))
    assert not pipe_has_text()  # none of the system's


def test_a_file_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\xef\xbb\xbfa\r\n\xff")
    assert read_file(str(path)) == b"\xef\xbb\xbfa\r\n\xff"
