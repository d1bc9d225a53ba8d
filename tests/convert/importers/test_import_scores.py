"""SentencePiece's byte pair encoding from a tokenizer.json: scores for its merges."""

from __future__ import annotations

import json
from typing import Any

import pytest
import tokenizers

from ggufbpe import Tokenizer
from ggufbpe.convert.exporters.hf_config import HFConfig
from ggufbpe.convert.imported import pack
from ggufbpe.convert.importers.hf_document import HFDocument
from ggufbpe.convert.importers.import_hf import import_tokenizer
from ggufbpe.convert.importers.import_scores import goes_by_scores, import_scores
from ggufbpe.convert.score_merges import merges_by_scores
from ggufbpe.gguf.constants import TokenType
from ggufbpe.gguf.source import Source
from ggufbpe.models.loading import load
from ggufbpe.models.spm import score_ranks

BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
TOKENS = ["<unk>", *BYTES, "▁", "a", "b", "ab", "▁a"]
ESCAPE = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
PREPEND = {"type": "Prepend", "prepend": "▁"}
MERGES = [["a", "b"], ["▁", "a"]]


def document(*, model: Any = None, config: dict[str, Any] | None = None, **parts: Any) -> HFDocument:
    """A tokenizer.json as of Llama 2, with some parts replaced."""
    vocab = {text: index for index, text in enumerate(TOKENS)}
    own = {"type": "BPE", "vocab": vocab, "merges": MERGES, "unk_token": "<unk>", "byte_fallback": True}
    normalizer = {"type": "Sequence", "normalizers": [PREPEND, ESCAPE]}
    return HFDocument(
        {"normalizer": normalizer, **parts, "model": {**own, **(model or {})}}, HFConfig(config or {})
    )


@pytest.mark.parametrize(
    ("parts", "written", "expected"),
    [
        ({}, "", True),
        ({"normalizer": ESCAPE}, "", False),
        ({"normalizer": ESCAPE}, "scores", True),
        ({"normalizer": None, "pre_tokenizer": {"type": "Metaspace"}}, "", True),
        ({"pre_tokenizer": {"type": "ByteLevel"}}, "scores", False),
    ],
)
def test_goes_by_scores(parts: dict[str, Any], written: str, expected: bool) -> None:
    assert goes_by_scores(document(**parts), written) is expected


def test_scores_make_the_merges_in_their_order() -> None:
    keys, told = import_scores(document())
    scores = keys["tokenizer.ggml.scores"]
    ids = {text: index for index, text in enumerate(TOKENS)}
    made = merges_by_scores(TOKENS, score_ranks(scores, len(scores)), ids).pairs
    assert made == [("a", "b"), ("▁", "a")]
    assert told == []
    assert keys["tokenizer.ggml.unknown_token_id"] == 0
    assert keys["tokenizer.ggml.add_space_prefix"] is True
    types = keys["tokenizer.ggml.token_type"]
    assert types[:2] == [int(TokenType.UNKNOWN), int(TokenType.BYTE)]


def test_scores_of_an_export_are_taken_if_they_make_the_merges() -> None:
    scores = {"-1.0": [TOKENS.index("ab")], "-2.0": [TOKENS.index("▁a")], "-5.0": [*range(260)]}
    keys, _ = import_scores(document(config={"gguf": {"scores": scores}}))
    assert keys["tokenizer.ggml.scores"] == [*[-5.0] * 260, -1.0, -2.0]
    swapped = {"-2.0": [TOKENS.index("ab")], "-1.0": [TOKENS.index("▁a")], "-5.0": [*range(260)]}
    keys, _ = import_scores(document(config={"gguf": {"scores": swapped}}))
    assert keys["tokenizer.ggml.scores"] != [*[-5.0] * 260, -2.0, -1.0]


METASPACE = {"type": "Metaspace", "prepend_scheme": "always", "split": False}
LIMITS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a space before a text without one": (
        {"normalizer": None, "pre_tokenizer": METASPACE},
        ["spaces_at_the_start"],
    ),
    "a metaspace that puts none": (
        {"normalizer": None, "pre_tokenizer": {**METASPACE, "prepend_scheme": "never"}},
        [],
    ),
    "a space before the text alone": (
        {"normalizer": None, "pre_tokenizer": {**METASPACE, "prepend_scheme": "first"}},
        ["first_prefix", "spaces_at_the_start"],
    ),
    "another normalizer": ({"normalizer": {"type": "NFC"}}, ["normalizer"]),
    "splitting": ({"pre_tokenizer": {"type": "Whitespace"}}, ["splitting"]),
    "no byte fallback": ({"model": {"byte_fallback": False}}, ["bytes_without_tokens"]),
    "whole words": ({"model": {"ignore_merges": True}}, ["ignore_merges"]),
    "dropout": ({"model": {"dropout": 0.1}}, ["dropout"]),
    "a pair without a merge": ({"model": {"merges": MERGES[:1]}}, ["pairs_without_merges"]),
    "an added token of characters that are no tokens": (
        {"added_tokens": [{"id": len(TOKENS), "content": "▁x", "special": False}]},
        ["pairs_without_merges"],
    ),
}


@pytest.mark.parametrize("name", LIMITS)
def test_limits(name: str) -> None:
    parts, names = LIMITS[name]
    _, told = import_scores(document(**parts))
    assert [limit.name for limit in told] == names


@pytest.mark.parametrize("scheme", ["always", "first"])
def test_no_space_goes_before_one_in_the_library(scheme: str) -> None:
    ids = {text: index for index, text in enumerate(TOKENS)}
    model = tokenizers.models.BPE(ids, [(a, b) for a, b in MERGES], unk_token="<unk>", byte_fallback=True)
    library = tokenizers.Tokenizer(model)
    library.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace("▁", scheme, False)
    data = pack(import_tokenizer(json.loads(library.to_str())).metadata)
    tok = Tokenizer(load(Source("imported", data))[0])
    assert library.encode("a").ids == tok.encode("a")
    assert library.encode(" a").ids != tok.encode(" a")


@pytest.mark.parametrize(
    ("pre_tokenizer", "puts"),
    [
        (METASPACE, True),
        ({**METASPACE, "prepend_scheme": "never"}, False),
        ({"type": "Metaspace", "add_prefix_space": False}, False),
        ({"type": "Metaspace"}, True),
    ],
)
def test_space_before_a_text(pre_tokenizer: dict[str, Any], puts: bool) -> None:
    keys, _ = import_scores(document(normalizer=None, pre_tokenizer=pre_tokenizer))
    assert keys["tokenizer.ggml.add_space_prefix"] is puts
