"""What explains the texts that differ, and the one change that is proposed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from small_models import FactsOf, K, Keys, facts_of, small_keys, small_tokenizer

from ggufbpe import Tokenizer
from ggufbpe.analysis.doctor.texts_with_ids import TextWithIds
from ggufbpe.analysis.oracles.oracle import Oracle
from ggufbpe.analysis.oracles.recorded_ids import OtherModel
from ggufbpe.analysis.verify.explaining import Explaining, share_most_tokens
from ggufbpe.models.loading import load_vocabulary

__all__ = ["facts_of"]  # the fixture

TEXTS = (b"hello world 1234567", b"it's 12 o'clock\r\n", b"<|im_start|>a b c")


@pytest.fixture
def opened(facts_of: FactsOf) -> Callable[[Keys], Tokenizer]:
    """The tokenizer of a file with the given keys; the last one is what is on disk."""
    return lambda keys: Tokenizer(load_vocabulary(facts_of(keys).file.path))


def explaining(
    tokenizer: Tokenizer, theirs: Tokenizer, oracle: Oracle | None = None, **fields: Any
) -> Explaining:
    compared = [TextWithIds(text, theirs.encode(text)) for text in TEXTS]
    differing = [each for each in compared if tokenizer.encode(each.text) != each.ids]
    agreeing = [each for each in compared if each not in differing]
    return Explaining(tokenizer, oracle or Oracle(), differing, agreeing, (True, True))


def test_one_change_for_all_texts(opened: Callable[[Keys], Tokenizer]) -> None:
    tokenizer = opened(small_keys())
    theirs = Tokenizer(tokenizer.vocabulary._replace(add_bos=True))
    found = explaining(tokenizer, theirs)
    assert found.found is not None
    assert [cause.id for cause in found.found.causes] == ["bos"]
    assert found.explained == [True] * len(TEXTS)
    assert (
        found.changed.encode(TEXTS[0]) == theirs.encode(TEXTS[0])[1:]
    )  # what is around a text is not the model's
    proposal = found.proposal()
    assert proposal is not None
    assert f"--set {K.ADD_BOS}=true" in proposal.command
    assert (proposal.differing, proposal.explained) == (3, 3)


def test_a_text_by_its_bytes(opened: Callable[[Keys], Tokenizer]) -> None:
    tokenizer = opened(small_keys())
    theirs = Tokenizer(tokenizer.vocabulary._replace(add_bos=True))
    found = explaining(tokenizer, theirs)
    assert found.ids_of(TEXTS[0]) == theirs.encode(TEXTS[0])
    assert found.is_explained(TEXTS[0])
    assert found.ids_of(b"never compared") is None
    assert not found.is_explained(b"never compared")


def test_without_differences_there_is_nothing_to_explain(opened: Callable[[Keys], Tokenizer]) -> None:
    tokenizer = opened(small_keys())
    found = explaining(tokenizer, tokenizer)
    assert (found.found, found.explained, found.proposal()) == (None, [], None)
    assert found.changed is tokenizer


def test_the_ids_of_another_vocabulary_are_no_reason_to_change_this_one(
    opened: Callable[[Keys], Tokenizer],
) -> None:
    tokenizer = opened(small_keys())
    other = small_tokenizer(*(f"<|{number}|>" for number in range(60)), merges=["a b", "c d"])
    found = explaining(tokenizer, other, OtherModel(other))
    assert found.is_of_other_vocabulary
    assert (found.found, found.proposal()) == (None, None)


def test_of_two_files_the_broken_one_is_to_change(facts_of: FactsOf) -> None:
    """A flag that hardly any such file has is more suspicious than none."""
    usual, unusual = (
        Tokenizer(load_vocabulary(facts_of(keys, name).file.path))
        for keys, name in ((small_keys(), "usual.gguf"), (small_keys(add_eos_token=True), "unusual.gguf"))
    )
    mended = explaining(unusual, usual, OtherModel(usual)).proposal()
    assert mended is not None
    assert f"--set {K.ADD_EOS}=false" in mended.command
    refused = explaining(usual, unusual, OtherModel(unusual)).proposal()
    assert refused is not None
    assert refused.command == ""
    assert refused.objection.startswith("unusual.gguf looks like the broken one: ")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda tokens: tokens, True),
        (lambda tokens: tokens[:-5], True),  # some were lost
        (lambda tokens: tokens[: len(tokens) // 2], False),
        (lambda tokens: [*tokens[:-3], "x1", "x2", "x3"], True),
        (lambda tokens: [f"x{token}" for token in tokens], False),
    ],
)
def test_vocabularies_that_are_one_but_for_a_few_tokens(
    change: Callable[[list[str]], list[str]], expected: bool
) -> None:
    vocabulary = small_tokenizer().vocabulary
    other = vocabulary._replace(tokens=change(list(vocabulary.tokens)))
    assert share_most_tokens(vocabulary, other) is expected
    assert share_most_tokens(other, vocabulary) is expected
    same = other.tokens == vocabulary.tokens
    assert share_most_tokens(vocabulary, other._replace(model="bert")) is same
