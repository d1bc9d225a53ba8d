"""Variants of a tokenizer, which share what does not change."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from small_models import small_tokenizer

from ggufbpe import Tokenizer
from ggufbpe.analysis.diagnose.variants import (
    BY_ID,
    GrowingIds,
    RanksById,
    Variant,
    Variants,
    encoded,
    variants_of,
)
from ggufbpe.models.bpe.merge import WordEncoder
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS
from ggufbpe.tokenizer.special_tokens import SpecialTokens, TextFragment

TOKENIZER = small_tokenizer()
VOCABULARY = TOKENIZER.vocabulary
ABCD = Variant(VOCABULARY, b"abcd", True)


@pytest.mark.parametrize(
    ("variant", "expected"),
    [
        (ABCD, [97, 98, 99, 100]),
        (ABCD._replace(head=(1, 2), tail=(3,)), [1, 2, 97, 98, 99, 100, 3]),
        (ABCD._replace(kept=(0, 2), tail=(3,)), [97, 98, 3]),
        (ABCD._replace(kept=(-1, None)), [100]),
        (ABCD._replace(shift=(99, 5)), [97, 98, 104, 105]),
        (ABCD._replace(exchanged=((97, 100),)), [100, 98, 99, 97]),
        (ABCD._replace(text=b"<|im_end|>"), [VOCABULARY.special_ids["eos"]]),
        (ABCD._replace(text=b"<|", parse_special=False), [60, 124]),
    ],
)
def test_the_ids_of_a_variant(variant: Variant, expected: list[int]) -> None:
    assert variant.ids() == variant.ids(Variants(TOKENIZER)) == expected
    if variant.kept == (None, None):
        assert variant.start(Variants(TOKENIZER), 2) == expected[:2]


def test_fragments_of_a_text_are_made_once_for_all_variants(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fragments depend on the special tokens, the text and `parse_special`, not on the pre-tokenizer."""
    made: list[str | bytes] = []
    partition = SpecialTokens.partition

    def counted(own: SpecialTokens, source: str | bytes, parse_special: bool) -> list[TextFragment]:
        made.append(source)
        return partition(own, source, parse_special)

    monkeypatch.setattr(SpecialTokens, "partition", counted)
    variants, eos = Variants(TOKENIZER), VOCABULARY.special_ids["eos"]
    for pre in ("gpt-2", "qwen2"):
        own = VOCABULARY._replace(pre_tokenizer=PRE_TOKENIZERS[pre])
        variant = ABCD._replace(vocabulary=own, text=b"a<|im_end|>")
        assert variant.ids(variants) == [97, eos]
        assert eos not in variant._replace(parse_special=False).ids(variants)
    assert len(made) == 2
    variants.forget_texts()
    assert ABCD._replace(text=b"a<|im_end|>").ids(variants) == [97, eos]
    assert len(made) == 3


@pytest.mark.parametrize(("length", "made"), [(1, 1), (1000, 1), (150_000, 1), (300_000, 2)])
def test_long_words_are_encoded_once_until_texts_are_forgotten(
    length: int, made: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search encodes the same text for dozens of changes; a word that is too long to keep, each time."""
    encoded: list[str] = []

    def counted(own: WordEncoder, word: str) -> tuple[int, ...]:
        encoded.append(word)
        return (97,) * len(word)

    monkeypatch.setattr(WordEncoder, "ids", counted)
    variants = Variants(TOKENIZER)
    for _ in range(2):
        assert ABCD._replace(text=b"a" * length).ids(variants) == [97] * length
    assert len(encoded) == made
    variants.forget_texts()
    assert ABCD._replace(text=b"b" * length).ids(variants) == [97] * length
    assert len(encoded) == made + 1


def test_merging_by_id() -> None:
    """The merges put "b c" first, the ids "ab"."""
    tokenizer = small_tokenizer(merges=["b c", "a b", "ab c"])
    own, other = tokenizer.vocabulary, tokenizer.vocabulary._replace(merges=["a b", "b c", "ab c"])
    by_id = small_tokenizer(merges=["a b", "b c", "ab c"]).vocabulary  # ids in another order
    variants = Variants(tokenizer)
    assert variants.tokenizer(own).encode("abc") == [97, own.token_to_id["bc"]]
    assert variants.tokenizer(other).encode("abc") == [own.token_to_id["abc"]]
    swapped = Tokenizer(by_id._replace(merges=["b c", "a b", "ab c"]))
    assert Variants(swapped).tokenizer(swapped.vocabulary, BY_ID).encode("abc") == [by_id.token_to_id["abc"]]
    ranks = RanksById({"ab": 7})
    assert ranks["a", "b"] == 7
    assert ranks["b", "c"] > 1 << 30  # no merge


def test_variants_give_the_ids_of_a_tokenizer_of_their_own() -> None:
    text = "hello world 12345, don't"
    for name in ("gpt-2", "llama-bpe", "qwen2"):
        vocabulary = VOCABULARY._replace(pre=name, pre_tokenizer=PRE_TOKENIZERS[name])
        for _ in range(2):  # the second time by words that are known
            assert Variants(TOKENIZER).tokenizer(vocabulary).encode(text) == Tokenizer(vocabulary).encode(
                text
            )


def test_variants_are_kept_with_their_tokenizer() -> None:
    assert variants_of(TOKENIZER) is variants_of(TOKENIZER)
    assert variants_of(TOKENIZER) is not variants_of(small_tokenizer("<s>"))


def test_a_text_is_encoded_no_further_than_needed() -> None:
    taken = []

    def parts() -> Iterator[tuple[int, ...]]:
        for number in range(1000):
            taken.append(number)
            yield (number,)

    ids = GrowingIds(parts())
    assert not ids.begin_with([5, 6])
    assert len(taken) < 20
    assert ids.begin_with([0, 1, 2])
    assert ids.first(3) == [0, 1, 2]
    assert ids.are_more_than(30)
    assert len(taken) < 100
    assert ids.begin_with(list(range(1000)))
    assert not ids.begin_with(list(range(1001)))
    assert not ids.are_more_than(1000)
    assert ids.all() == list(range(1000))


def test_texts_without_what_is_around_them() -> None:
    tokenizer = small_tokenizer(add_bos=True)
    assert encoded(tokenizer, b"hello<|im_end|>", True).all() == [
        tokenizer.vocabulary.token_to_id["hello"],
        tokenizer.eos_id,
    ]
