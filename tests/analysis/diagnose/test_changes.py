"""What a search tries with one model."""

from __future__ import annotations

import pytest
from small_models import small_tokenizer
from synthetic import make_vocabulary

from ggufbpe import Tokenizer
from ggufbpe.analysis.diagnose.changes import Changes, groups_of_pre, text_changes_of
from ggufbpe.analysis.diagnose.text_changes import CHARSMAP_MISSING, OF_FLAGS, TEXT_CHANGES
from ggufbpe.models.bpe.merge import BYTE_CHARS
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS
from ggufbpe.models.vocabulary import CONTROL, USER_DEFINED

TOKENIZER = small_tokenizer(add_bos=True)
VOCABULARY = TOKENIZER.vocabulary
BOS, EOS = TOKENIZER.bos_id or 0, TOKENIZER.eos_id or 0


def changes_of(text: bytes, ids: list[int]) -> Changes:
    return Changes(TOKENIZER, text, ids, True, True)


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([97, 98], [((), [97, 98], (), b"ab")]),
        ([BOS, 97], [((), [BOS, 97], (), b"<|endoftext|>a"), ((BOS,), [97], (), b"a")]),
        (
            [BOS, BOS, 97],
            [
                ((), [BOS, BOS, 97], (), b"<|endoftext|><|endoftext|>a"),
                ((BOS,), [BOS, 97], (), b"<|endoftext|>a"),
                ((BOS, BOS), [97], (), b"a"),
            ],
        ),
        ([97, EOS], [((), [97, EOS], (), b"a<|im_end|>"), ((), [97], (EOS,), b"a")]),
        ([97, 9999], []),  # which the vocabulary lacks
        (
            [97, EOS, EOS, EOS],  # padding
            [
                ((), [97, EOS, EOS, EOS], (), b"a" + b"<|im_end|>" * 3),
                ((), [97, EOS, EOS], (EOS,), b"a" + b"<|im_end|>" * 2),
                ((), [97, EOS], (EOS, EOS), b"a<|im_end|>"),
                ((), [97], (EOS, EOS, EOS), b"a"),
            ],
        ),
        (
            [97, EOS, BOS, BOS],
            [
                ((), [97, EOS, BOS, BOS], (), b"a<|im_end|>" + b"<|endoftext|>" * 2),
                ((), [97, EOS, BOS], (BOS,), b"a<|im_end|><|endoftext|>"),
                ((), [97, EOS], (BOS, BOS), b"a<|im_end|>"),
                ((), [97], (EOS, BOS, BOS), b"a"),
            ],
        ),
    ],
)
def test_the_ways_to_split_off_what_is_around_a_text(
    ids: list[int], expected: list[tuple[object, ...]]
) -> None:
    split = [each for each in changes_of(b"xyz", ids).targets if each.shift == (0, 0)]
    assert [(each.head, each.core, each.tail, each.text) for each in split] == expected


def test_shifted_ids_are_targets_too() -> None:
    text = b"the quick brown fox"
    ids = [token + 7 for token in TOKENIZER.encode(text)]
    assert {each.shift for each in changes_of(text, ids).targets} == {(0, 0), (0, 7)}
    [found] = [each for each in changes_of(text, ids).targets if each.shift == (0, 7) and each.head == (BOS,)]
    assert found.text == text
    assert [cause.detail["problem"] for cause in found.causes] == ["shifted"]


def test_texts_with_one_change() -> None:
    changed = changes_of(b"A b\r\n", [97]).texts
    found = {each.data: [cause.id for cause in each.causes] for each in changed}
    assert found[b"a b\r\n"] == ["normalization"]
    assert found[b"A b\n"] == ["newlines"]
    assert found[b"A b"] == ["trailing_newline"]
    assert found[b" A b\r\n"] == ["space_prefix"] or found[b" A b\r\n"] == ["leading_space"]
    assert b"A b\r\n" not in found  # what a change leaves as it is is no change
    [lower] = [each for each in changed if each.data == b"a b\r\n"]
    assert lower.causes[0].detail["also"] == ["accents stripped, lower case", "NFKC, case folded"]


def test_encodings_with_one_change() -> None:
    plain, marked = changes_of(b"ab", [97]), changes_of(b"a<|im_end|>", [97])
    ids = {cause.id for each in plain.encodings for cause in each.causes}
    assert ids == {"ignore_merges", "merges", "pre_type"}
    assert {cause.id for each in marked.encodings for cause in each.causes} == ids | {
        "parse_special",
        "special_token_types",
    }


def test_text_that_was_added_together_with_a_marker() -> None:
    """Plain "ö" stands for a byte that no text has, special "ö" for the letter."""
    tokens = [*(c for c in BYTE_CHARS if c != "ö"), "he", "<|im_start|>", "ö"]
    kinds = {"<|im_start|>": CONTROL, "ö": USER_DEFINED}
    right, wrong = (make_vocabulary(tokens, attributes=made, merges=["h e"]) for made in (kinds, None))
    text = "schön<|im_start|>öd".encode()
    found = Changes(Tokenizer(wrong), text, Tokenizer(right).encode(text), True, True).encodings
    types = [cause.detail["tokens"] for each in found for cause in each.causes if "tokens" in cause.detail]
    assert [[(token["token"], token["theirs"]) for token in each] for each in types] == [  # type: ignore[attr-defined]
        [("<|im_start|>", "CONTROL"), ("ö", "USER_DEFINED")]
    ]


def test_changes_that_the_model_makes_itself_are_left_out() -> None:
    assert text_changes_of(VOCABULARY) == list(TEXT_CHANGES)
    kept = {each.cause.detail["change"] for each in text_changes_of(VOCABULARY._replace(model="bert"))}
    assert kept.isdisjoint(OF_FLAGS)
    assert "NFC" in kept
    assert CHARSMAP_MISSING in text_changes_of(VOCABULARY._replace(model="t5"))
    assert CHARSMAP_MISSING not in text_changes_of(VOCABULARY._replace(model="t5", charsmap=b"x"))


def test_pre_tokenizers_that_give_the_same_ids_are_one_change() -> None:
    groups = groups_of_pre(VOCABULARY, False)
    names = [name for group in groups for name in group]
    assert sorted([*names, *_of_family("gpt-2")]) == sorted(PRE_TOKENIZERS)
    [llama] = [group for group in groups if "llama-bpe" in group]
    assert set(_of_family("llama-bpe")) >= set(llama) >= {"llama-bpe", "llama3"}
    assert groups_of_pre(VOCABULARY._replace(model="bert"), False) == []
    assert groups_of_pre(VOCABULARY, True) == groups  # there is no token "<mask>"


def _of_family(name: str) -> list[str]:
    own = groups_of_pre(
        VOCABULARY._replace(pre="whitespace", pre_tokenizer=PRE_TOKENIZERS["whitespace"]), False
    )
    return next(group for group in own if name in group)
