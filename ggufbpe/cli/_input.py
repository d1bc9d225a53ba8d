"""Where text comes from: arguments, files, standard input. All of it as bytes."""

from __future__ import annotations

import argparse
import os
import stat
import sys
from typing import BinaryIO


def read_file(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def settle_stdin(arguments: argparse.Namespace, *names: str) -> None:
    """Set `arguments.stdin` where "-" is among the sources `names`, or none of them is given and a pipe is there.

    A pipe is all that gives a text by itself: a terminal, /dev/null and a closed standard input do not.
    """
    for name in names:
        given = getattr(arguments, name)
        if given == "-" and name != "prompt":
            setattr(arguments, name, None)
            arguments.stdin = True
        elif isinstance(given, list) and "-" in given:
            setattr(arguments, name, [each for each in given if each != "-"])
            arguments.stdin = True
    if not arguments.stdin and all(getattr(arguments, name) in (None, []) for name in names):
        arguments.stdin = is_piped()


def is_piped() -> bool:
    """Whether standard input is a pipe, a socket or a file."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):  # closed, or none of the system's
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def read_stdin() -> bytes:
    """All of standard input."""
    return stdin().read()


def stdin() -> BinaryIO:
    """Standard input, to be read block by block."""
    if sys.stdin is None:
        raise ValueError("standard input is closed")
    return sys.stdin.buffer
