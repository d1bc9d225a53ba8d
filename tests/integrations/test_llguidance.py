"""llguidance over the tokens of a GGUF: its masks are those of a brute-force check over all tokens."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from integration_cases import (
    DOCUMENT,
    END,
    JSON_SCHEMA,
    JSON_TEXTS,
    NUMBERS,
    TOK,
    allowed,
    allowed_in_json,
    ids_of_bits,
    library,
    real,
)

llguidance = library("llguidance")

from ggufbpe.integrations.llguidance import TokensOfGrammars, ll_tokenizer  # noqa: E402 - after its library

LL = ll_tokenizer(TOK)


def test_the_tokens_and_the_ids_of_a_text() -> None:
    assert (LL.vocab_size, LL.eos_token) == (len(TOK), END)
    assert LL.tokenize_str(DOCUMENT) == TOK.encode_ordinary(DOCUMENT)
    assert LL.decode_bytes(TOK.encode_ordinary(DOCUMENT)) == DOCUMENT.encode()


@pytest.mark.parametrize("text", ["a42", "é07", "😀99"])
def test_masks_of_a_regular_expression(text: str) -> None:
    for mask, generated, _ in masks(llguidance.LLMatcher.grammar_from_regex(NUMBERS), text):
        assert mask == allowed(generated)


@pytest.mark.parametrize("text", JSON_TEXTS)
def test_masks_of_a_json_schema(text: str) -> None:
    """Where only one text can come, llguidance allows of its tokens the one that our encoding has."""
    separators = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
    grammar = llguidance.LLMatcher.grammar_from_json_schema(JSON_SCHEMA, separators)
    for mask, generated, token in masks(grammar, text):
        assert mask in ({token}, allowed_in_json(generated))


def masks(grammar: str, text: str) -> Iterator[tuple[set[int], bytes, int]]:
    """The mask before each token of a text and EOS, what was generated before, and the token."""
    matcher = llguidance.LLMatcher(LL, grammar)
    generated = b""
    for token in [*TOK.encode_ordinary(text), END]:
        yield ids_of_bits(matcher.compute_bitmask()), generated, token
        assert matcher.consume_token(token)
        generated += TOK.token_bytes[token]
    assert matcher.is_stopped()
    assert not matcher.is_error()


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
    grammar = llguidance.LLMatcher.grammar_from_json_schema(json.dumps(schema))
    matcher = llguidance.LLMatcher(LL, grammar)
    ids = [*TOK.encode_ordinary(json.dumps(text, ensure_ascii=False)), END]
    accepted = 0
    for token in ids:
        mask = ids_of_bits(matcher.compute_bitmask())
        if token not in mask:
            break
        assert matcher.consume_token(token)
        accepted += 1
    assert (accepted == len(ids)) == is_valid


@pytest.mark.parametrize("name", ["llama-spm", "phi-3", "nomic-bert-moe", "bert-bge", "gemma-4"])
@pytest.mark.parametrize("text", ["hello world", "-", "  a  b", "naïve", '{"a": 1}'])
def test_ids_have_the_bytes_of_a_forced_text(name: str, text: str) -> None:
    """Whether the model puts a space before a text, drops spaces, or changes characters."""
    tok = real(name)
    ids = TokensOfGrammars(tok)(text)
    written = b"".join(tok.token_bytes[token] for token in ids)
    if name == "bert-bge":  # which has no tokens for spaces alone and for accents
        text = {"  a  b": "", "naïve": "na"}.get(text, text)
    assert written == text.encode()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("llama-spm", "ab▁c"), ("gemma-4", "ab▁c"), ("gemma-4", "<|tool_call> a")),
        ("command-r", "<|USER_TOKEN|>hi"),
    ],
)
def test_a_forced_text_that_our_encoding_would_change(name: str, text: str) -> None:
    """A space that is written as U+2581, and the texts of tokens that no grammar takes for text."""
    tok = real(name)
    matcher = llguidance.LLMatcher(ll_tokenizer(tok), f'start: "{text}"')
    forced = matcher.compute_ff_tokens()
    assert b"".join(tok.token_bytes[token] for token in forced) == text.encode()
    assert matcher.consume_tokens(forced), matcher.get_error()


@pytest.mark.parametrize("name", ["llama-spm", "phi-3", "nomic-bert-moe"])
def test_a_forced_text_begins_without_a_space(name: str) -> None:
    tok = real(name)
    made = ll_tokenizer(tok)
    matcher = llguidance.LLMatcher(made, 'start: "Hello world"')
    forced = matcher.compute_ff_tokens()
    assert b"".join(tok.token_bytes[token] for token in forced) == b"Hello world"
    assert matcher.consume_tokens(forced), matcher.get_error()

    matcher = llguidance.LLMatcher(made, llguidance.LLMatcher.grammar_from_regex("[0-9]{4}-[0-9]{2}"))
    for digit in "1234":
        assert matcher.consume_token(TokensOfGrammars(tok)(digit)[0])
    texts = [f"1234-{number:02}".encode() for number in range(100)]
    mask = ids_of_bits(matcher.compute_bitmask())
    assert mask in ({TokensOfGrammars(tok)("-")[0]}, allowed(b"1234", texts, tok))


@pytest.mark.parametrize("name", ["llama-spm", "nomic-bert-moe"])
def test_a_json_schema_is_followed_by_tokens_with_spaces_in_front(name: str) -> None:
    tok = real(name)
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    matcher = llguidance.LLMatcher(
        ll_tokenizer(tok), llguidance.LLMatcher.grammar_from_json_schema(json.dumps(schema))
    )
    for token in [*TokensOfGrammars(tok)('{"name": "a b"}'), tok.eos_id]:
        assert token in ids_of_bits(matcher.compute_bitmask()), matcher.get_error()
        assert matcher.consume_token(token)
    assert matcher.is_stopped()
