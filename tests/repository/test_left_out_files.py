"""Files of tests that import more than the extra `dev` installs are listed in conftest.py, or README's second command
fails on a fresh machine while they are collected."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from conftest import PACKAGES, ROOT

TESTS = ROOT / "tests"
LOCAL_FOLDERS = (TESTS / "helpers", TESTS / "makers", ROOT / "scripts")


def imported_when_collected(nodes: list[ast.stmt]) -> Iterator[str]:
    """The modules that a file imports outside of its functions, other than for types alone."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]
        elif isinstance(node, (ast.If, ast.Try, ast.With)) and "TYPE_CHECKING" not in ast.dump(node):
            yield from imported_when_collected(node.body)


@cache
def needed(path: Path) -> frozenset[str]:
    """The modules that collecting a file imports, those of the helpers that it imports included."""
    names = set(imported_when_collected(ast.parse(path.read_text(encoding="utf-8")).body))
    helpers = (folder / f"{name}.py" for name in names for folder in LOCAL_FOLDERS)
    return frozenset(names.union(*(needed(helper) for helper in helpers if helper.is_file())))


def test_what_a_file_needs_to_be_collected_is_installed_or_it_is_left_out() -> None:
    more_than_dev = {*PACKAGES.values(), "anthropic", "openai", "datasets", "datatrove"}
    files = {
        path.relative_to(TESTS).as_posix(): needed(path) & more_than_dev for path in TESTS.rglob("test_*.py")
    }
    assert {file: names for file, names in files.items() if names and file not in PACKAGES} == {}


def test_no_file_is_left_out_that_is_gone() -> None:
    assert all((TESTS / file).is_file() for file in PACKAGES)
