"""scripts/environment.sh: the steps that it says, and that the engine is compiled once, whatever extras come later.

A Python that only writes down what it is asked for takes the place of the real one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from commands import posix_only
from conftest import ROOT

pytestmark = posix_only

PYTHON = """\
#!/bin/sh
echo "$*" >> "$LOG"
case "$1 $2 $3" in
"-m venv .venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
-c*) case "$2" in *why_not_native*) ;; *) echo x ;; esac ;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    (folder / "ggufbpe/native/src").mkdir(parents=True)
    (folder / "scripts").mkdir()
    shutil.copy(ROOT / "scripts/environment.sh", folder / "scripts")
    for name in ("pyproject.toml", "CMakeLists.txt"):
        (folder / name).touch()
    (folder / "python").write_text(PYTHON)
    (folder / "python").chmod(0o755)
    return folder


def prepare(folder: Path, extra: str = "") -> tuple[list[str], list[str]]:
    """What is said of steps, and what pip installs."""
    log = folder / "log"
    log.write_text("")
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    for tool in ("cmake", "ninja"):
        (tools / tool).touch(mode=0o755)
    command = f". scripts/environment.sh; environment {extra}"
    environment = {
        **os.environ,
        "LOG": str(log),
        "PYTHON": str(folder / "python"),
        "PATH": f"{tools}:{os.environ['PATH']}",
    }
    done = subprocess.run(
        ["sh", "-euc", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    installed = [
        line.split("--disable-pip-version-check --no-compile ")[1]
        for line in log.read_text().splitlines()
        if "install" in line.split()
    ]
    return done.stderr.splitlines(), installed


def test_steps_and_one_build(checkout: Path) -> None:
    said, installed = prepare(checkout)
    assert said == [
        "1 of 3: making .venv",
        "2 of 3: installing what builds ggufbpe",
        "3 of 3: compiling the engine and installing ggufbpe: minutes, the first time",
    ]
    assert installed == ["--requirement .venv/build-requirements", "--no-build-isolation --editable ."]
    assert prepare(checkout) == ([], [])
    said, installed = prepare(checkout, "test")
    assert said == ["1 of 1: installing what the extra test needs; the engine is compiled already"]
    assert installed == ["ggufbpe[test]"]
    assert prepare(checkout, "test") == ([], [])


def test_changed_sources_are_compiled_again(checkout: Path) -> None:
    prepare(checkout)
    later = os.stat(checkout / ".venv/installed-").st_mtime + 10
    source = checkout / "ggufbpe/native/src/a.cpp"
    source.touch()
    os.utime(source, (later, later))
    said, installed = prepare(checkout, "test")
    assert said[-1].startswith(
        "2 of 2: compiling the engine and installing ggufbpe with what its extra test needs"
    )
    assert installed[-1] == "--no-build-isolation --editable .[test]"
