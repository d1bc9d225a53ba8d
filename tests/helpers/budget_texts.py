"""Tokenizers of every kind, and random texts of pieces in which tokens and words meet, for tests of budgets."""

from __future__ import annotations

import random
from functools import cache

from conftest import GPT2, ROOT
from synthetic import tokenizer_as

from ggufbpe import Tokenizer
from ggufbpe.models.loading import load_vocabulary

_FILES = {
    "spm": "vocabs/spm",
    "spm that strips": "vocabs/spm-phi-3",
    "bpe that strips": "vocabs/phi-3",
    "wpm": "vocabs/wpm",
    "rwkv": "vocabs/rwkv",
    "plamo2": "plamo",
    "plamo3": "vocabs/plamo3",
    "unigram": "unigram",
    "dna": "vocabs/hybriddna",
    "mmbert": "vocabs/mmbert",
}
KINDS = ("gpt-2", "llama-bpe", "gemma4", "whitespace", "reference", *_FILES)
PIECES = (
    *(
        "Hello",
        " world",
        "  ",
        "\n",
        "\n\n",
        "者",
        "😀",
        "é",
        "<|endoftext|>",
        "</s>",
        "<s>",
        "'s",
        " don't",
        "123. ",
    ),
    *(
        "4567",
        " ",
        "a",
        "ab",
        "the quick brown",
        "!",
        "...",
        "\t",
        "\r\n",
        "न",
        "ि",
        "zzzzzz",
        "\n# ",
        "\n```\n",
    ),
    *("。", "\n\ndef f():\n", "x. Y"),
)


@cache
def tokenizer_of_kind(kind: str) -> Tokenizer:
    """A tokenizer of one kind, of the vocabularies that come with the repository."""
    if kind == "reference":
        return Tokenizer(load_vocabulary(GPT2), "reference")
    if kind in _FILES:
        return Tokenizer(load_vocabulary(ROOT / "fixtures" / f"{_FILES[kind]}.gguf"))
    return tokenizer_as(kind)


def random_text(dice: random.Random, pieces: int) -> str:
    """A text of so many pieces."""
    return "".join(dice.choice(PIECES) for _ in range(pieces))
