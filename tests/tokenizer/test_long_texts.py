"""Texts of more than a megabyte, in which stretches, parts and threads meet, beside llama.cpp.

Special tokens are dense around each mebibyte, where the search for them goes on in another stretch.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from conftest import missing
from real_vocabularies import cached
from reference import NotPreparedError, Oracle

from ggufbpe import Tokenizer

SIZE = 1_100_000  # bytes
STRETCH = 1 << 20  # special.h
WORDS = ["Hello", "  we're", "\n\n", "    return x", "naïve", "日本語", "12345", "🙂", "\t", " "]
BAD = [b"\xff", b"\xc0\xa0", b"\xe4\xb8", b"\xed\xa0\x80", b"\xf0\x80\x80\x80"]  # bytes that are not UTF-8


def long_text(special: list[bytes], seed: str) -> bytes:
    dice, parts, size = random.Random(seed), [], 0
    while size < SIZE:
        is_edge = min(size % STRETCH, -size % STRETCH) < 1000
        part = b"" if is_edge else b"".join(dice.choice(WORDS).encode() for _ in range(dice.randrange(3000)))
        if special:
            part += dice.choice(special) * dice.choice([1, 1, 2, 30])
        if dice.random() < 0.1 or not part:
            part += dice.choice(BAD)
        parts.append(part)
        size += len(part)
    return b"".join(parts)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["bert-bge", "gemma-4", "llama-bpe", "llama-spm", "mpt", "nomic-bert-moe", "phi-3"]
)
def test_a_long_text_has_the_ids_of_llama_cpp(name: str) -> None:
    path = cached(name)
    tokenizer = Tokenizer.from_gguf(path)
    tokens = tokenizer.vocabulary.tokens
    data = long_text([tokens[i].encode() for i in tokenizer.vocabulary.special_token_ids], name)
    try:
        with Oracle(path, seconds=300.0) as oracle:
            expected = oracle.tokenize([data], True, True)[0]
    except NotPreparedError as error:
        missing(str(error))
    for threads in (1, 3):
        assert np.array_equal(tokenizer.encode_to_numpy(data, threads=threads), expected)
        assert tokenizer.count(data, threads=threads) == len(expected)
    assert np.array_equal(tokenizer.encode_with_offsets_to_numpy(data)[0], expected)
