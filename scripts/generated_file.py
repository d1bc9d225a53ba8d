"""What the commands of this folder's generators share."""

from __future__ import annotations

import argparse
import lzma
from collections.abc import Callable
from pathlib import Path


def write_or_print(description: str | None, target: Path, module_text: Callable[[], str]) -> None:
    """Write a generated file to its place, packed where it ends in .xz; print it and write nothing with `--print`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--print", action="store_true", help="print the file and write nothing")
    if parser.parse_args().print:
        print(module_text(), end="")
        return
    data = module_text().encode("utf-8")
    target.write_bytes(
        lzma.compress(data, preset=9 | lzma.PRESET_EXTREME) if target.suffix == ".xz" else data
    )


def read_generated(target: Path) -> str:
    """What is in a generated file, unpacked."""
    data = target.read_bytes()
    return (lzma.decompress(data) if target.suffix == ".xz" else data).decode("utf-8")
