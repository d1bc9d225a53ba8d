"""The C library finds the facts in a file that the Python package finds, or both refuse the file."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any

import pytest
from c_library import INTERNAL, LIBRARY, TRUNCATED, CLibraryError, CTokenizer, facts_of
from conftest import ROOT
from damaged_files import damaged
from reference import cache_directory

from ggufbpe import GGUFError, GGUFWarning
from ggufbpe.models.loading import load

pytestmark = pytest.mark.skipif(not LIBRARY, reason="GGUFBPE_C_LIBRARY names no library")

FILES = [
    *sorted((ROOT / "fixtures").rglob("*.gguf")),
    ROOT / "ggufbpe" / "models" / "gpt2.gguf",
    *sorted((cache_directory() / "vocabs").glob("*.gguf")),
]
SMALL = [path for path in FILES if "vocabs" in path.parts and path.stat().st_size < 20_000]
DAMAGES = 60  # of each file


def by_python(path: Path | str, data: bytes | None = None) -> dict[str, Any] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GGUFWarning)
            return facts_of(load(path, data=data)[0])
    except GGUFError:
        return None


def by_c(data: bytes | Path) -> dict[str, Any] | None:
    try:
        with CTokenizer.open_buffer(data) if isinstance(data, bytes) else CTokenizer.open_file(data) as tok:
            return tok.facts()
    except CLibraryError as error:
        if error.status == INTERNAL:
            raise
        return None


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_same_facts_of_known_files(path: Path) -> None:
    assert by_c(path) == by_python(path)


@pytest.mark.parametrize("path", SMALL, ids=lambda path: path.stem)
def test_same_facts_of_damaged_files(path: Path) -> None:
    data, dice = path.read_bytes(), random.Random(path.stem)
    for _ in range(DAMAGES):
        hurt = damaged(data, dice)
        assert by_c(hurt) == by_python("damaged.gguf", hurt), hurt


@pytest.mark.parametrize(
    "path", [path for path in SMALL if "gpt-oss" in path.stem], ids=lambda path: path.stem
)
def test_every_beginning_says_how_much_more_it_needs(path: Path) -> None:
    data = path.read_bytes()
    assert by_c(data) is not None
    for size in range(len(data)):
        with pytest.raises(CLibraryError) as caught:
            CTokenizer.open_buffer(data[:size])
        assert caught.value.status == TRUNCATED
        assert size < caught.value.needed <= len(data)
