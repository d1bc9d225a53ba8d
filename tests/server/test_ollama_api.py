"""The server answers Ollama's clients; the answers have the fields that ollama's Python package reads."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import pytest
from conftest import GPT2
from small_models import small_model
from stores import TEMPLATE, ollama_layer, ollama_model

from ggufbpe import Tokenizer, __version__
from ggufbpe.server.failures import RequestError
from ggufbpe.server.ollama_api import show_answer, tags_answer, version_answer
from ggufbpe.server.served_models import Models
from ggufbpe.server.streamed_answers import answer_json

__all__ = ["small_model"]  # a fixture

pytestmark = pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")


@pytest.fixture
def stored(small_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Models:
    """A model of Ollama's store with a Go template, another file, and one that is not there."""
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path))
    layers = [
        ollama_layer(tmp_path, small_model.read_bytes()),
        ollama_layer(tmp_path, b"{{ .Prompt }}", TEMPLATE),
    ]
    ollama_model(tmp_path, "registry.ollama.ai/library/small/latest", layers)
    return Models({"ollama:small": "ollama:small", "gpt2": str(GPT2), "gone": "/nowhere.gguf"})


def test_tags(stored: Models) -> None:
    small, gpt2, gone = tags_answer(stored, {})["models"]
    assert (small["name"], small["model"], len(small["digest"])) == ("small:latest", "small:latest", 64)
    assert small["details"]["family"] == "gpt2"
    for each in (gpt2, gone):  # `ollama list` ends with a panic where a digest is shorter than 12 characters
        assert re.fullmatch("[0-9a-f]{64}", each["digest"])
    assert len({each["digest"] for each in (small, gpt2, gone)}) == 3
    assert (gpt2["name"], gpt2["size"]) == ("gpt2", GPT2.stat().st_size)
    assert datetime.fromisoformat(gpt2["modified_at"]).timestamp() == pytest.approx(GPT2.stat().st_mtime)
    assert (gone["name"], gone["size"], gone["modified_at"]) == ("gone", 0, "0001-01-01T00:00:00Z")
    assert gone["details"].keys() == small["details"].keys()
    assert version_answer(stored, {}) == {"version": __version__}


def test_show(stored: Models) -> None:
    small = show_answer(stored, {"model": "small"})
    assert small["template"] == "{{ .Prompt }}"
    assert small == show_answer(stored, {"name": "ollama:small:latest"})
    gpt2 = show_answer(stored, {"model": "gpt2"})
    assert gpt2["model_info"]["tokenizer.ggml.tokens"] == []
    assert gpt2["model_info"]["general.architecture"] == gpt2["details"]["family"] == "gpt2"
    whole = show_answer(stored, {"model": "gpt2", "verbose": True})
    assert len(whole["model_info"]["tokenizer.ggml.tokens"]) == len(Tokenizer.from_gguf(GPT2))
    assert b'"tokenizer.ggml.model":"gpt2"' in answer_json(whole)
    for body, status in (
        ({"model": "none"}, 404),
        ({}, 400),
        ({"model": "gone"}, 500),
        ({"model": "gpt2", "verbose": 1}, 400),
    ):
        with pytest.raises(RequestError) as refusal:
            show_answer(stored, body)
        assert refusal.value.status == status
