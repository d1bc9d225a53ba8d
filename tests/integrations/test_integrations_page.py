"""The examples of docs/integrations.md run, each in a folder with the model that they open."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from conftest import GPT2, ROOT
from integration_cases import library
from packaging.requirements import Requirement

PAGE = (ROOT / "docs" / "integrations.md").read_text(encoding="utf-8")
FIRST, *EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
LIBRARIES = {
    "langchain": "langchain_text_splitters",
    "lm_format_enforcer": "lmformatenforcer",
    "vllm": "transformers",
}
TESTED = dict(re.findall(r"^\| ✓ \| ([\w-]+) \| (\S+) \|", PAGE, re.MULTILINE))
PINS = dict(
    re.findall(r"^([\w-]+)==(\S+)$", (ROOT / "scripts" / "integrations.txt").read_text(), re.MULTILINE)
)
EXTRA = re.search(
    r"^integrations = \[(.*?)^\]", (ROOT / "pyproject.toml").read_text(), re.DOTALL | re.MULTILINE
)
MODULES = {path.stem for path in (ROOT / "ggufbpe" / "integrations").glob("[a-z]*.py")}


def test_every_module_has_an_example() -> None:
    assert set(re.findall(r"from ggufbpe\.integrations\.(\w+) import", PAGE)) == MODULES


def test_the_versions_are_those_that_are_pinned() -> None:
    pinned = {name.replace("_", "-").lower(): version for name, version in PINS.items()}
    pinned["llama-cpp-python"] = "0.3.36"  # of the extra of this name in pyproject.toml
    assert {name: pinned.get(name) for name in TESTED} == TESTED


def test_every_library_of_the_extra_is_listed_and_pinned_within_its_limits() -> None:
    assert EXTRA is not None
    wanted = [Requirement(each) for each in re.findall(r'"(.*?)"', EXTRA[1]) if "ggufbpe" not in each]
    assert {each.name for each in wanted} | {"llama-cpp-python", "outlines-core", "xgrammar"} == set(TESTED)
    assert [each.name for each in wanted if TESTED[each.name] not in each.specifier] == []


@pytest.mark.parametrize("example", EXAMPLES)
def test_example(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in re.findall(r"^(?:import|from) (\w+)", example, re.MULTILINE):
        if module == "llama_cpp":
            pytest.importorskip(module)
        elif module != "ggufbpe":
            library(module)
    for module in re.findall(r"ggufbpe\.integrations\.(\w+)", example):
        if module != "llama_cpp":
            library(LIBRARIES.get(module, module))
    shutil.copy(GPT2, tmp_path / "model.gguf")
    monkeypatch.chdir(tmp_path)
    exec(FIRST + example, {})
