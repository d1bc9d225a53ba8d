"""Unigram models in a tokenizer.json."""

from __future__ import annotations

from typing import Any

import pytest
from synthetic import make_vocabulary

from ggufbpe.convert.exporters.hf_unigram import unigram_normalizer, unigram_parts
from ggufbpe.convert.portable_patterns import NotExpressibleError
from ggufbpe.models.vocabulary import CONTROL, UNKNOWN, UNUSED, USER_DEFINED, Vocabulary

TOKENS = {"<unk>": 0.0, "</s>": -7.0, "<u>": -7.0, "▁": -4.0, "a": -3.0, "low": -99.0, "old": -3.5}
KINDS = {"<unk>": UNKNOWN, "</s>": CONTROL, "<u>": USER_DEFINED, "low": UNUSED, "old": UNUSED}


def vocabulary(**changes: Any) -> Vocabulary:
    """A small unigram vocabulary."""
    return make_vocabulary(
        TOKENS,
        attributes=KINDS,
        model="t5",
        special_ids={"unk": 0},
        flags={"byte_encode": False},
        **{"scores": list(TOKENS.values()), **changes},
    )


def test_scores_for_a_library_that_takes_every_token() -> None:
    parts = unigram_parts(vocabulary(), False)
    assert dict(parts.model["vocab"]) == {
        "<unk>": -4.0,  # the lowest score of normal tokens, as for all that llama.cpp does not find in text
        "</s>": -4.0,
        "<u>": 0.0,
        "▁": -4.0,
        "a": -3.0,
        "low": -4.0,
        "old": -3.5,
    }
    assert parts.scores == {0: 0.0, 1: -7.0, 2: -7.0, 5: -99.0}  # those that the file must carry elsewhere
    assert parts.model["unk_id"] == 0
    names = [limit.name for limit in parts.limits]
    assert names == ["control_tokens_in_text", "scores_of_unused_tokens", "user_defined_prefixes"]


def test_a_score_that_json_does_not_have() -> None:
    scores = [*TOKENS.values()]
    scores[4] = float("inf")
    with pytest.raises(NotExpressibleError, match="the score of token 4, 'a', is inf"):
        unigram_parts(vocabulary(scores=scores), False)


NORMALIZERS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["Replace"]),
    ({"nfc": True}, ["NFC", "Replace"]),
    ({"charsmap": b"\0\0\0\0"}, ["Precompiled", "Replace"]),
    ({"add_space_prefix": True}, ["Replace", "Prepend"]),
    ({"remove_extra_whitespaces": True}, ["Replace", "Replace", "Prepend"]),
]


@pytest.mark.parametrize(("flags", "steps"), NORMALIZERS)
def test_normalizer(flags: dict[str, Any], steps: list[str]) -> None:
    assert [step["type"] for step in unigram_normalizer(vocabulary(**flags))] == steps
    decoder = unigram_parts(vocabulary(**flags), False).decoder or {}
    assert decoder["prepend_scheme"] == ("always" if "Prepend" in steps else "never")
