"""What a file has in common with the family that its tokens are from."""

from __future__ import annotations

import pytest
from small_models import FactsOf, K, facts_of, family_keys, small_keys
from small_models import known_family as family_of

from ggufbpe.analysis.doctor.family_checks import known_family, splits_like
from ggufbpe.gguf.constants import KEY_NAME

__all__ = ["facts_of"]  # the fixture

DEEPSEEK = "DeepSeek Coder"
BOS, EOS = 32013, 32014


def test_each_difference_from_the_family_is_listed(facts_of: FactsOf) -> None:
    [finding] = known_family(facts_of(family_keys(DEEPSEEK, pre="gpt-2", eos_token_id=BOS)))
    assert (finding.severity, finding.id) == ("note", "known_family")
    assert finding.detail == {
        "family": DEEPSEEK,
        "named": None,
        "differences": [
            "the vocabulary has 32015 tokens instead of 32256",
            f"{K.PRE} is 'gpt-2' instead of deepseek-coder",
            "BOS is not added to texts",
            f"EOS is token {BOS}, '<｜begin▁of▁sentence｜>', instead of {EOS}, '<｜end▁of▁sentence｜>'",
        ],
    }
    assert (
        finding.what
        == "This is a DeepSeek Coder vocabulary, but the file differs from DeepSeek Coder files in 4 points."
    )


def test_a_file_named_after_a_family_whose_tokens_it_lacks(facts_of: FactsOf) -> None:
    [finding] = known_family(facts_of({**small_keys(), KEY_NAME: "Qwen2.5 7B"}))
    assert finding.what == "The file calls itself 'Qwen2.5 7B', but its tokens are not those of Qwen 2."
    assert finding.detail == {"family": "Qwen 2", "named": "Qwen2.5 7B"}


@pytest.mark.parametrize("name", ["Mine", "Llama 2 7B"])  # Llama 2 has another tokenizer model
def test_an_unknown_vocabulary_is_not_remarked_on(name: str, facts_of: FactsOf) -> None:
    assert not list(known_family(facts_of({**small_keys(), KEY_NAME: name})))


@pytest.mark.parametrize(
    ("pre", "family", "expected"),
    [
        ("llama-bpe", "Llama 3", True),
        ("llama3", "Llama 3", True),  # a name of the same family
        ("gpt-2", "Llama 3", False),
        ("qwen35", "Qwen 2", True),  # the second of two
        ("no such name", "Qwen 2", False),
        (None, "Qwen 2", False),
    ],
)
def test_names_that_split_as_the_family_does(pre: str | None, family: str, expected: bool) -> None:
    assert splits_like(pre, family_of(family)) is expected
