"""The examples of docs/integrations.md run, each in a folder with the model that they open."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from conftest import GPT2, ROOT
from integration_cases import library

PAGE = (ROOT / "docs" / "integrations.md").read_text(encoding="utf-8")
FIRST, *EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
LIBRARIES = {
    "langchain": "langchain_text_splitters",
    "lm_format_enforcer": "lmformatenforcer",
    "vllm": "transformers",
}
MODULES = {path.stem for path in (ROOT / "ggufbpe" / "integrations").glob("[a-z]*.py")}


def test_every_module_has_an_example() -> None:
    assert set(re.findall(r"from ggufbpe\.integrations\.(\w+) import", PAGE)) == MODULES


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
