"""The pages in docs/for/: each is read from top to bottom by a newcomer with an empty folder and the command alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from commands import posix_only
from conftest import ROOT

PAGES = sorted((ROOT / "docs" / "for").glob("*.md"))


def blocks(page: Path) -> list[tuple[str, str]]:
    """The examples of a page in order, each with its language."""
    return re.findall(r"^```(\w+)\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def shell(commands: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "bin").mkdir(exist_ok=True)
    command = folder / "bin" / "ggufbpe"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m ggufbpe "$@"\n')
    command.chmod(0o755)
    path = os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        ["bash", "-c", f"set -euo pipefail\n{commands}"],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )


def assert_serves(command: str, folder: Path) -> None:
    """Start a server on a port that is free, and end it once it listens."""
    arguments = [sys.executable, "-m", *command.split(), "--port", "0"]
    server = subprocess.Popen(arguments, cwd=folder, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    assert any("listening at" in line for line in server.stderr)
    server.terminate()
    server.communicate(timeout=60)
    assert server.returncode == 0


@pytest.mark.slow
@posix_only
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_runs_from_top_to_bottom(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    session: dict[str, Any] = {}
    for kind, text in blocks(page):
        if kind == "python":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)
                exec(compile(text, page.name, "exec"), session)
            continue
        if text.startswith("ggufbpe serve"):
            assert_serves(text, tmp_path)
            continue
        commands, shown = text, None
        if kind == "console":
            lines = text.splitlines(keepends=True)
            commands = "".join(line[2:] for line in lines if line.startswith("$ "))
            shown = "".join(line for line in lines if not line.startswith("$ "))
        done = shell(commands, tmp_path)
        assert done.returncode == 0, done.stderr
        if shown is not None:
            assert done.stdout == shown


def test_pages_begin_with_a_command_and_are_short_and_linked() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(PAGES) == 7
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 70
        assert text.index("```") < 500
        assert f"docs/for/{page.name}" in readme
        for link in re.findall(r"\]\(([^)#]+)", text):
            assert (page.parent / link).exists(), link
    assert len(readme.splitlines()) <= 120
