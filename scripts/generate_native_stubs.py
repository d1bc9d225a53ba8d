"""Write ggufbpe/kernel/_native.pyi: the types of the compiled module, for the type checker and for editors.

    python scripts/generate_native_stubs.py            # write it
    python scripts/generate_native_stubs.py --print    # or show it

nanobind's stubgen asks the module itself, so the module must be built first: `pip install -e .`, or any command that
scripts/environment.sh sets up. The stubs are checked in, so that types are there where the module is not.
"""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

from generated_file import write_or_print
from nanobind.stubgen import StubGen

TARGET = Path(__file__).resolve().parent.parent / "ggufbpe" / "kernel" / "_native.pyi"

HEAD = '''\
"""The compiled engine, ggufbpe/kernel/src. Use it through ggufbpe.Tokenizer.

Written by scripts/generate_native_stubs.py; do not edit.
"""

'''
# What a strict type checker does not take as stubgen writes it.
MENDED = {
    "def __eq__(self, other: Strings)": "def __eq__(self, other: object)",
    "raw: list,": "raw: list[Any],",
}


def module_text() -> str:
    """The whole file, as it stands in the repository. `ModuleNotFoundError` where there is no compiled module."""
    module = import_module("ggufbpe.kernel._native")
    stubs = StubGen(module, include_docstrings=False, quiet=True)
    stubs.put(module)
    text = stubs.get().lstrip()
    for written, mended in MENDED.items():
        text = text.replace(written, mended)
    formatter = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(TARGET), "-"]
    done = subprocess.run(formatter, input=HEAD + text, capture_output=True, text=True, check=True)
    return done.stdout


if __name__ == "__main__":
    write_or_print(__doc__, TARGET, module_text)
