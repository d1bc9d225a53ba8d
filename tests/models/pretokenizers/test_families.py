"""Which family of pre-tokenizers the tokens of a vocabulary point to; the doctor's tests ask real vocabularies."""

from __future__ import annotations

import pytest

from ggufbpe.models.bpe.merge import byte_level
from ggufbpe.models.pretokenizers.families import evidence, families
from ggufbpe.models.pretokenizers.pretokenizer_evidence import CUT_BY, FEATURES


def made_by(family: str) -> list[str]:
    """Tokens that a family lets form: all strings of the features that it does not cut."""
    kept = [strings for cut, strings in zip(CUT_BY[family], FEATURES.values()) if cut == "."]
    return [byte_level(text) for strings in kept for text in strings]


@pytest.mark.parametrize("family", ["gpt-4o", "tekken"])
def test_letters_beyond_ascii_that_the_original_pattern_kept_do_not_count(family: str) -> None:
    """GPT-4o's vocabulary has "ACIÓN", which the original pattern keeps whole, and llama.cpp's cuts before the N."""
    capitals = [f"{letter}{other}S" for letter in "ÁÉÍÓÚÑÇ" for other in "ABCDEFGHIKLM"]
    tokens = [*made_by(family), *map(byte_level, capitals)]
    first, own = families(tokens)[0], families(made_by(family))[0]
    assert (first.family, first.cost) == (family, own.cost)
    assert first.of - first.kept >= len(capitals)  # all the same, llama.cpp does cut them
    merges = [f"{token[0]} {token[1:]}" for token in tokens if len(token) > 1]
    assert evidence(tokens, merges, "gpt-2", "gpt-oss").name == family


def test_they_count_against_families_whose_pattern_is_the_original_one() -> None:
    def cost(tokens: list[str]) -> float:
        return next(each.cost for each in families(tokens) if each.family == "llama-bpe")

    own = made_by("llama-bpe")
    assert cost([*own, *map(byte_level, ["é1", "ü2"])]) > cost(own)
