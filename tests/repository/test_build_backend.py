"""The build backend: an install whose compiler fails goes on without the compiled engine, and keeps the error.

`scripts/without_compiler.sh` installs the package for real; here, a function stands in for scikit-build-core.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from conftest import ROOT

pytest.importorskip("scikit_build_core")

ERRORS: dict[str, tuple[str, str]] = {  # the output of a build, the error that is quoted
    "gcc": (
        "[1/9] Building CXX object a.o\na.cpp: In function 'f':\na.cpp:3:1: error: expected ';'\na.cpp:4:1: error: no",
        "a.cpp:3:1: error: expected ';'",
    ),
    "a flag is no error": (
        "FAILED: a.o\nc++ -Werror -c errors.cpp\na.cpp:1:1: fatal error: no x.h",
        "a.cpp:1:1: fatal error: no x.h",
    ),
    "MSVC": (
        "a.cpp(12,3): error C2065: 'x': undeclared identifier",
        "a.cpp(12,3): error C2065: 'x': undeclared identifier",
    ),
    "out of memory": (
        "c++: fatal error: Killed signal terminated program cc1plus",
        "c++: fatal error: Killed signal terminated program cc1plus",
    ),
    "no compiler": (
        "-- begun\nCMake Error at CMakeLists.txt:6:\n  No CMAKE_CXX_COMPILER could be found.\n\n  Tell CMake where",
        "No CMAKE_CXX_COMPILER could be found.",
    ),
    "a compiler that is no file": (
        "CMake Error at CMakeLists.txt:6:\n  The CMAKE_CXX_COMPILER:\n\n    /none\n\n  is not a full path.\n\n  Tell",
        "The CMAKE_CXX_COMPILER: /none is not a full path.",
    ),
    "a compiler that compiles nothing": (
        'CMake Error at x.cmake:60 (message):\n  The C++ compiler\n\n    "/c++"\n\n  is not able to compile a simple '
        "test program.\n\n  It fails with the following output:\n\n    ld: error: no libc\n",
        'The C++ compiler "/c++" is not able to compile a simple test program. ld: error: no libc',
    ),
    "CMake without a sentence": ("CMake Error: what now\nnothing", "CMake Error: what now"),
    "no error in it": ("one\ntwo\n\n", "two"),
    "nothing": ("", "the build failed without a message"),
    "a long one": ("a.cpp:1:1: error: " + "x" * 900, "a.cpp:1:1: error: " + "x" * 282),
}


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The backend in an empty checkout."""
    monkeypatch.syspath_prepend(ROOT / "build_backend")
    import ggufbpe_build

    (tmp_path / "ggufbpe" / "native").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GGUFBPE_ENGINE", raising=False)
    return ggufbpe_build


class Builder:
    """Stands in for a function of scikit-build-core whose compiler prints an error to each stream, and fails."""

    def __init__(self, backend: ModuleType) -> None:
        self.report = backend.BUILD_ERROR
        self.settings: list[Any] = []
        self.reported = ""

    def __call__(self, folder: str, settings: Any) -> str:
        self.settings.append(settings)
        if (settings or {}).get("wheel.cmake") != "false":
            program = "import sys; print('[1/9] a.cpp', flush=True); print('a.cpp:1:1: error: naïve', file=sys.stderr)"
            subprocess.run([sys.executable, "-X", "utf8", "-c", program], check=True)
            raise SystemExit(1)
        self.reported = self.report.read_text(encoding="utf-8")
        return "ggufbpe-py3-none-any.whl"


@pytest.mark.parametrize("case", ERRORS)
def test_first_error(case: str, backend: ModuleType) -> None:
    output, error = ERRORS[case]
    assert backend.first_error(output) == error


@pytest.mark.parametrize(("kind", "is_kept"), [("build_wheel", False), ("build_editable", True)])
@pytest.mark.parametrize("settings", [None, {"build-dir": "elsewhere"}])
def test_a_compiler_that_fails(
    kind: str,
    is_kept: bool,
    settings: dict[str, str] | None,
    backend: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    builder = Builder(backend)
    monkeypatch.setattr(backend.scikit_build, kind, builder)
    assert getattr(backend, kind)("wheels", settings) == "ggufbpe-py3-none-any.whl"
    assert builder.settings == [
        settings,
        {**(settings or {}), "wheel.cmake": "false", "wheel.platlib": "false"},
    ]
    assert builder.reported == "a.cpp:1:1: error: naïve\n\n[1/9] a.cpp\na.cpp:1:1: error: naïve\n"
    assert backend.BUILD_ERROR.exists() == is_kept
    printed = capfd.readouterr()
    assert printed.out == "[1/9] a.cpp\na.cpp:1:1: error: naïve\n"
    assert "could not be built: a.cpp:1:1: error: naïve\n" in printed.err


@pytest.mark.parametrize("kind", ["build_wheel", "build_editable"])
def test_the_compiled_engine_can_be_required(
    kind: str, backend: ModuleType, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    builder = Builder(backend)
    monkeypatch.setattr(backend.scikit_build, kind, builder)
    monkeypatch.setenv("GGUFBPE_ENGINE", "native")
    with pytest.raises(SystemExit):
        getattr(backend, kind)("wheels")
    assert builder.settings == [None]
    assert capfd.readouterr().err == (
        "\nThe compiled engine of ggufbpe could not be built: a.cpp:1:1: error: naïve\n"
    )


@pytest.mark.parametrize("kind", ["build_wheel", "build_editable"])
def test_a_build_that_succeeds_leaves_no_old_error(
    kind: str, backend: ModuleType, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    backend.BUILD_ERROR.write_text("of an earlier build")
    monkeypatch.setattr(backend.scikit_build, kind, lambda folder, settings: "ggufbpe-cp311.whl")
    assert getattr(backend, kind)("wheels") == "ggufbpe-cp311.whl"
    assert not backend.BUILD_ERROR.exists()
    assert capfd.readouterr().err == ""
