"""XGrammar over the tokens of a GGUF: its masks are those of a brute-force check over all tokens."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from integration_cases import (
    END,
    JSON_SCHEMA,
    JSON_TEXTS,
    NUMBERS,
    TOK,
    allowed,
    allowed_in_json,
    ids_of_bits,
    library,
)

xgrammar = library("xgrammar")

from ggufbpe.integrations.xgrammar import tokenizer_info  # noqa: E402 - after its library

COMPILER = xgrammar.GrammarCompiler(tokenizer_info(TOK))


@pytest.mark.parametrize("text", ["a42", "é07", "😀99"])
def test_masks_of_a_regular_expression(text: str) -> None:
    check_masks(COMPILER.compile_regex(NUMBERS), text, allowed)


@pytest.mark.parametrize("text", JSON_TEXTS)
def test_masks_of_a_json_schema(text: str) -> None:
    schema = json.dumps(JSON_SCHEMA)
    grammar = COMPILER.compile_json_schema(schema, any_whitespace=False, separators=(", ", ": "))
    check_masks(grammar, text, allowed_in_json)


def check_masks(grammar: Any, text: str, expected: Callable[[bytes], set[int]]) -> None:
    matcher = xgrammar.GrammarMatcher(grammar)
    generated = b""
    for token in [*TOK.encode_ordinary(text), END]:
        bitmask = xgrammar.allocate_token_bitmask(1, len(TOK))
        matcher.fill_next_token_bitmask(bitmask)
        mask = {token for token in ids_of_bits(bitmask.numpy().tobytes()) if token < len(TOK)}
        assert mask == expected(generated)
        assert matcher.accept_token(token)
        generated += TOK.token_bytes[token]
    assert matcher.is_terminated()


@pytest.mark.parametrize(
    ("text", "is_valid"),
    [
        ({"name": "Zoë 😀", "age": 42}, True),
        ({"name": "<|endoftext|>", "age": 0}, True),
        ({"name": "a"}, False),
        ({"name": 1, "age": 2}, False),
    ],
)
def test_a_json_grammar_accepts_the_tokens_of_a_valid_text(text: object, is_valid: bool) -> None:
    properties = {"name": {"type": "string"}, "age": {"type": "integer"}}
    schema = {"type": "object", "properties": properties, "required": ["name", "age"]}
    matcher = xgrammar.GrammarMatcher(COMPILER.compile_json_schema(json.dumps(schema)))
    ids = [*TOK.encode_ordinary(json.dumps(text, ensure_ascii=False)), END]
    assert all(matcher.accept_token(token) for token in ids) == is_valid
