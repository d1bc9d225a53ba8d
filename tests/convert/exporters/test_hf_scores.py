"""SentencePiece's byte pair encoding in a tokenizer.json."""

from __future__ import annotations

import pytest
from synthetic import make_vocabulary

from ggufbpe.convert.exporters.hf_scores import score_normalizer, score_parts
from ggufbpe.models.vocabulary import Vocabulary

BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
SCORES = {
    "<unk>": 0.0,
    **dict.fromkeys(BYTES, 0.0),
    "a": -9.0,
    "b": -9.0,
    "ab": -2.0,
    "ba": -1.0,
    "aba": -3.0,
}


def vocabulary(scores: dict[str, float], add_space_prefix: bool = True) -> Vocabulary:
    """An SPM vocabulary of these tokens."""
    return make_vocabulary(
        scores,
        model="llama",
        special_ids={"unk": 0},
        scores=list(scores.values()),
        add_space_prefix=add_space_prefix,
        flags={"byte_encode": False, "escape_whitespaces": True},
    )


def test_merges_by_score() -> None:
    parts = score_parts(vocabulary(SCORES), False)
    merges = parts.model["merges"]
    assert merges[:2] == [("b", "a"), ("a", "b")]  # the best score first
    assert set(merges[2:]) == {("a", "ba"), ("ab", "a")}
    assert parts.model["unk_token"] == "<unk>"
    assert parts.model["byte_fallback"] is True
    assert parts.pre_tokenizer is None
    assert parts.scores[1 + 256] == -9.0
    assert parts.limits == []


@pytest.mark.parametrize("prefix", [True, False])
def test_space_before_a_text(prefix: bool) -> None:
    normalizer, decoder = score_normalizer(prefix), score_parts(vocabulary(SCORES, prefix), False).decoder
    escape = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    prepend = {"type": "Prepend", "prepend": "▁"}
    assert normalizer == ({"type": "Sequence", "normalizers": [prepend, escape]} if prefix else escape)
    assert [step["type"] for step in (decoder or {})["decoders"]][3:] == ["Strip"] * prefix


LIMITS = {
    "order_of_equal_scores": {"aa": -1.0, "aaa": -1.0},
    "tokens_without_merges": {"xy": -1.0},
    "merged_byte_tokens": {"<0x41>a": -1.0},
}


@pytest.mark.parametrize("name", LIMITS)
def test_limits(name: str) -> None:
    limits = score_parts(vocabulary({**SCORES, **LIMITS[name]}), False).limits
    assert [limit.name for limit in limits] == [name]


def test_a_byte_without_a_token() -> None:
    without = {text: score for text, score in SCORES.items() if text != "<0xE4>"}
    assert [limit.name for limit in score_parts(vocabulary(without), False).limits] == [
        "bytes_without_tokens"
    ]
