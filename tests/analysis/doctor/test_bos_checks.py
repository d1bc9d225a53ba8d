"""BOS where no model wants it, and BOS that is left out."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import ROOT
from real_vocabularies import cached
from small_models import (
    CHATML,
    CONTROL,
    NORMAL,
    FactsOf,
    K,
    facts_of,
    family_keys,
    found,
    scored_keys,
    small_keys,
)

from ggufbpe.analysis.doctor.bos_checks import bos_is_eos, bos_switched_off
from ggufbpe.analysis.doctor.facts import Facts
from ggufbpe.gguf.reader import GGUFFile

__all__ = ["facts_of"]  # the fixture

END = small_keys()[K.BOS_ID]


@pytest.mark.parametrize(
    ("keys", "is_found"),
    [
        ({"add_bos_token": True, "eos_token_id": END}, True),
        ({"add_bos_token": False, "eos_token_id": END}, False),  # not added
        ({"add_bos_token": True}, False),  # two tokens
        (
            {"add_bos_token": True, "bos_token_id": 65, "eos_token_id": 65},
            False,
        ),  # text, as another check says
    ],
)
def test_a_text_must_not_begin_with_its_end(keys: dict[str, Any], is_found: bool, facts_of: FactsOf) -> None:
    model = facts_of(small_keys(**keys))
    findings = list(bos_is_eos(model))
    assert found(findings) == [("bos_is_eos", "warning")] * is_found
    if is_found:
        assert findings[0].fix == model.set(K.ADD_BOS, "false")
        assert findings[0].detail == {"token": END}


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("</s>", {K.BOS_ID: "<s>"}),
        ("<|im_end|>", {K.BOS_ID: "<s>"}),  # of a tuned model
        ("<end_of_turn>", {K.BOS_ID: "<s>"}),  # of Gemma's
        ("<s>", {K.EOS_ID: "</s>"}),
        ("<|mine|>", {K.BOS_ID: "<s>", K.EOS_ID: "</s>"}),
    ],
)
def test_where_other_tokens_are_bos_and_eos_by_their_texts_the_ids_are_to_change(
    text: str, right: dict[str, str], facts_of: FactsOf
) -> None:
    """The model adds BOS, which is right: it is the id that is wrong."""
    keys = scored_keys(["▁word"], ["<|im_end|>", "<|mine|>", "<end_of_turn>"])
    keys[K.BOS_ID] = keys[K.EOS_ID] = keys[K.LIST].index(text)
    model = facts_of(keys)
    [finding] = bos_is_eos(model)
    words = [word for key, own in right.items() for word in ("--set", f"{key}={keys[K.LIST].index(own)}")]
    assert finding.fix == model.command(*words)


def test_plamo_s_own_names_tell_its_bos_from_its_eos() -> None:
    with GGUFFile(ROOT / "fixtures" / "plamo.gguf") as file:
        model = Facts(file, {K.BOS_ID: 2})
        [finding] = bos_is_eos(model)
        assert finding.fix == model.set(K.BOS_ID, 1)


def test_the_right_bos_may_have_lost_its_type(facts_of: FactsOf) -> None:
    """While llama.cpp makes </s> a control token by its text."""
    keys = scored_keys(["▁word"])
    keys[K.TOKEN_TYPE] = [NORMAL] * len(keys[K.LIST])
    model = facts_of({**keys, K.BOS_ID: 2, K.EOS_ID: 2})
    [finding] = bos_is_eos(model)
    assert finding.fix == model.set(K.BOS_ID, 1)


def test_an_end_of_turn_that_is_eos_of_a_tuned_model_stays_eos(facts_of: FactsOf) -> None:
    keys = family_keys("Llama 3", add_bos_token=True)
    keys[K.BOS_ID] = keys[K.EOS_ID] = len(keys[K.LIST])
    keys[K.LIST], keys[K.TOKEN_TYPE] = [*keys[K.LIST], "<|eot_id|>"], [*keys[K.TOKEN_TYPE], CONTROL]
    model = facts_of(keys)
    [finding] = bos_is_eos(model)
    assert finding.fix == model.set(K.BOS_ID, 128000)


def test_where_the_pre_tokenizer_always_adds_bos_the_ids_are_to_change(facts_of: FactsOf) -> None:
    [finding] = bos_is_eos(facts_of(small_keys(pre="granite-embed-multi-311m", eos_token_id=END)))
    assert finding.fix.startswith(f"set {K.BOS_ID} and {K.EOS_ID} to the ids")


@pytest.mark.parametrize(
    ("pre", "add_bos", "is_found"),
    [
        ("llama-bpe", False, True),
        ("llama-bpe", None, False),
        ("llama-bpe", True, False),
        ("gpt-2", False, False),
    ],
)
def test_a_bos_that_a_pre_tokenizer_adds_and_the_file_does_not(
    pre: str, add_bos: bool | None, is_found: bool, facts_of: FactsOf
) -> None:
    """Converters write what the model's own tokenizer does, and the name of the pre-tokenizer may be the wrong one."""
    model = facts_of(small_keys(pre=pre, add_bos_token=add_bos))
    findings = list(bos_switched_off(model))
    assert found(findings) == [("bos_switched_off", "note")] * is_found
    for finding in findings:
        assert finding.fix == f"if the original model adds '<|endoftext|>': {model.set(K.ADD_BOS, 'true')}"


def test_a_family_adds_bos_whatever_its_pre_tokenizer_says(facts_of: FactsOf) -> None:
    family = "DeepSeek Coder"  # of which the pre-tokenizer does not add it
    assert not list(bos_switched_off(facts_of(family_keys(family, add_bos_token=True))))
    model = facts_of(family_keys(family))
    [finding] = bos_switched_off(model)
    assert (finding.severity, finding.fix) == ("warning", model.set(K.ADD_BOS, "true"))
    assert finding.evidence == f"{K.ADD_BOS} is missing, while {family} files add BOS."
    assert "Chats have it" not in finding.why
    writes_bos = {**family_keys(family), K.CHAT_TEMPLATE: "{{ bos_token }}" + CHATML}
    [finding] = bos_switched_off(facts_of(writes_bos))
    assert finding.why.endswith("Chats have it, since the chat template writes it.")


@pytest.mark.parametrize("add_eos", [True, False])
def test_one_command_adds_both_tokens_of_an_embedding(add_eos: bool) -> None:
    with GGUFFile(cached("nomic-bert-moe")) as file:
        model = Facts(file, {K.ADD_BOS: False, K.ADD_EOS: add_eos})
        [finding] = bos_switched_off(model)
        eos = [] if add_eos else ["--set", f"{K.ADD_EOS}=true"]
        assert finding.fix == model.command("--set", f"{K.ADD_BOS}=true", *eos)


@pytest.mark.parametrize(
    ("keys", "is_found"),
    [
        ({"add_bos_token": True}, True),  # whatever EOS is: <|endoftext|> ends a text in Qwen 2 files
        ({"add_bos_token": False}, False),
        ({"add_bos_token": True, "bos_token_id": 151644}, False),  # <|im_start|> ends nothing
    ],
)
def test_what_ends_a_text_in_the_familys_files_must_not_begin_one(
    keys: dict[str, Any], is_found: bool, facts_of: FactsOf
) -> None:
    made = family_keys("Qwen 2")
    made[K.LIST] += ["<|im_start|>", "<|im_end|>"]
    made[K.TOKEN_TYPE] += [CONTROL] * 2
    made |= {K.EOS_ID: 151645, **{f"tokenizer.ggml.{key}": value for key, value in keys.items()}}
    model = facts_of(made)
    findings = list(bos_is_eos(model))
    assert found(findings) == [("bos_is_eos", "warning")] * is_found
    if is_found:
        assert findings[0].fix == model.set(K.ADD_BOS, "false")
        assert "Qwen 2 files end texts with it and do not add it" in findings[0].evidence
