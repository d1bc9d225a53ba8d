"""How ids of another vocabulary are described."""

from __future__ import annotations

from itertools import combinations

import pytest
from small_models import K, small_tokenizer

from ggufbpe.analysis.diagnose.cause import Cause
from ggufbpe.analysis.diagnose.causes import (
    exchanged,
    foreign,
    lost_tokens,
    other_vocabulary,
    out_of_range,
    pre_type,
    replaced_by_fillers,
    shifted,
    with_known_pre,
)
from ggufbpe.convert.upstream_patterns import ORIGINALS
from ggufbpe.gguf.change import Change
from ggufbpe.models.pretokenizers.families import evidence
from ggufbpe.models.pretokenizers.hf_splitting import SAME_ORIGINAL
from ggufbpe.models.vocabulary import CONTROL, USER_DEFINED

VOCABULARY = small_tokenizer().vocabulary


@pytest.mark.parametrize(
    ("cause", "what", "detail"),
    [
        (
            lost_tokens({301: "<|b|>", 300: "a"}, 300),
            "the file has lost tokens: 300 ('a'), 301 ('<|b|>') in the given ids",
            {"problem": "lost", "size": 300, "tokens": {"301": "<|b|>", "300": "a"}},
        ),
        (
            other_vocabulary("b.gguf"),
            "the ids are those of b.gguf",
            {"problem": "other model", "model": "b.gguf"},
        ),
        (shifted(0, 5), "all ids are shifted by +5", {"problem": "shifted", "by": 5, "from": 0}),
        (shifted(100, -2), "the ids from 100 on are shifted by -2", {"by": -2, "from": 100}),
        (
            exchanged(VOCABULARY, [(65, 97)]),
            "in the given ids, the tokens 65 ('A') and 97 ('a') have exchanged their ids",
            {"problem": "exchanged", "pairs": [[65, 97]]},
        ),
        (
            out_of_range([999, 1000, 1001, 1002, 1003, 1004], 300),
            "6 of the ids are out of range, the first is 999; the vocabulary has ids 0 to 299",
            {"problem": "out of range", "count": 6, "first": [999, 1000, 1001, 1002, 1003], "size": 300},
        ),
        (
            out_of_range([999], 300),
            "the id 999 is out of range; the vocabulary has ids 0 to 299",
            {"problem": "out of range", "count": 1, "first": [999], "size": 300},
        ),
        (
            foreign("abc"),
            "the ids decode to an unrelated text: 'abc'",
            {"problem": "other model", "decoded": "abc"},
        ),
    ],
)
def test_causes(cause: Cause, what: str, detail: dict[str, object]) -> None:
    assert cause.id == "vocabulary"
    assert cause.detail["what"] == what
    assert detail.items() <= cause.detail.items()
    assert cause.fix
    assert not cause.change  # no command can mend a list of tokens


def test_fillers_in_place_of_tokens() -> None:
    """Of which the ids need not have all: `verify` knows those of another file."""
    vocabulary, size = small_tokenizer("[PAD0]", "[PAD1]").vocabulary, len(VOCABULARY.tokens)
    cause = replaced_by_fillers(vocabulary, {size: ("<|a|>", CONTROL), size + 1: ("word", USER_DEFINED)})
    assert cause.detail["what"] == (
        f"the file has fillers in place of '<|a|>' (id {size}), 'word' (id {size + 1}): '[PAD0]', '[PAD1]'"
    )
    assert cause.change == Change(
        types={size: "CONTROL", size + 1: "USER_DEFINED"}, texts={"[PAD0]": "<|a|>", "[PAD1]": "word"}
    )


@pytest.mark.parametrize(("by", "words"), [(5, "5 more tokens"), (-2, "2 fewer tokens")])
def test_the_side_that_has_more_tokens(by: int, words: str) -> None:
    assert words in shifted(0, by).fix


@pytest.mark.parametrize(
    ("own", "other", "is_to_be_set"),
    [
        ("gpt-4o", "granite-embed-multi-97m", False),
        ("llama4", "granite-embed-multi-97m", False),  # splits as gpt-4o
        ("gpt-4o", "tekken", True),
        ("qwen2", "gpt-4o", True),
    ],
)
def test_a_name_for_the_same_original_pattern_is_not_proposed(
    own: str, other: str, is_to_be_set: bool
) -> None:
    """Hugging Face's ids of gpt-oss are granite's by marks, and llama.cpp's converter writes gpt-4o all the same."""
    vocabulary = small_tokenizer(pre=own).vocabulary
    judged = evidence(vocabulary.tokens, vocabulary.merges, own, "llama")
    cause = pre_type(vocabulary, [other], [], judged)
    assert cause.change == (Change({K.PRE: other}) if is_to_be_set else Change())
    assert bool(cause.fix) is not is_to_be_set


def test_another_model_tells_its_pre_tokenizer_though_the_original_pattern_is_the_same() -> None:
    ours, theirs = (small_tokenizer(pre=name).vocabulary for name in ("gpt-4o", "granite-embed-multi-97m"))
    judged = evidence(ours.tokens, ours.merges, "gpt-4o", "llama")
    cause = with_known_pre(pre_type(ours, ["granite-embed-multi-97m"], [], judged), ours, theirs)
    assert (cause.change, cause.fix) == (Change({K.PRE: "granite-embed-multi-97m"}), "")


def test_the_families_of_one_original_pattern() -> None:
    both = combinations(ORIGINALS, 2)
    assert [{*pair} for pair in both if ORIGINALS[pair[0]] == ORIGINALS[pair[1]]] == [*SAME_ORIGINAL]
