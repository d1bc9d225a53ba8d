"""BOS, EOS and SEP around ids that differ from those that a model adds."""

from __future__ import annotations

from typing import Any

import pytest
from small_models import K, small_tokenizer

from ggufbpe.analysis.diagnose.framing import framing, name_of_added
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS

VOCABULARY = small_tokenizer("<s>").vocabulary
BOS, EOS = VOCABULARY.special_ids["bos"], VOCABULARY.special_ids["eos"]
OTHER = VOCABULARY.token_to_id["<s>"]
assert BOS is not None
assert EOS is not None


@pytest.mark.parametrize(
    ("name", "ours", "theirs", "fields", "problem", "changed"),
    [
        ("bos", (BOS,), (), {"add_bos": True}, "missing", {K.ADD_BOS: "false"}),
        ("bos", (), (BOS,), {}, "added", {K.ADD_BOS: "true"}),
        ("eos", (), (EOS,), {}, "added", {K.ADD_EOS: "true"}),
        ("bos", (), (BOS,), {"add_bos": True}, "added", {}),  # which was not asked for here
        ("bos", (BOS,), (BOS, BOS), {"add_bos": True}, "twice", {}),  # no key adds two
        ("bos", (BOS,), (BOS, BOS, BOS), {"add_bos": True}, "padded", {}),
        ("bos", (BOS,), (OTHER, OTHER, BOS), {"add_bos": True}, "padded", {}),
        ("eos", (EOS,), (OTHER, OTHER), {"add_eos": True}, "padded", {}),
        ("bos", (BOS,), (OTHER,), {"add_bos": True}, "other", {K.BOS_ID: str(OTHER)}),
        ("bos", (), (OTHER,), {}, "other", {K.BOS_ID: str(OTHER), K.ADD_BOS: "true"}),
    ],
)
def test_causes(
    name: str,
    ours: tuple[int, ...],
    theirs: tuple[int, ...],
    fields: dict[str, Any],
    problem: str,
    changed: dict[str, str],
) -> None:
    [cause] = framing(VOCABULARY._replace(**fields), name, ours, theirs)
    assert (cause.id, cause.detail["problem"], dict(cause.change.keys)) == (name, problem, changed)
    assert (cause.detail["ours"], cause.detail["theirs"]) == ([*ours], [*theirs])
    assert cause.fix or cause.change


def test_padding_in_words() -> None:
    def said(ours: tuple[int, ...], theirs: tuple[int, ...], name: str = "eos") -> object:
        [cause] = framing(VOCABULARY, name, ours, theirs)
        return cause.detail["what"]

    shown = f"the given ids end with 2 padding tokens, {OTHER} ('<s>')"
    assert said((), (OTHER, OTHER)) == said((EOS,), (EOS, OTHER, OTHER)) == shown
    assert said((EOS,), (OTHER, OTHER)) == f"{shown}, with no EOS before them"
    assert said((EOS,), (EOS, OTHER)) == f"the given ids end with 1 padding token, {OTHER} ('<s>')"
    shown = f"the given ids begin with 2 padding tokens, {OTHER} ('<s>')"
    assert said((BOS,), (OTHER, OTHER), "bos") == f"{shown}, with no BOS after them"


def test_equal_ends_have_no_cause() -> None:
    assert not list(framing(VOCABULARY, "bos", (BOS,), (BOS,)))


def test_bos_that_no_flag_switches_off() -> None:
    entry = PRE_TOKENIZERS["gpt-2"]._replace(always_add_bos=True)
    vocabulary = VOCABULARY._replace(add_bos=True, pre_tokenizer=entry)
    [cause] = framing(vocabulary, "bos", (BOS,), ())
    assert not cause.change
    assert f"whatever {K.ADD_BOS} says" in cause.fix


@pytest.mark.parametrize(
    ("model", "name", "added"), [("gpt2", "bos", "bos"), ("gpt2", "eos", "eos"), ("bert", "eos", "sep")]
)
def test_what_the_model_adds(model: str, name: str, added: str) -> None:
    assert name_of_added(VOCABULARY._replace(model=model), name) == added
