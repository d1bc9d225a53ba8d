"""Limits name the added tokens that llama.cpp treats differently."""

from __future__ import annotations

from typing import Any

import pytest
from tokenizer_json_cases import document

from ggufbpe.convert.importers.hf_limits import added_token_limits, metaspace_limits

LIMITS: list[tuple[dict[str, Any], dict[str, Any], tuple[str, str, str], list[str]]] = [
    ({"lstrip": True}, {}, ("gpt-2", "gpt2", ""), ["lstrip"]),
    ({"lstrip": True, "content": "<mask>"}, {}, ("jina-v2-de", "gpt2", ""), []),
    ({"rstrip": True}, {}, ("gpt-2", "gpt2", "Phi-3-mini"), []),
    ({"rstrip": True, "single_word": True}, {}, ("gpt-2", "gpt2", "x"), ["rstrip", "single_word"]),
    ({"normalized": True}, {"normalizer": {"type": "NFC"}}, ("gpt-2", "gpt2", ""), ["normalized_tokens"]),
    ({"normalized": True}, {}, ("gpt-2", "gpt2", ""), []),
]


@pytest.mark.parametrize(("flags", "parts", "model", "names"), LIMITS)
def test_added_token_limits(
    flags: dict[str, Any], parts: dict[str, Any], model: tuple[str, str, str], names: list[str]
) -> None:
    read = document(added_tokens=[{"id": 3, "content": "<s>", **flags}], **parts)
    assert [limit.name for limit in added_token_limits(read, *model)] == names


SENTENCES = {
    "lstrip": "{} the white space before {}, which llama.cpp does only for models of some names",
    "rstrip": "{} the white space after {}, which llama.cpp does only for models of some names",
    "single_word": "{} found only as {}, which llama.cpp never asks for",
    "normalized": "{} found in the normalized text, which llama.cpp does not have",
}
VERBS = {
    "lstrip": [("takes", "it"), ("take", "them")],
    "rstrip": [("takes", "it"), ("take", "them")],
    "single_word": [("is", "a whole word"), ("are", "whole words")],
    "normalized": [("is",), ("are",)],
}


@pytest.mark.parametrize("flag", SENTENCES)
def test_sentences_about_one_token_and_several(flag: str) -> None:
    added = [{"id": 3, "content": "<x>", flag: True}, {"id": 4, "content": "<y>", flag: True}]
    for count, names in ((1, "'<x>'"), (2, "'<x>', '<y>'")):
        read = document(added_tokens=added[:count], normalizer={"type": "NFC"})
        [limit] = added_token_limits(read, "gpt-2", "gpt2", "")
        assert limit.what == f"{names} {SENTENCES[flag].format(*VERBS[flag][count - 1])}"


@pytest.mark.parametrize(
    ("metaspace", "removes", "names"),
    [
        ({}, False, ["spaces_at_the_start"]),
        ({}, True, []),
        ({"prepend_scheme": "first"}, False, ["first_prefix", "spaces_at_the_start"]),
        ({"prepend_scheme": "first"}, True, ["first_prefix"]),
        ({"prepend_scheme": "never"}, False, []),
        ({"add_prefix_space": False}, False, []),
    ],
)
def test_metaspace_limits(metaspace: dict[str, Any], removes: bool, names: list[str]) -> None:
    read = document(pre_tokenizer={"type": "Metaspace", **metaspace})
    assert [limit.name for limit in metaspace_limits(read, removes)] == names
