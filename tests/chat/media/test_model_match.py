"""Whether a projector can belong to a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gguf import GGUFWriter
from make_mmproj import AUDIO, make_mmproj

from ggufbpe.chat.media.model_match import embedding_mismatch
from ggufbpe.gguf.reader import GGUFFile


def model(path: Path, length: int | None) -> GGUFFile:
    writer = GGUFWriter(path, "llama")
    if length is not None:
        writer.add_embedding_length(length)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return GGUFFile(path)


@pytest.mark.parametrize(
    ("projector", "changes", "length", "is_mismatch"),
    [
        ("gemma3", {}, 8, False),
        ("gemma3", {}, 4096, True),
        ("gemma3", {"clip.vision.projection_dim": 4096}, 4096, False),
        ("gemma3", {"clip.vision.projection_dim": 0}, 4096, False),
        ("gemma3", {}, None, False),
        ("mlp", {}, 4096, False),
    ],
)
def test_projectors_of_images(
    projector: str, changes: dict[str, Any], length: int | None, is_mismatch: bool, tmp_path: Path
) -> None:
    mmproj = tmp_path / "mmproj.gguf"
    make_mmproj(mmproj, projector, changes)
    with model(tmp_path / "model.gguf", length) as file:
        found = embedding_mismatch(mmproj, file)
    assert found == (
        "the projector is for another model: its embeddings have the length 8, and those of the model 4096; "
        "llama.cpp refuses such a pair"
        if is_mismatch
        else ""
    )


def test_projectors_of_audio(tmp_path: Path) -> None:
    make_mmproj(tmp_path / "mmproj.gguf", "gemma4ua", {}, usual=AUDIO)
    with model(tmp_path / "model.gguf", 9) as file:
        assert "length 8, and those of the model 9" in embedding_mismatch(tmp_path / "mmproj.gguf", file)
