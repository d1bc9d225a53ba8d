"""The error for an unknown pre-tokenizer names those that are near, and the one that the tokens point to."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import GPT2
from reference import with_pre, write_metadata

from ggufbpe.gguf.metadata import Metadata
from ggufbpe.gguf.reader import GGUFFile
from ggufbpe.models.pretokenizers.unknown_names import add_nearest, unknown_pre_tokenizer


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("llama-bqe", "unknown pre-tokenizer 'llama-bqe' (near: llama-bpe"),
        ("zzzzzzzz", "unknown pre-tokenizer 'zzzzzzzz', which llama.cpp"),
    ],
)
def test_near_names(tmp_path: Path, name: str, problem: str) -> None:
    path = write_metadata(tmp_path / "m.gguf", {"tokenizer.ggml.pre": name})
    with GGUFFile(path) as file:
        error = unknown_pre_tokenizer(Metadata(file), name)
        assert error.problem.startswith(problem)
        assert (error.path, error.key) == (str(path), "tokenizer.ggml.pre")
        assert error.offset == file.offset("tokenizer.ggml.pre")
        before = error.problem
        add_nearest(error, Metadata(file))  # without tokens there is nothing to add
        assert (error.problem, error.nearest) == (before, "")


def test_the_tokens_point_to_a_name(tmp_path: Path) -> None:
    with GGUFFile(with_pre(GPT2, "gpt-x", tmp_path / "m.gguf")) as file:
        metadata = Metadata(file)
        error = unknown_pre_tokenizer(metadata, "gpt-x")
        add_nearest(error, metadata)
    assert error.nearest == "gpt-2"
    assert (error.share or 0) > 0.998
    assert "By its tokens the vocabulary was made with gpt-2" in error.problem
    assert "--override-kv tokenizer.ggml.pre=str:gpt-2" in error.remedy
