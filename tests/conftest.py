"""Shared by all tests: where the vocabularies are, and what happens while one is absent."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))  # the makers of the fixtures; they also read them

GPT2 = ROOT / "ggufbpe" / "data" / "gpt2.gguf"
RAW_UTF8 = ROOT / "fixtures" / "raw-utf8.gguf"
UNSPLIT = ROOT / "fixtures" / "unsplit.gguf"


def missing(what: str) -> NoReturn:
    """Skip a test that needs something not in the repository; fail it in CI, where everything must be."""
    if os.environ.get("CI") == "true":
        pytest.fail(what)
    pytest.skip(what)


@pytest.fixture(scope="session")
def gpt2_path() -> Path:
    """GPT-2's vocabulary, which comes with the package."""
    return GPT2


@pytest.fixture(scope="session")
def raw_utf8_path() -> Path:
    """The small vocabulary in raw UTF-8, for the names that do not byte-encode."""
    return RAW_UTF8
