"""Where text comes from: arguments, files, standard input. All of it as bytes."""

from __future__ import annotations

import argparse
import io
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

from .._util.errors import naming
from . import _output
from ._arguments import UsageError

_PATIENCE = 1.0  # seconds


class _NamedFile(io.FileIO):
    """A file whose name is in errors of reading, as in those of opening."""

    def readinto(self, buffer: Any) -> int:
        with naming(str(self.name)):
            return super().readinto(buffer)

    def readall(self) -> bytes:
        with naming(str(self.name)):
            return super().readall()


def opened_file(path: str) -> BinaryIO:
    """A file to be read; errors of reading name it, too."""
    return io.BufferedReader(_NamedFile(path))


def read_file(path: str) -> bytes:
    with opened_file(path) as file:
        return file.read()


def settle_stdin(arguments: argparse.Namespace, *names: str) -> None:
    """Set `arguments.stdin` if "-" is among the sources `names`, or if none of them is given and a text is piped in.

    Only a pipe with something in it counts: not a terminal, /dev/null, an empty pipe, or a closed standard input.
    """
    for name in names:
        given = getattr(arguments, name)
        if given == "-" and name not in ("prompt", "user"):
            setattr(arguments, name, None)
            arguments.stdin = True
        elif isinstance(given, list) and "-" in given:
            setattr(arguments, name, [each for each in given if each != "-"])
            arguments.stdin = True
    if not arguments.stdin and all(getattr(arguments, name) in (None, []) for name in names):
        arguments.stdin = pipe_has_text()


@contextmanager
def given_text(arguments: argparse.Namespace, command: str) -> Iterator[BinaryIO | None]:
    """The text of the one source that is given: TEXT where the command takes it, -p or -f. None for standard input."""
    names = [name for name in ("text", "prompt", "file") if name in arguments]
    given = [value for name in names if (value := getattr(arguments, name)) is not None]
    if len(given) + arguments.stdin != 1:
        text = "TEXT, " * ("text" in arguments)
        raise UsageError(f"give one text: {text}-p TEXT, -f PATH or --stdin (see ggufbpe {command} --help)")
    if arguments.stdin:
        yield None
    elif arguments.file is not None:
        with opened_file(arguments.file) as file:
            yield file
    else:
        yield io.BytesIO(os.fsencode(given[0]))


def read_text(arguments: argparse.Namespace, command: str) -> bytes:
    """All of that text."""
    with given_text(arguments, command) as given:
        return (given or stdin()).read()


def pipe_has_text() -> bool:
    """Whether standard input is a pipe, a socket or a file with something in it."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):  # closed, or none of the system's
        return False
    is_piped = stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)
    return is_piped and _has_something()


def _has_something() -> bool:
    """Whether there is a first byte; a note says what we wait for if it does not come at once."""
    import select

    with suppress(OSError, ValueError):  # not on Windows, whose pipes cannot be asked
        if not select.select([sys.stdin], [], [], _PATIENCE)[0]:
            _output.note("ggufbpe: reading standard input")
    return bool(sys.stdin.buffer.peek(1))  # type: ignore[union-attr]


def read_stdin() -> bytes:
    """All of standard input."""
    return stdin().read()


def stdin() -> BinaryIO:
    """Standard input, to be read block by block."""
    if sys.stdin is None:
        raise ValueError("standard input is closed")
    return sys.stdin.buffer
