"""What the page consists of, on a server and as a static site."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest

from ggufbpe.cli import page as page_command
from ggufbpe.cli._arguments import UsageError
from ggufbpe.server import standalone_page
from ggufbpe.server.guard import FILES_OF_PAGE
from ggufbpe.server.page_files import page_files
from ggufbpe.server.standalone_page import NoWebAssemblyError, standalone_files


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in place of the JavaScript package."""
    folder = tmp_path / "package"
    folder.mkdir()
    monkeypatch.setattr(standalone_page, "_PACKAGE", folder)
    return folder


def test_the_server_has_each_file_of_the_page() -> None:
    assert {f"/{name}" for name in page_files()} - {"/index.html"} | {"/"} == set(FILES_OF_PAGE)


@pytest.mark.parametrize("name", [name for name in page_files() if name.endswith(".js")])
def test_modules_that_a_module_imports_are_there(name: str) -> None:
    imported = re.findall(rb'from "\./([^"]+)"', page_files()[name])
    assert {each.decode() for each in imported} <= set(page_files())


def test_the_static_site_differs_in_a_module_its_worker_and_a_policy(package: Path) -> None:
    (package / "ggufbpe.wasm").write_bytes(b"\0asm")
    files = standalone_files()
    differing = {name for name, content in page_files().items() if files[name] != content}
    assert differing == {"server.js", "index.html"}
    assert set(files) - set(page_files()) == {"answers.js", "gpt2.gguf", "ggufbpe/ggufbpe.wasm"}
    assert files["index.html"].count(b"Content-Security-Policy") == 1


def test_the_module_in_place_of_the_server_exports_the_same_names(package: Path) -> None:
    (package / "ggufbpe.wasm").write_bytes(b"\0asm")
    exported = rb"^export (?:const|let|async function|function) (\w+)"
    of_server, of_browser = (
        set(re.findall(exported, files["server.js"], re.MULTILINE))
        for files in (page_files(), standalone_files())
    )
    assert of_server - {b"onRefusal"} == of_browser


def test_without_webassembly_nothing_is_written(package: Path, tmp_path: Path) -> None:
    with pytest.raises(NoWebAssemblyError, match=r"no WebAssembly module.*scripts/wasm\.sh"):
        page_command.run(argparse.Namespace(output=str(tmp_path / "site"), json=False))
    assert not (tmp_path / "site").exists()


def test_a_folder_that_has_files_is_kept(package: Path, tmp_path: Path) -> None:
    (package / "ggufbpe.wasm").write_bytes(b"\0asm")
    mine = tmp_path / "mine" / "index.html"
    mine.parent.mkdir()
    mine.write_text("mine")
    given = argparse.Namespace(output=str(mine.parent), json=False, force=False)
    with pytest.raises(UsageError, match="not empty; --force writes over its files"):
        page_command.run(given)
    assert mine.read_text() == "mine"
    given.force = True
    assert page_command.run(given) == 0
    assert mine.read_text() != "mine"
