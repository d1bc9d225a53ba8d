"""Upstream's own test cases: the `.inp` and `.out` files beside llama.cpp's vocabularies.

`.inp` has texts with a line `__ggml_vocab_test__` between them, `.out` a line of ids for each
(tests/test-tokenizer-0.cpp, which adds no special tokens and parses none).
"""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from conftest import missing
from reference import NotPreparedError, vocabulary

from ggufbpe import GGUFWarning, TokenAttribute, Tokenizer

pytestmark = pytest.mark.both_engines

WITH_CASES = [
    *(
        "command-r",
        "deepseek-coder",
        "deepseek-llm",
        "falcon",
        "gemma-4",
        "gpt-2",
        "llama-bpe",
        "mpt",
        "qwen2",
    ),
    *("qwen35", "refact", "starcoder", "llama-spm", "phi-3", "bert-bge"),
]
WITHOUT_CASES = ["aquila", "baichuan", "gpt-neox", "nomic-bert-moe"]
SEPARATOR = "\n__ggml_vocab_test__\n"


def cached(name: str) -> Path:
    try:
        return vocabulary(name)
    except NotPreparedError as error:
        missing(str(error))


def opened(name: str) -> Tokenizer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GGUFWarning)
        return Tokenizer.from_gguf(cached(name))


def test_lists_name_every_vocabulary() -> None:
    paths = cached("gpt-2").parent.glob("*.gguf")
    names = {path.stem.removeprefix("ggml-vocab-") for path in paths}
    assert names == {*WITH_CASES, *WITHOUT_CASES}
    assert len(WITH_CASES + WITHOUT_CASES) == 19


@pytest.mark.parametrize("name", WITH_CASES)
def test_ids_are_upstreams(name: str) -> None:
    path = cached(name)
    text = path.with_name(path.name + ".inp").read_bytes().decode()
    texts = text.removesuffix(SEPARATOR).split(SEPARATOR)
    lines = path.with_name(path.name + ".out").read_text(encoding="utf-8").splitlines()
    tok = opened(name)
    assert len(texts) >= 40
    for text, line in zip(texts, lines, strict=True):
        expected = [int(number) for number in line.split()]
        assert tok.encode(text, add_special=False, parse_special=False) == expected, text


@pytest.mark.parametrize("name", WITHOUT_CASES)
def test_others_open_and_give_text_back(name: str) -> None:
    tok = opened(name)
    text = "Hello, wörld!\n\t 123 你好 🦙 it's"
    if tok.vocabulary.tokenizer_model.normalizes:
        text = "Hello, wörld! 123 你好 it's"
    assert tok.decode(tok.encode(text, add_special=False)) == text


@pytest.mark.parametrize("name", [*WITH_CASES, *WITHOUT_CASES])
def test_the_text_of_a_control_token_is_ordinary(name: str) -> None:
    """Without parsing, no vocabulary of llama.cpp's has merges or lookups that lead to a control token by its text."""
    tok = opened(name)
    hidden = TokenAttribute.CONTROL | TokenAttribute.UNKNOWN
    control = {token for token in tok.vocabulary.special_token_ids if tok.token_attributes(token) & hidden}
    assert control
    for token in control:
        for text in (tok.id_to_token(token), f"a{tok.id_to_token(token)} b"):
            assert not (control - {tok.unk_id}).intersection(tok.encode_ordinary(text)), text
