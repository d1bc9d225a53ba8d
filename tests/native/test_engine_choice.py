"""Which engine runs, and that it is said: the compiled module may be absent, not compilable, or there and broken.

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
            from ggufbpe.native import native
            from ggufbpe import Tokenizer
            tok = Tokenizer.from_gguf(sys.argv[2], *sys.argv[3:])
            print(tok.engine, tok.encode("Hello world"))
            Tokenizer.from_gguf(sys.argv[2], *sys.argv[3:])  # a second one warns of nothing
        except ValueError as error:
            print(error)
    print([type(each.message).__name__ for each in caught], *(each.message for each in caught), flush=True)
    from ggufbpe.cli import main
    print(main(["--version"]))
"""
TRAINING = """if True:
    import sys
    sys.path.insert(0, sys.argv[1])
    from ggufbpe import train
    print(train(["low lower lowest"], vocab_size=258).merges)
"""
REMEDY = "install ggufbpe again where a C++17 compiler works: pip install --force-reinstall --no-deps --no-cache-dir"


class Said(NamedTuple):
    outcome: str  # the engine and ids of a text; or the error
    warned: str  # kinds of warnings, and what they say
    version: str  # all lines of `ggufbpe --version`
    errors: str


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("package")
    ignored = shutil.ignore_patterns("__pycache__", "src", "*.so", "*.pyd", "*.gguf", "*.xz")
    shutil.copytree(ROOT / "ggufbpe", folder / "ggufbpe", ignore=ignored)
    return folder


def run(program: str, package: Path, engine: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-S", "-B", "-c", program, str(package), *arguments],
        env={**os.environ, "GGUFBPE_ENGINE": engine, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        timeout=120,
    )


def said(package: Path, engine: str, *arguments: str) -> Said:
    done = run(PROGRAM, package, engine, str(ROOT / "ggufbpe" / "models" / "gpt2.gguf"), *arguments)
    outcome, warned, *version = [*done.stdout.splitlines(), "", ""]
    return Said(outcome, warned, "\n".join(version), done.stderr)


@pytest.fixture(params=BROKEN)
def broken(request: pytest.FixtureRequest, package: Path) -> Iterator[tuple[Path, str]]:
    """The package with a compiled module that does not load, and what is said of it."""
    name, content, hint = BROKEN[request.param]
    path = package / "ggufbpe" / "native" / name
    path.write_text(content)
    yield package, hint
    path.unlink()


@pytest.fixture
def not_compiled(package: Path) -> Iterator[Path]:
    """The package as it is installed where the compiler failed."""
    path = package / "ggufbpe" / "native" / "build_error.txt"
    path.write_text("special.cpp:148:5: error: no such luck\n\n[1/9] Building CXX object\n")
    yield package
    path.unlink()


@pytest.mark.parametrize("engine", ["", "auto"])
def test_absence_warns_once(package: Path, engine: str) -> None:
    found = said(package, engine)
    assert (found.outcome, found.errors) == ("reference [15496, 995]", "")
    assert found.warned.startswith(
        "['RuntimeWarning'] ggufbpe's compiled engine does not run: it is not installed. "
    )
    assert REMEDY in found.warned
    assert "(engine: reference; follows llama.cpp " in found.version
    assert "does not run: it is not installed.\n" in found.version
    assert REMEDY in found.version


@pytest.mark.parametrize(
    ("engine", "arguments"), [("reference", ()), ("auto", ("reference",)), ("reference", ("auto",))]
)
def test_what_was_asked_for_is_no_warning(package: Path, engine: str, arguments: tuple[str, ...]) -> None:
    found = said(package, engine, *arguments)
    assert (found.outcome, found.warned, found.errors) == ("reference [15496, 995]", "[]", "")


def test_the_compilers_error_is_quoted(not_compiled: Path) -> None:
    found = said(not_compiled, "")
    why = (
        "it could not be built when ggufbpe was installed: special.cpp:148:5: error: no such luck (the whole output: "
        f"{not_compiled / 'ggufbpe' / 'native' / 'build_error.txt'})"
    )
    assert f"does not run: {why}. " in found.warned
    assert f"does not run: {why}.\n" in found.version
    assert said(not_compiled, "native").outcome == (
        f"GGUFBPE_ENGINE=native asks for the compiled engine, but {why}"
    )
    assert f"not available: {why}. engine='reference' needs none. " in said(not_compiled, "", "native").errors


def test_a_command_warns_in_one_line(not_compiled: Path) -> None:
    program = "import sys; sys.path.insert(0, sys.argv[1]); from ggufbpe.cli import main; main(sys.argv[2:])"
    # without -m, the package's own vocabulary would be opened, which the copy has not
    model = str(ROOT / "ggufbpe" / "models" / "gpt2.gguf")
    done = run(program, not_compiled, "", "tokenize", "-m", model, "-p", "Hello world", "--ids")
    assert done.stdout == "[15496, 995]\n"
    assert done.stderr.startswith("ggufbpe: warning: ggufbpe's compiled engine does not run: ")
    assert done.stderr.count("\n") == 1


def test_training_warns(package: Path) -> None:
    done = run(TRAINING, package, "")
    assert done.stdout == "[('l', 'o'), ('lo', 'w')]\n"
    assert "RuntimeWarning: ggufbpe's compiled engine does not run: it is not installed" in done.stderr


@pytest.mark.slow
def test_what_does_not_load_warns(broken: tuple[Path, str]) -> None:
    package, hint = broken
    found = said(package, "auto")
    assert found.outcome == "reference [15496, 995]"
    assert found.warned.startswith(
        "['RuntimeWarning'] ggufbpe's compiled engine does not run: it does not load: "
    )
    assert hint in found.warned
    assert "The compiled engine, which is much faster, does not run: it does not load: " in found.version
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


@pytest.mark.slow
def test_reference_is_silent(broken: tuple[Path, str]) -> None:
    found = said(broken[0], "reference")
    assert (found.outcome, found.warned, found.errors) == ("reference [15496, 995]", "[]", "")
    assert "(engine: reference; follows llama.cpp " in found.version
    assert (
        "does not run: it is turned off: GGUFBPE_ENGINE=reference is in the environment.\n" in found.version
    )
    assert REMEDY not in found.version


@pytest.mark.parametrize("engine", ["fast", "Native", "0"])
def test_other_values_are_an_error(package: Path, engine: str) -> None:
    found = said(package, engine)
    assert found.outcome == f"GGUFBPE_ENGINE must be one of auto, native, reference, not {engine!r}"
