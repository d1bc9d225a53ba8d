"""The C library in CMake projects of others: found by `find_package`, or a part of their source."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CMAKE = shutil.which("cmake") or ""
pytestmark = pytest.mark.skipif(not CMAKE or shutil.which("c++") is None, reason="needs CMake and a compiler")

PACKAGE = f"""
include(CMakePackageConfigHelpers)
set(package ${{CMAKE_BINARY_DIR}}/lib/cmake/ggufbpe)
configure_package_config_file({ROOT}/cmake/ggufbpe-config.cmake.in ${{package}}/ggufbpe-config.cmake
                              INSTALL_DESTINATION lib/cmake/ggufbpe)
file(WRITE ${{package}}/ggufbpe-targets.cmake "")
list(APPEND CMAKE_PREFIX_PATH ${{CMAKE_BINARY_DIR}})
"""


def configured(folder: Path, *lines: str) -> subprocess.CompletedProcess[str]:
    """What CMake says of a project for C and C++ with these lines."""
    head = ("cmake_minimum_required(VERSION 3.18)", "project(program LANGUAGES C CXX)")
    (folder / "CMakeLists.txt").write_text("\n".join((*head, *lines)))
    return subprocess.run(
        [CMAKE, "-S", str(folder), "-B", str(folder / "build")], capture_output=True, text=True, timeout=300
    )


@pytest.mark.parametrize(
    ("components", "is_found"),
    [
        ("", True),
        ("COMPONENTS shared", True),
        ("COMPONENTS static shared", True),
        ("COMPONENTS nonsense", False),
    ],
)
def test_a_component_that_there_is_not_is_not_found(components: str, is_found: bool, tmp_path: Path) -> None:
    done = configured(tmp_path, PACKAGE, f"find_package(ggufbpe REQUIRED {components})")
    assert (done.returncode == 0) is is_found, done.stderr
    assert is_found or "NOT FOUND" in " ".join(done.stderr.split())


def test_the_source_can_be_a_part_of_another_project(tmp_path: Path) -> None:
    """Without Python's extension module, which needs nanobind, and with both libraries."""
    (tmp_path / "program.c").write_text("int main(void) { return 0; }")
    done = configured(
        tmp_path,
        f"add_subdirectory({ROOT} ggufbpe EXCLUDE_FROM_ALL)",
        "add_executable(program program.c)",
        "target_link_libraries(program PRIVATE ggufbpe::static)",
        'message(STATUS "extension: ${GGUFBPE_EXTENSION}")',
    )
    assert done.returncode == 0, done.stderr
    assert "extension: OFF" in done.stdout
