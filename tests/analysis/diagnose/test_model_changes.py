"""The file read as other tokenizer models."""

from __future__ import annotations

from pathlib import Path

import pytest
from real_vocabularies import cached

from ggufbpe import Tokenizer, fix
from ggufbpe.analysis.diagnose.model_changes import other_models


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_a_known_family_tells_which_model_is_tried(name: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.gguf"
    fix(cached("gemma-4"), bad, set={"tokenizer.ggml.model": name, "tokenizer.ggml.pre": "gpt-2"})
    assert [cause.detail["model"] for _, cause in other_models(Tokenizer.from_gguf(bad))] == ["gemma4"]
