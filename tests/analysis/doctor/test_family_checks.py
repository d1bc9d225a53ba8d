"""What a file has in common with the family that its tokens are from."""

from __future__ import annotations

from typing import Any

import pytest
from small_models import CONTROL, NORMAL, FactsOf, K, Keys, facts_of, family_keys, small_keys
from small_models import known_family as family_of

from ggufbpe.analysis.doctor.advice import advised
from ggufbpe.analysis.doctor.checks import findings_of
from ggufbpe.analysis.doctor.family_checks import (
    added_text,
    fix_of_name,
    known_family,
    last_tokens_missing,
    tokens_moved,
)
from ggufbpe.analysis.doctor.proposal import changes_of
from ggufbpe.analysis.doctor.special_id_checks import wrong_special_ids
from ggufbpe.gguf.constants import KEY_NAME, TokenType

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


def with_tokens(count: int, **keys: Any) -> Keys:
    """The keys of a DeepSeek Coder model with `count` tokens, of which those behind EOS are padding."""
    made = family_keys(DEEPSEEK, **keys)
    more = range(len(made[K.LIST]), count)
    made[K.LIST] = [*made[K.LIST], *(f"[PAD{index}]" for index in more)]
    made[K.TOKEN_TYPE] = [*made[K.TOKEN_TYPE], *(int(TokenType.UNUSED) for _ in more)]
    return made


def test_lost_tokens_are_told_from_missing_padding(facts_of: FactsOf) -> None:
    [finding] = last_tokens_missing(facts_of(with_tokens(32021)))
    assert (finding.severity, finding.fix) == ("warning", "convert the model again")
    assert finding.what == "The last tokens of a DeepSeek Coder vocabulary are missing."
    assert finding.evidence == (
        "The file has 32021 tokens. DeepSeek Coder files have more, such as '<|EOT|>' with id 32021."
    )
    assert not list(last_tokens_missing(facts_of(with_tokens(32022))))


def test_lost_tokens_after_which_a_vocabulary_looks_like_another_family(facts_of: FactsOf) -> None:
    phi = family_of("Phi-3")
    keys = {**family_keys("Llama 2", eos_token_id=32000), KEY_NAME: "Phi 3 mini"}
    [finding] = last_tokens_missing(facts_of(keys))
    assert finding.detail == {"family": "Phi-3", "first": 32000, "last": phi.last_used[0]}
    assert not list(last_tokens_missing(facts_of(family_keys("Llama 2"))))
    assert not list(
        last_tokens_missing(facts_of({**small_keys(), KEY_NAME: "Llama 3 8B"}))
    )  # another vocabulary


@pytest.mark.parametrize("name", ["Phi-3 mini", "Phi 3 mini", "My Phi3-mini"])
def test_no_proposed_change_hides_lost_tokens(name: str, facts_of: FactsOf) -> None:
    keys = {**family_keys("Llama 2", eos_token_id=32000), KEY_NAME: name}
    findings = {finding.id: finding for finding in findings_of(facts_of(keys))}
    assert findings["special_id_out_of_range"].fix == "convert the model again: '<|endoftext|>' is missing"
    for change in (change for finding in findings.values() for change in changes_of(finding)):
        keys |= change.keys
    assert "lost_tokens" in findings
    assert list(last_tokens_missing(facts_of(keys)))


def test_tokens_of_its_own_behind_those_of_llama_2_are_none_that_phi_3_lost(facts_of: FactsOf) -> None:
    keys = {**family_keys("Llama 2", eos_token_id=32001), KEY_NAME: "Phi 3 style Llama 2 chat"}
    keys[K.LIST] = [*keys[K.LIST], "<|im_start|>", "<|im_end|>"]
    keys[K.TOKEN_TYPE] = [*keys[K.TOKEN_TYPE], *[int(TokenType.CONTROL)] * 2]
    model = facts_of(keys)
    assert model.family == family_of("Llama 2")
    assert not list(last_tokens_missing(model))


def test_a_vocabulary_of_its_own_is_no_phi_3_by_a_name_like_dolphi_3(facts_of: FactsOf) -> None:
    keys = {**family_keys("Llama 2"), KEY_NAME: "Dolphi 3B"}
    keys[K.LIST] = [*keys[K.LIST][:31999], "mine"]
    model = facts_of(keys)
    assert model.family is None
    assert not list(last_tokens_missing(model))


@pytest.mark.parametrize(("name", "other"), [("phi-3", "phi 3"), ("My Phi3-mini", "'My Phi 3-mini'")])
@pytest.mark.parametrize("family", ["Llama 2", "BERT", "Phi-3"])
def test_a_whole_vocabulary_of_another_family_gets_another_name(
    family: str, name: str, other: str, facts_of: FactsOf
) -> None:
    keys = {**family_keys(family), KEY_NAME: name}
    if family == "Phi-3":  # whose markers would not take the spaces behind them under another name
        more = range(len(keys[K.LIST]), family_of(family).last_used[0] + 1)
        keys[K.LIST] = [*keys[K.LIST], *(f"<|placeholder{index}|>" for index in more)]
        keys[K.TOKEN_TYPE] = [*keys[K.TOKEN_TYPE], *(int(TokenType.CONTROL) for _ in more)]
        keys[K.LIST][32000] = "<|finetune_pad|>"
    model = facts_of(keys)
    assert not list(last_tokens_missing(model))
    [finding] = [
        each for each in findings_of(model) if each.where.key == KEY_NAME and each.severity == "error"
    ]
    if family == "Phi-3":
        assert finding.fix == "convert the model again"
        return
    [change] = changes_of(finding)
    assert change.keys == {KEY_NAME: other.strip("'")}
    assert facts_of({**keys, **change.keys}).refusal is None
    if family == "Llama 2":  # a Phi-3 that has lost its last tokens
        lost = facts_of({**keys, K.EOS_ID: 32000})
        assert lost.refusal is not None
        assert fix_of_name(lost) == "convert the model again"


def test_added_text_that_is_stored_as_normal_tokens(facts_of: FactsOf) -> None:
    keys = with_tokens(32022)
    [finding] = added_text(facts_of(keys))
    [change] = changes_of(finding)
    assert change.types == dict.fromkeys(range(32000, 32013), "USER_DEFINED")
    for index in family_of(DEEPSEEK).added_text:
        keys[K.TOKEN_TYPE][index] = int(TokenType.USER_DEFINED)
    assert not list(added_text(facts_of(keys)))


@pytest.mark.parametrize(
    ("name", "by", "is_found"),
    [
        ("Llama 3", 1, True),  # a token was put in
        ("Llama 3", -1, True),  # one was taken out, and the hole filled up
        ("GPT-2", 1, True),  # its last token is lost
        ("Llama 3", 0, False),
        ("Llama 2", -1, False),  # whose special ids come first: nothing in the file contradicts the tokens
    ],
)
def test_tokens_that_have_moved(name: str, by: int, is_found: bool, facts_of: FactsOf) -> None:
    """BOS would otherwise be set to the id that its text has moved to, for which the model has another row."""
    keys = family_keys(name)
    size = len(keys[K.LIST])
    if by:
        for key, added in ((K.LIST, "<added>"), (K.TOKEN_TYPE, NORMAL)):
            keys[key].insert(1000 if by > 0 else size, added)
            del keys[key][size if by > 0 else 1000]
    model = facts_of(keys)
    findings = [*tokens_moved(model), *wrong_special_ids(model)]
    assert [finding.id for finding in findings[:1]] == ["tokens_moved"] * is_found
    if is_found:
        told, proposal = advised(model, findings)
        assert proposal is None
        assert not [finding for finding in told if changes_of(finding)]


def test_markers_added_to_llama_2_are_not_those_of_phi_3_moved(facts_of: FactsOf) -> None:
    keys = family_keys("Llama 2")
    added = ["<|im_end|>", "<|system|>", "<|user|>", "<|assistant|>"]
    keys[K.EOS_ID] = len(keys[K.LIST])  # as that of Phi-3, which has "<|assistant|>" as the next token
    keys[K.LIST] += added
    keys[K.TOKEN_TYPE] += [CONTROL] * len(added)
    assert not list(tokens_moved(facts_of(keys)))


@pytest.mark.parametrize("model", [None, "llama"])
def test_tokens_that_have_moved_in_a_file_that_does_not_name_their_model(
    model: str | None, facts_of: FactsOf
) -> None:
    """The command that names the model would otherwise set BOS as well, to the id that its text has moved to."""
    keys = family_keys("GPT-2", model=model)
    keys[K.LIST] = [f"Ġ{text}" if text.startswith("<filler") else text for text in keys[K.LIST]]
    keys[K.LIST].insert(1000, "<added>")
    keys[K.LIST].pop()
    assert "tokens_moved" in [finding.id for finding in findings_of(facts_of(keys))]
