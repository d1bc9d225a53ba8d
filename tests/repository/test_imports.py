"""The contract of imports: each room imports only rooms that stand before it, and no modules import each other.

Imports within functions and those for types alone count as well, because both tie rooms together. `ggufbpe/__init__.py`
is not under the contract: it is the list of public names.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "pyproject.toml").exists())
PACKAGE = ROOT / "ggufbpe"

ORDER = (
    "_util",
    "native",
    "gguf",
    "models",
    "hub",
    "chat.template",
    "chat.request",
    "chat",
    "convert",
    "tokenizer",
    "integrations",
    "data.corpora",
    "data.statistics",
    "data.training",
    "analysis.explain",
    "analysis.oracles",
    "analysis.doctor",
    "analysis.diagnose",
    "analysis.verify",
    "analysis.conversion",
    "analysis.views",
    "server",
    "cli",
    "__main__",
)


class Import(NamedTuple):
    importer: str
    imported: str
    only_for_types: bool


@cache
def modules() -> dict[str, Path]:
    """The modules of the package by their names without "ggufbpe."."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name:
            found[name] = path
    return found


@cache
def imports() -> tuple[Import, ...]:
    """All imports of one module of the package by another."""
    return tuple(found for name, path in modules().items() for found in imports_of(name, path))


def imports_of(name: str, path: Path) -> Iterator[Import]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    guarded = {
        node
        for test in ast.walk(tree)
        if isinstance(test, ast.If) and "TYPE_CHECKING" in ast.dump(test.test)
        for statement in test.body
        for node in ast.walk(statement)
    }
    package = ["ggufbpe", *name.split(".")]
    if path.name != "__init__.py":
        package.pop()
    for node in ast.walk(tree):
        targets: list[str] = []
        if isinstance(node, ast.ImportFrom):
            stem = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*stem, *filter(None, (node.module or "").split("."))])
            inner = [f"{origin}.{alias.name}" for alias in node.names]
            targets = [each if is_ours(each) else origin for each in inner]
        elif isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        for target in {target for target in targets if is_ours(target)}:
            imported = target.removeprefix("ggufbpe.")
            if imported != name:
                yield Import(name, imported, node in guarded)


def is_ours(name: str) -> bool:
    return name.startswith("ggufbpe.") and name.removeprefix("ggufbpe.") in modules()


def room(module: str) -> str:
    """The longest entry of `ORDER` that `module` belongs to."""
    fitting = [each for each in ORDER if module == each or module.startswith(f"{each}.")]
    return max(fitting, key=len, default="")


def test_every_module_has_a_room() -> None:
    rooms = {each.partition(".")[0] for each in ORDER}
    homeless = [name for name in modules() if not room(name) and name not in rooms]
    assert homeless == []


@pytest.mark.slow
@pytest.mark.parametrize("importer", ORDER)
def test_rooms_import_only_rooms_before_them(importer: str) -> None:
    allowed = ORDER[: ORDER.index(importer) + 1]
    upward = [
        f"{found.importer} imports {found.imported}"
        for found in imports()
        if room(found.importer) == importer and room(found.imported) not in (*allowed, "")
    ]
    assert upward == []


def test_no_modules_import_each_other() -> None:
    """Except for types alone, within a room."""
    graph: dict[str, set[str]] = {name: set() for name in modules()}
    for found in imports():
        if not found.only_for_types:
            graph[found.importer].add(found.imported)
    while (
        True
    ):  # take away what imports nothing and what nothing imports: circles and what is between them stay
        imported = {target for targets in graph.values() for target in targets}
        inner = {name for name, targets in graph.items() if targets & graph.keys() and name in imported}
        if len(inner) == len(graph):
            break
        graph = {name: graph[name] for name in inner}
    assert sorted(graph) == []
