"""Write ggufbpe/native/_native.pyi: the types of the compiled engine, for the type checker and for editors.

    python scripts/generate_native_stubs.py            # write it
    python scripts/generate_native_stubs.py --print    # or show it

nanobind's stubgen inspects the module itself, so that must be built first: `pip install -e .`, or any command that
scripts/environment.sh sets up. The stubs are checked in, so that types are known without the module.
"""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

from generated_file import write_or_print
from nanobind.stubgen import StubGen

TARGET = Path(__file__).resolve().parent.parent / "ggufbpe" / "native" / "_native.pyi"

HEAD = '''\
"""The compiled engine, ggufbpe/native/src. Use it through ggufbpe.Tokenizer.

Written by scripts/generate_native_stubs.py; do not edit.
"""

'''
# Lines of stubgen that a strict type checker rejects, and their replacements.
MENDED = {
    "def __eq__(self, other: Strings)": "def __eq__(self, other: object)",
    "raw: list,": "raw: list[Any],",
}


def module_text() -> str:
    """The whole file, as in the repository. `ModuleNotFoundError` without the compiled engine."""
    module = import_module("ggufbpe.native._native")
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
