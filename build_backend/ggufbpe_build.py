"""The package's build backend: scikit-build-core, with a fallback where the compiled engine cannot be built.

If the C++ build fails, the package is built again without the compiled engine, and the engine in plain Python does the
work. pip hides the output of a build that succeeds in the end, so that output is kept: the installed package has
`ggufbpe/native/build_error.txt`, whose first line is the compiler's first error, followed by everything that was
printed. `ggufbpe --version` and the warning of `ggufbpe.native` quote the line and name the file.

With GGUFBPE_ENGINE=native in the environment there is no fallback: the installation fails, and pip prints the output.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from scikit_build_core import build as scikit_build
from scikit_build_core.build import (
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
]

Settings = dict[str, "list[str] | str"]

BUILD_ERROR = Path("ggufbpe", "native", "build_error.txt")
_PYTHON_ONLY: Settings = {"wheel.cmake": "false", "wheel.platlib": "false"}
_COMPILER_ERROR = re.compile(r"\berror(?: [A-Z]+\d+)?: ")  # of gcc, clang and linkers; of MSVC with a number
_LONGEST_ERROR = 300  # characters


def build_wheel(
    wheel_directory: str, config_settings: Settings | None = None, metadata_directory: str | None = None
) -> str:
    """Build a wheel and return its name; PEP 517 describes the arguments. `SystemExit` if that is impossible."""
    try:
        return _build(scikit_build.build_wheel, wheel_directory, config_settings)
    finally:
        BUILD_ERROR.unlink(missing_ok=True)  # the wheel has it


def build_editable(
    wheel_directory: str, config_settings: Settings | None = None, metadata_directory: str | None = None
) -> str:
    """Build an editable wheel and return its name; PEP 660 describes the arguments.

    `BUILD_ERROR` is written into the checkout, which is where an editable install runs.
    """
    return _build(scikit_build.build_editable, wheel_directory, config_settings)


def _build(build: Callable[..., str], wheel_directory: str, settings: Settings | None) -> str:
    BUILD_ERROR.unlink(missing_ok=True)
    chunks: list[bytes] = []
    try:
        with _recorded(chunks):
            return build(wheel_directory, settings)
    except SystemExit:  # CMake or the compiler failed
        output = b"".join(chunks).decode(errors="replace")
        error = first_error(output)
        print(f"\nThe compiled engine of ggufbpe could not be built: {error}", file=sys.stderr)
        if os.environ.get("GGUFBPE_ENGINE") == "native":
            raise
    print(
        "ggufbpe is built without it and runs on its reference engine, which is much slower.\n",
        file=sys.stderr,
    )
    BUILD_ERROR.write_text(f"{error}\n\n{output}", encoding="utf-8")
    return build(wheel_directory, {**(settings or {}), **_PYTHON_ONLY})


@contextmanager
def _recorded(chunks: list[bytes]) -> Iterator[None]:
    """Append to `chunks` what this process and its children write to standard output and error, and pass it on."""
    sys.stdout.flush()
    sys.stderr.flush()
    reading, writing = os.pipe()
    stdout, stderr = os.dup(1), os.dup(2)

    def pass_on() -> None:
        while chunk := os.read(reading, 1 << 16):
            chunks.append(chunk)
            while chunk:
                chunk = chunk[os.write(stdout, chunk) :]

    copying = threading.Thread(target=pass_on, daemon=True)
    copying.start()
    os.dup2(writing, 1)
    os.dup2(writing, 2)
    os.close(writing)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        copying.join(timeout=10)  # a compiler's cache server may hold the pipe open for ever


def first_error(output: str) -> str:
    """Return the first error in the output of CMake and a compiler, as one line.

    >>> first_error("[1/9] c++ -o a.o a.cpp\\na.cpp:3:1: error: expected ';'\\na.cpp:9:1: error: unknown")
    "a.cpp:3:1: error: expected ';'"
    >>> first_error("CMake Error at CMakeLists.txt:6 (project):\\n  No CMAKE_CXX_COMPILER\\n  could be found.\\n")
    'No CMAKE_CXX_COMPILER could be found.'
    """
    lines = output.splitlines()
    of_cmake = next((index for index, line in enumerate(lines) if line.startswith("CMake Error")), None)
    of_compiler = next((line for line in lines if _COMPILER_ERROR.search(line)), "")
    found = [of_compiler]
    if of_cmake is not None:
        found = [_sentence(lines[of_cmake:]), of_compiler]
    elif not of_compiler:
        found = [line for line in lines if line.strip()][-1:] or ["the build failed without a message"]
    return " ".join(" ".join(found).split())[:_LONGEST_ERROR]


def _sentence(lines: list[str]) -> str:
    """The first sentence of a message of CMake: the indented lines up to one that ends in a full stop.

    The first line, which says where the error is, is the answer if there is no sentence.
    """
    words: list[str] = []
    for line in lines[1:]:
        if line and not line.startswith(" "):
            break
        words += line.split()
        if line.endswith("."):
            break
    return " ".join(words) or lines[0]
