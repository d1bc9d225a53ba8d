"""Every page with examples runs from top to bottom as a newcomer would type it, in an empty folder.

What a block shows is compared with what it prints. A page's shell keeps its variables, its sessions in Python go on
where the ones before ended, and a server that it starts runs until the page ends. What cannot be run here is in
`NOT_RUN`, each with its reason.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from commands import posix_only, write_command
from conftest import GPT2, ROOT
from stores import make_named_stores

import ggufbpe

FOR_PEOPLE = sorted((ROOT / "docs" / "for").glob("*.md"))
PAGES = [
    ROOT / "README.md",
    *FOR_PEOPLE,
    *(page for page in sorted((ROOT / "docs").glob("*.md")) if "\n```" in page.read_text(encoding="utf-8")),
]
PAGES.remove(ROOT / "docs" / "integrations.md")  # test_integrations_page.py runs it, where its libraries are

NOT_RUN = {
    "c": {
        "cmake -S": "scripts/check_library.sh builds and installs it",
        "cmake --build": "the same",
        "cmake --install": "the same",
    },
    "javascript": {"import { Tokenizer }": "tests/javascript/ runs the package in Node and a browser"},
    "README": {
        "./run tokenize": "it sets up .venv, as .ci/run does",
        "sh scripts/test.sh": "these are the tests",
    },
    "chat": {
        "ggufbpe verify -m model.gguf --against hf:": "no hub is asked; test_transformers_templates.py has folders",
        "ggufbpe doctor model.gguf --upstream hf:": "the same",
    },
    "corpora": {
        "ggufbpe encode -m model.gguf corpus -o shards --ray local": "test_ray.py runs `--ray local`",
        "ggufbpe encode -m model.gguf s3://": "neither a cluster nor an S3 store is here",
        "ggufbpe train /mnt/corpus": "the same; test_ray.py trains on a cluster of its own",
        "import ggufbpe, pathlib, ray": "test_ray.py runs it, on the cluster that its tests share",
        "import datasets": "test_ray.py runs it, beside the others",
        "import ggufbpe\nfrom datatrove": "the same",
        "python benchmarks/corpora.py": "it takes ten minutes of an idle machine",
    },
    "llama_cpp": {
        "ggufbpe verify -m model.gguf --llama-cpp b11549": "test_oracles.py starts a llama-server",
        "ggufbpe verify -m model.gguf --against llama-cpp:": "test_oracles.py asks libraries in folders",
    },
    "performance": {
        "python scripts/reference.py": "it builds llama.cpp",
        "pip install": "the index of packages is not asked",
        "python benchmarks/": "it takes an hour of an idle machine",
    },
    "server": {
        "[Unit]": "systemd runs it",
        "FROM python": "a container is not built",
        "location /tokens/": "nginx is not among the tests' packages",
        "server {": "the same",
    },
    "stats": {"ggufbpe stats -m gpt-2.gguf -m llama-3.gguf": "the texts are 42 MB of Debian's manuals"},
}
"""By page the beginnings of commands, or of blocks in Python or JavaScript, that are not run."""

STORES = {"chat", "names"}
"""Pages that name models of Ollama and the hub, which are where these programs would have put them."""

BEFORE = {
    "README": """
ggufbpe export --to vocab-gguf -o model.gguf
ggufbpe fix model.gguf --set tokenizer.ggml.pre=qwen2 -o broken.gguf
mkdir docs
ggufbpe help > docs/help.txt
""",
}
"""What a page expects to be there: README shows what diagnose says before it tells how to try it."""


def blocks(page: Path) -> list[tuple[str, str]]:
    """The examples of a page in order, each with its language."""
    return re.findall(r"^```(\w+)\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def commands_of(text: str) -> list[str]:
    """The commands of a block in sh, with the lines of each: until one is whole."""
    commands, lines, end = [], "", None
    for line in text.splitlines(keepends=True):
        lines += line
        if begun := re.search(r"<<'(\w+)'", line):
            end = begun[1] + "\n"
        if line == end or (end is None and not line.endswith("\\\n")):
            commands.append(lines)
            lines, end = "", None
    assert not lines
    return commands


class Newcomer:
    """Somebody with an empty folder who types what a page shows."""

    def __init__(self, page: Path, folder: Path, home: Path) -> None:
        self.page, self.folder, self.home = page, folder, home
        self.session: dict[str, Any] = {}
        self.server: subprocess.Popen[str] | None = None
        self.address = ""
        self.not_run = NOT_RUN.get(page.stem, {})
        self.left_out: set[str] = set()
        (home / "bin").mkdir()
        write_command(home / "bin" / "ggufbpe")

    def is_left_out(self, example: str) -> bool:
        beginnings = {beginning for beginning in self.not_run if example.startswith(beginning)}
        self.left_out |= beginnings
        return bool(beginnings)

    def types(self, kind: str, text: str) -> None:
        if self.is_left_out(text.removeprefix("$ ")) and kind != "sh":
            return
        if kind == "pycon":
            self.runs_session(text)
        elif kind == "python":
            with warnings.catch_warnings():
                for category in (ResourceWarning, ggufbpe.GGUFWarning):  # a short example leaves files open
                    warnings.simplefilter("ignore", category)
                exec(compile(text, self.page.name, "exec"), self.session)
        elif kind == "console":
            lines = text.splitlines(keepends=True)
            done = self.shell("".join(line[2:] for line in lines if line.startswith("$ ")))
            assert done.stdout == "".join(line for line in lines if not line.startswith("$ "))
        elif text.startswith("ggufbpe serve"):
            self.serves(text)
        else:
            assert kind == "sh", kind
            done = self.shell(
                "set -e\n" + "".join(each for each in commands_of(text) if not self.is_left_out(each))
            )
            assert done.returncode == 0, done.stdout

    def runs_session(self, text: str) -> None:
        example = doctest.DocTestParser().get_doctest(text, self.session, self.page.name, None, None)
        assert doctest.DocTestRunner(verbose=False).run(example, clear_globs=False).failed == 0
        self.session = example.globs

    def environment(self) -> dict[str, str]:
        path = os.pathsep.join([str(self.home / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
        return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}

    def shell(self, commands: str) -> subprocess.CompletedProcess[str]:
        """Run commands with the variables that earlier ones exported; standard error is part of what is printed."""
        variables = self.home / "variables"
        variables.touch()
        if self.address:
            commands = commands.replace("http://localhost:8080", self.address)
        return subprocess.run(
            [
                "bash",
                "-c",
                f"set -uo pipefail; . {variables}; trap 'export -p > {variables}' EXIT\n{commands}",
            ],
            cwd=self.folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            timeout=600,
        )

    def serves(self, command: str) -> None:
        """Start a server on a port that is free, which later examples ask."""
        self.leaves()
        self.server = subprocess.Popen(
            [sys.executable, "-m", *shlex.split(command), "--port", "0"],
            cwd=self.folder,
            env=self.environment(),
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.server.stderr is not None
        self.address = next(line.split()[-1] for line in self.server.stderr if "listening at" in line)

    def leaves(self) -> None:
        """End the server, if one runs."""
        if self.server is not None:
            self.server.terminate()
            self.server.communicate(timeout=60)
            assert self.server.returncode == 0


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to be in, and a home that has nothing either."""
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in [name for name in os.environ if name.startswith(("HF_", "LLAMA_CACHE", "OLLAMA_", "XDG_"))]:
        monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("MPLCONFIGDIR", str(home))
    monkeypatch.setenv("LLAMA_CACHE", "")  # which a page may set: afterwards it is as it was
    monkeypatch.setattr("builtins._", None, raising=False)  # what Python keeps of the line before
    return folder


@pytest.mark.slow
@posix_only
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_runs_from_top_to_bottom(page: Path, empty: Path) -> None:
    newcomer = Newcomer(page, empty, Path(os.environ["HOME"]))
    if page.stem in STORES:
        chat = {"<|im_start|>": "CONTROL", "<|im_end|>": "CONTROL"}
        ggufbpe.fix(GPT2, newcomer.home / "chat.gguf", add_tokens=chat, chat_template="known:chatml")
        make_named_stores(newcomer.home, (newcomer.home / "chat.gguf").read_bytes())
    assert newcomer.shell(f"set -e\n{BEFORE.get(page.stem, '')}").returncode == 0
    try:
        for kind, text in blocks(page):
            newcomer.types(kind, text)
    finally:
        newcomer.leaves()
    assert newcomer.left_out == set(newcomer.not_run)  # what is said not to run is there


def test_pages_begin_with_a_command_and_are_short_and_linked() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(FOR_PEOPLE) == 9
    for page in FOR_PEOPLE:
        text = page.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 90
        assert text.index("```") < 500
        assert f"docs/for/{page.name}" in readme
        for link in re.findall(r"\]\(([^)#]+)", text):
            assert (page.parent / link).exists(), link
    assert len(readme.splitlines()) <= 120


# ---- what is not run ------------------------------------------------------------------------------------


def block(page: str, beginning: str) -> str:
    [found] = [
        text for _, text in blocks(ROOT / "docs" / page) if text.removeprefix("$ ").startswith(beginning)
    ]
    return found


def test_what_ci_runs_itself_is_there() -> None:
    assert "sh scripts/test.sh" in (ROOT / ".ci" / "run").read_text()
    for name in ("run", "scripts/test.sh"):
        assert "environment" in (ROOT / name).read_text()
        assert subprocess.run(["sh", "-n", str(ROOT / name)]).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "beginning"),
    [("performance.md", "python scripts/reference.py"), ("corpora.md", "python benchmarks/corpora.py")],
)
def test_what_measures_takes_the_flags_that_are_shown(page: str, beginning: str) -> None:
    project = (ROOT / "pyproject.toml").read_text()
    for line in block(page, beginning).splitlines():
        program, script, *arguments = shlex.split(line, comments=True)
        if program == "pip":
            assert "\nbench = [" in project
            continue
        command = [script, *(word for word in arguments if word == "prepare"), "--help"]
        shown = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True)
        assert shown.returncode == 0
        assert [flag for flag in arguments if flag.startswith("--") and flag not in shown.stdout] == []


@pytest.mark.slow
@posix_only
def test_table_of_manuals_has_the_columns_of_today(empty: Path) -> None:
    newcomer = Newcomer(ROOT / "docs" / "stats.md", empty, Path(os.environ["HOME"]))
    (empty / "manual" / "de").mkdir(parents=True)
    (empty / "manual" / "de" / "text").write_text("Guten Tag")
    for name in ("gpt-2", "llama-3"):
        shutil.copy(GPT2, f"{name}.gguf")
    command, _, shown = block("stats.md", "ggufbpe stats -m gpt-2.gguf").removeprefix("$ ").partition("\n")
    now = newcomer.shell(command).stdout
    for beginning in ("bytes", "vocabulary"):
        columns = [
            next(line.split() for line in lines.splitlines() if line.split()[:1] == [beginning])
            for lines in (shown, now)
        ]
        assert columns[0] == columns[1]
