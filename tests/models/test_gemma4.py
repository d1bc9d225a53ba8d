"""Gemma 4 ignores `tokenizer.ggml.pre`."""

from __future__ import annotations

from pathlib import Path

import pytest
from reference import write_metadata

from ggufbpe._util.errors import MissingKeyError
from ggufbpe.gguf.metadata import Metadata
from ggufbpe.gguf.reader import GGUFFile
from ggufbpe.models.bpe.bpe_model import BytePairModel
from ggufbpe.models.gemma4 import Gemma4Model


@pytest.mark.parametrize("named_pre", ["", "gpt-2", "kimi-k2", "no-such-name"])
def test_any_name_stands_for_gemma4(tmp_path: Path, named_pre: str) -> None:
    path = write_metadata(tmp_path / "m.gguf", {"tokenizer.ggml.merges": ["a b"]})
    with GGUFFile(path) as opened:
        file = Metadata(opened)
        warned: list[str] = []
        assert Gemma4Model().pre_tokenizer(file, named_pre, warned.append).name == "gemma4"
        assert list(Gemma4Model().merges(file, named_pre)) == ["a b"]
    assert warned == []


def test_no_name_allows_a_file_without_merges(tmp_path: Path) -> None:
    with GGUFFile(write_metadata(tmp_path / "m.gguf", {"general.name": "x"})) as opened:
        assert BytePairModel().merges(Metadata(opened), "kimi-k2") == []
        with pytest.raises(MissingKeyError):
            Gemma4Model().merges(Metadata(opened), "kimi-k2")
