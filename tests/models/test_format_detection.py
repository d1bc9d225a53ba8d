"""Which tokenizer model a file's tokens were made for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import GPT2, ROOT
from reference import write_metadata

from ggufbpe.gguf.reader import GGUFFile
from ggufbpe.models.format_detection import Looks, detect_looks, likely_models, models_alike

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
        looks, tokens = detect_looks(file), file[T + "tokens"]
    assert (looks.is_byte_level, looks.has_merges) == (True, True)
    assert likely_models(tokens, looks, "gpt2", "gpt-2") == []
    assert likely_models(tokens, looks, "bert", None) == ["gpt2"]


SPACED = FILES["ranks and bytes"][1]
FLAT = SPACED._replace(has_ranks=False)  # scores that all are the same, or none
LIKELY = [
    (FILES["BERT's own"][1], "gpt2", ["bert"]),
    (FILES["BERT's own"][1], "bert", []),
    (SPACED, "llama", []),
    (SPACED, "t5", ["llama"]),
    (SPACED, "gpt2", ["llama"]),
    (SPACED, "unheard-of", []),
    (SPACED._replace(has_merges=True), "gpt2", []),
    (FILES["logarithms"][1], "bert", ["t5"]),
    # merges are lost, or scores: nothing tells which
    (FLAT, "gpt2", []),
    (FLAT, "gemma4", []),
    (FLAT, "t5", ["llama"]),
    (Looks(), "bert", []),
    (SPACED, "", ["llama"]),  # the file names none
    (FLAT._replace(has_bytes=False), "", []),
    (Looks(is_telling=True, is_byte_level=True), "whitespace", ["gpt2"]),
    (Looks(is_telling=True, is_byte_level=True), "hybriddna", []),
    (Looks(is_telling=True, is_byte_level=True, has_dna_names=True), "", ["hybriddna"]),
    (Looks(is_telling=True, is_byte_level=True, has_dna_names=True), "bert", ["hybriddna"]),
    (Looks(is_telling=True, is_byte_level=True, has_dna_names=True), "gpt2", []),
]


@pytest.mark.parametrize(("looks", "own", "models"), LIKELY)
def test_likely_models_by_looks(looks: Looks, own: str, models: list[str]) -> None:
    assert likely_models(PLAIN, looks, own, None) == models
    for model in models:
        assert own not in models_alike(looks, model)


GEMMA_4 = ["<pad>", "<eos>", "<bos>", *(f"▁t{number}" for number in range(262140)), "<unused6226>"]
OF_GEMMA_4 = Looks(is_telling=True, begins_words=True, has_bytes=True, has_merges=True)


@pytest.mark.parametrize(
    ("looks", "own", "pre", "models"),
    [
        (OF_GEMMA_4, "gemma4", None, []),
        (OF_GEMMA_4, "gpt2", None, ["gemma4"]),
        (OF_GEMMA_4, "gpt2", "gemma4", []),  # which splits alike
        (OF_GEMMA_4, "llama", None, ["gemma4"]),
        (OF_GEMMA_4._replace(has_merges=False), "gemma4", None, []),
        (OF_GEMMA_4._replace(has_merges=False), "gpt2", None, []),
    ],
)
def test_a_known_family_decides(looks: Looks, own: str, pre: str | None, models: list[str]) -> None:
    assert likely_models(GEMMA_4, looks, own, pre) == models


@pytest.mark.parametrize(
    ("name", "models"),
    [("rwkv", ["rwkv"]), ("plamo2", ["plamo2", "plamo3"]), ("plamo3", ["plamo2", "plamo3"])],
)
def test_escapes_and_names_tell_their_models(name: str, models: list[str], tmp_path: Path) -> None:
    with GGUFFile(ROOT / "fixtures" / "vocabs" / f"{name}.gguf") as file:
        tokens = [*file[T + "tokens"], *PLAIN]
        assert detect_looks(file) == Looks()  # too few tokens
    with GGUFFile(write_metadata(tmp_path / "m.gguf", {T + "tokens": tokens})) as file:
        looks = detect_looks(file)
    assert likely_models(tokens, looks, name, None) == []
    for own in ("llama", "t5", "bert"):
        assert likely_models(tokens, looks, own, None) == models
