"""What the commands of this folder's generators share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path


def write_or_print(description: str | None, target: Path, module_text: Callable[[], str]) -> None:
    """Write a generated file to its place; with `--print`, print it and write nothing."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--print", action="store_true", help="print the file and write nothing")
    if parser.parse_args().print:
        print(module_text(), end="")
    else:
        target.write_text(module_text(), encoding="utf-8")
