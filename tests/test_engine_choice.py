"""Which engine runs, and that it is said: the compiled module may be absent, or there and broken.

Each case is a copy of the package with something in the place of the compiled module, in a process without what is
installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import ROOT

FOREIGN = "_native.cpython-27-x86_64-linux-gnu.so"
BROKEN: dict[str, tuple[str, str, str]] = {  # what is there: file, content, what is said of it
    "no ELF": (f"_native{EXTENSION_SUFFIXES[0]}", "not a library", ""),
    "another Python's": (FOREIGN, "a library", f"{FOREIGN} is not for"),
    "a missing symbol": (
        "_native.py",
        "raise ImportError('undefined symbol: _Z3abc')",
        "undefined symbol: _Z3abc",
    ),
    "a missing module": ("_native.py", "import no_such_module", "no_such_module"),
    "a failure of its own": ("_native.py", "raise RuntimeError('of\\nits own')", "of its own"),
}

PROGRAM = """if True:
    import sys, warnings
    sys.path.insert(0, sys.argv[1])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            from ggufbpe.kernel import native
            from ggufbpe import Tokenizer
            tok = Tokenizer.from_gguf(sys.argv[2])
            print(tok.engine, tok.encode("Hello world"))
        except ValueError as error:
            print(error)
    print([type(each.message).__name__ for each in caught], *(each.message for each in caught))
    from ggufbpe.cli import main
    main(["--version"])
"""


class Said(NamedTuple):
    outcome: str  # the engine and ids of a text; or the error
    warned: str  # kinds of warnings, and what they say
    version: str  # of `ggufbpe --version`
    errors: str


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("package")
    ignored = shutil.ignore_patterns("__pycache__", "src", "*.so", "*.pyd", "data")
    shutil.copytree(ROOT / "ggufbpe", folder / "ggufbpe", ignore=ignored)
    return folder


def said(package: Path, engine: str) -> Said:
    run = subprocess.run(
        [
            sys.executable,
            "-S",
            "-B",
            "-c",
            PROGRAM,
            str(package),
            str(ROOT / "ggufbpe" / "data" / "gpt2.gguf"),
        ],
        env={**os.environ, "GGUFBPE_ENGINE": engine, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        timeout=120,
    )
    lines = [*run.stdout.splitlines(), "", "", ""]
    return Said(*lines[:3], run.stderr)


@pytest.fixture(params=BROKEN)
def broken(request: pytest.FixtureRequest, package: Path) -> Iterator[tuple[Path, str]]:
    """The package with a compiled module that does not load, and what is said of it."""
    name, content, hint = BROKEN[request.param]
    path = package / "ggufbpe" / "kernel" / name
    path.write_text(content)
    yield package, hint
    path.unlink()


@pytest.mark.parametrize("engine", ["", "auto"])
def test_only_absence_is_silent(package: Path, engine: str) -> None:
    found = said(package, engine)
    assert (found.outcome, found.warned, found.errors) == ("reference [15496, 995]", "[]", "")
    assert "(engine: reference; follows llama.cpp " in found.version


def test_what_does_not_load_warns(broken: tuple[Path, str]) -> None:
    package, hint = broken
    found = said(package, "auto")
    assert found.outcome == "reference [15496, 995]"
    assert found.warned.startswith("['RuntimeWarning'] ggufbpe runs on its reference engine")
    assert "it does not load: " in found.warned
    assert hint in found.warned
    assert "(engine: reference; the compiled one is there, but it does not load: " in found.version
    assert hint in found.version


def test_native_makes_it_an_error(broken: tuple[Path, str]) -> None:
    package, hint = broken
    found = said(package, "native")
    assert found.outcome.startswith(
        "GGUFBPE_ENGINE=native asks for the compiled engine, but it does not load: "
    )
    assert hint in found.outcome
    assert found.errors.startswith("ggufbpe: error: GGUFBPE_ENGINE=native")  # of --version


def test_native_makes_absence_an_error(package: Path) -> None:
    found = said(package, "native")
    assert found.outcome == "GGUFBPE_ENGINE=native asks for the compiled engine, but it is not installed"


def test_reference_is_silent(broken: tuple[Path, str]) -> None:
    found = said(broken[0], "reference")
    assert (found.outcome, found.warned, found.errors) == ("reference [15496, 995]", "[]", "")
    assert "(engine: reference; follows llama.cpp " in found.version


@pytest.mark.parametrize("engine", ["fast", "Native", "0"])
def test_other_values_are_an_error(package: Path, engine: str) -> None:
    found = said(package, engine)
    assert found.outcome == f"GGUFBPE_ENGINE must be one of auto, native, reference, not {engine!r}"
