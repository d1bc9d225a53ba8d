"""Where text comes from: arguments, files, standard input. All of it as bytes."""

from __future__ import annotations

import sys
from typing import BinaryIO


def read_file(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def read_stdin() -> bytes:
    """All of standard input."""
    return stdin().read()


def stdin() -> BinaryIO:
    """Standard input, to be read block by block."""
    if sys.stdin is None:
        raise ValueError("standard input is closed")
    return sys.stdin.buffer
