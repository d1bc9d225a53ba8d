"""Where text comes from: arguments, files, standard input. All of it as bytes."""

from __future__ import annotations

import sys


def read_file(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def read_stdin() -> bytes:
    """All of standard input."""
    if sys.stdin is None:
        raise ValueError("standard input is closed")
    return sys.stdin.buffer.read()
