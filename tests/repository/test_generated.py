"""The generated files of the package are what their generators in scripts/ print."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from conftest import ROOT, missing
from generated_file import read_generated

GENERATORS = sorted(path.stem for path in (ROOT / "scripts").glob("generate_*.py"))


def test_there_are_generators() -> None:
    assert {"generate_constants", "generate_native_stubs", "generate_unicode_classes"} <= set(GENERATORS)


@pytest.mark.slow
@pytest.mark.parametrize("name", GENERATORS)
def test_generated_file_is_up_to_date(name: str) -> None:
    try:
        generator = importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing(f"{error.name} is not installed: pip install 'ggufbpe[generate]'")
    target: Path = generator.TARGET
    try:
        text = generator.module_text()
    except ModuleNotFoundError as error:  # of what is to be described
        pytest.skip(f"there is no {error.name} here")
    except FileNotFoundError as error:  # of llama.cpp's sources; the recorded answers are made with the same
        pytest.skip(str(error))
    assert read_generated(target) == text, f"run python scripts/{name}.py"
