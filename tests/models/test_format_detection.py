"""Which tokenizer model a file's tokens were made for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import GPT2
from reference import write_metadata

from ggufbpe.gguf.reader import GGUFFile
from ggufbpe.models.format_detection import Looks, detect_looks, models_alike, models_like

T = "tokenizer.ggml."
PLAIN = [f"t{number}" for number in range(500)]
WORDS = [f"▁t{number}" for number in range(500)]
BERT = ["[CLS]", "[SEP]", "[UNK]"]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]

FILES: dict[str, tuple[dict[str, Any], Looks]] = {
    "too few tokens": ({T + "tokens": PLAIN[:499]}, Looks()),
    "no tokens": ({}, Looks()),
    "plain": ({T + "tokens": PLAIN}, Looks(is_telling=True)),
    "a tenth begins words": ({T + "tokens": PLAIN[:450] + WORDS[:50]}, Looks(is_telling=True)),
    "more begin words": (
        {T + "tokens": PLAIN[:449] + WORDS[:51]},
        Looks(is_telling=True, begins_words=True),
    ),
    "byte level with merges": (
        {T + "tokens": ["Ġ" + text for text in PLAIN], T + "merges": ["a b"]},
        Looks(is_telling=True, is_byte_level=True, has_merges=True),
    ),
    "BERT's own": (
        {T + "tokens": BERT + ["##" + text for text in PLAIN]},
        Looks(is_telling=True, continues_words=True, has_bert_names=True),
    ),
    "ranks and bytes": (
        {T + "tokens": WORDS + BYTES, T + "scores": [float(-number) for number in range(756)]},
        Looks(is_telling=True, begins_words=True, has_bytes=True, has_ranks=True),
    ),
    "logarithms": (
        {T + "tokens": WORDS, T + "scores": [-number / 7 for number in range(500)]},
        Looks(is_telling=True, begins_words=True, has_logarithms=True),
    ),
    "equal scores say nothing": (
        {T + "tokens": WORDS, T + "scores": [0.5] * 500},
        Looks(is_telling=True, begins_words=True),
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_detect_looks(tmp_path: Path, name: str) -> None:
    keys, looks = FILES[name]
    with GGUFFile(write_metadata(tmp_path / "m.gguf", keys)) as file:
        assert detect_looks(file) == looks


def test_a_real_file_looks_like_its_own_model() -> None:
    with GGUFFile(GPT2) as file:
        looks = detect_looks(file)
    assert (looks.is_byte_level, looks.has_merges) == (True, True)
    assert models_like(looks, "gpt2") == []
    assert "gpt2" in models_like(looks, "bert")


LIKE = [
    (FILES["BERT's own"][1], "gpt2", ["bert"]),
    (FILES["BERT's own"][1], "bert", []),
    (FILES["ranks and bytes"][1], "t5", ["llama"]),
    (FILES["logarithms"][1], "bert", ["t5"]),
    (Looks(), "bert", []),
]


@pytest.mark.parametrize(("looks", "own", "models"), LIKE)
def test_models_like(looks: Looks, own: str, models: list[str]) -> None:
    assert models_like(looks, own) == models
    for model in models:
        assert own not in models_alike(looks, model)
