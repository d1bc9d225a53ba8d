"""The compiled engine's own entries split as the tables do that Python makes of the registry."""

from __future__ import annotations

import random

import pytest
from synthetic import tokenizer_as

from ggufbpe.models.pretokenizers.automaton_tables import tables
from ggufbpe.models.pretokenizers.compiled_splitter import compiled_splitter
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS

native = pytest.importorskip("ggufbpe.native._native")

TEXT = (
    "I'll go,  don't\tYOU'RE 12345 x1 3.14\r\n\n  a_b.c(d) += \"é\u0301\" ßẞ ǅ mp3//\n"
    "我们在 2024年，去北京。カタカナ ひらがな 한국어 ไทย हिन्दी עברית\u00a0\u2003!? …—“q” 👩‍💻\u2581x\n \n"
).encode()


@pytest.mark.parametrize("name", PRE_TOKENIZERS)
def test_a_named_splitter_splits_as_the_entry_does(name: str) -> None:
    entry = PRE_TOKENIZERS[name]
    named, made = native.Splitter.named(name), native.Splitter(*tables(entry), entry.escape_whitespaces)
    assert named is not None, (
        "the engine is older than vocabulary/registry.h: ./run --version builds it again"
    )
    parts = [TEXT[start:end] for start in range(0, 60, 7) for end in range(len(TEXT) - 90, len(TEXT), 11)]
    whole = [part.decode(errors="ignore").encode() for part in parts]
    assert [named.count_words(part) for part in whole] == [made.count_words(part) for part in whole]


def test_no_splitter_has_a_name_that_is_not_in_the_registry() -> None:
    assert native.Splitter.named("no such name") is None


def test_an_entry_that_is_not_in_the_registry_is_encoded() -> None:
    entry = PRE_TOKENIZERS["llama-bpe"]._replace(family="gpt-2")
    assert compiled_splitter(entry).count_words(b"1234567") == 1
    assert compiled_splitter(PRE_TOKENIZERS["llama-bpe"]).count_words(b"1234567") == 3
    assert compiled_splitter(entry) is compiled_splitter(entry)


# Pieces end after each MiB: after one and after two of three bytes, and within characters of two and four.
@pytest.mark.parametrize(
    "digits",
    [
        "３" * 800_000,
        "３" + "٣" * 1_100_000,
        "３" + "𝟛" * 600_000,
        "".join(random.Random(1).choices("3٣３𝟛", k=900_000)),
    ],
    ids=["three bytes", "two bytes", "four bytes", "all lengths"],
)
def test_a_character_may_lie_across_two_pieces_of_a_text_without_a_cut(digits: str) -> None:
    groups = [digits[start : start + 3] for start in range(0, len(digits), 3)]
    assert tokenizer_as("llama-bpe").pre_tokenize(digits) == groups
