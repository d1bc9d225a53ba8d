"""One command for all findings, of changes that were tried and harm nothing."""

from __future__ import annotations

import pytest
from small_models import FactsOf, K, facts_of, family_keys, scored_keys, small_keys

from ggufbpe.analysis.doctor.advice import advised, left_unlike_family
from ggufbpe.analysis.doctor.checks import findings_of
from ggufbpe.analysis.doctor.finding import Finding, Where
from ggufbpe.gguf.constants import GGUFValueType, TokenType

__all__ = ["facts_of"]  # the fixture

IM_START = small_keys()[K.LIST].index("<|im_start|>")


def finding(fix: str, key: str, severity: str = "error") -> Finding:
    return Finding(severity, "made_up", "Something is wrong.", "It matters.", fix, Where(key))


def test_all_changes_are_one_command(facts_of: FactsOf) -> None:
    keys = small_keys("<|x|>", kind=1)  # a marker of type normal
    model = facts_of({**keys, K.ADD_BOS: (0, GGUFValueType.UINT8)})
    findings = findings_of(model)
    told, proposal = advised(model, findings)
    assert told == tuple(findings)
    assert proposal is not None
    x = keys[K.LIST].index("<|x|>")
    assert proposal.command == model.command(
        "--set", f"{K.ADD_BOS}=false", "--set-token-type", f"{x}=CONTROL"
    )
    assert (proposal.differing, proposal.explained) == (2, 2)
    assert proposal.explains == "explains all 2 findings"


def test_values_unlike_those_of_the_family_that_no_command_changes(facts_of: FactsOf) -> None:
    model = facts_of(family_keys("DeepSeek Coder", pre="gpt-2", add_bos_token=True, add_eos_token=True))
    assert left_unlike_family(model, None) == (
        f"{K.PRE} is 'gpt-2' instead of deepseek-coder",
        "EOS is added to every text",
    )
    _, proposal = advised(model, [finding(model.set(K.PRE, "deepseek-coder"), K.PRE)])
    assert left_unlike_family(model, proposal) == ("EOS is added to every text",)
    assert left_unlike_family(facts_of(small_keys()), None) == ()


def test_notes_need_no_command(facts_of: FactsOf) -> None:
    model = facts_of(small_keys())
    findings = [finding(model.set(K.PAD_ID, 1), K.PAD_ID, "note"), finding("convert the model again", K.LIST)]
    assert advised(model, findings) == (tuple(findings), None)


def test_a_change_that_harms_is_left_out(facts_of: FactsOf) -> None:
    model = facts_of(small_keys())
    harmful, harmless = model.set(K.PRE, "nonsense"), model.set(K.BOS_ID, IM_START)
    told, proposal = advised(model, [finding(harmful, K.PRE), finding(harmless, K.BOS_ID)])
    assert told[0].fix.startswith("no command is proposed, because the model cannot be opened afterwards: ")
    assert told[1].fix == harmless
    assert proposal is not None
    assert proposal.command == harmless


def test_what_a_change_makes_wrong_is_changed_as_well(facts_of: FactsOf) -> None:
    """EOS as an ordinary letter would be a new finding, whose own fix is another EOS."""
    model = facts_of(small_keys())
    _, proposal = advised(model, [finding(model.set(K.EOS_ID, 65), K.EOS_ID)])
    assert proposal is not None
    assert proposal.command == model.set(K.EOS_ID, IM_START - 1)


def test_of_two_values_for_one_key_that_of_the_first_finding_is_taken(facts_of: FactsOf) -> None:
    model = facts_of(small_keys())
    first, second = model.set(K.BOS_ID, IM_START), model.set(K.BOS_ID, IM_START + 1)
    told, proposal = advised(model, [finding(first, K.BOS_ID), finding(second, K.BOS_ID)])
    assert told[0].fix == first
    assert told[1].fix == "no command is proposed, because the command for another finding sets another value"
    assert proposal is not None
    assert proposal.command == first


def test_where_a_finding_has_two_commands_the_one_that_harms_nothing_is_taken(facts_of: FactsOf) -> None:
    model = facts_of(small_keys())
    either = f"{model.set(K.PRE, 'nonsense')}, or {model.set(K.EOS_ID, IM_START)}"
    [told], proposal = advised(model, [finding(either, K.EOS_ID)])
    assert told.fix == either
    assert proposal is not None
    assert proposal.command == model.set(K.EOS_ID, IM_START)


@pytest.mark.parametrize(
    "kind", [TokenType.NORMAL, TokenType.CONTROL, TokenType.USER_DEFINED, TokenType.UNUSED]
)
@pytest.mark.parametrize("number", [1, 2, 256])
def test_bytes_of_another_type_become_bytes_however_few_they_are(
    kind: TokenType, number: int, facts_of: FactsOf
) -> None:
    keys = scored_keys(["▁word"])
    first = keys[K.LIST].index("<0x0A>") if number < 256 else 3
    keys[K.TOKEN_TYPE][first : first + number] = [int(kind)] * number
    model = facts_of(keys)
    _, proposal = advised(model, findings_of(model))
    assert proposal is not None
    assert proposal.command == model.set_types(BYTE=range(first, first + number))


def test_what_is_only_found_once_the_file_can_be_opened_is_mended_as_well(facts_of: FactsOf) -> None:
    """Under gpt2, which needs merges, tokens such as <0x0A> are no bytes."""
    keys = scored_keys([f"▁word{number}" for number in range(900)])
    types = keys.pop(K.TOKEN_TYPE)
    model = facts_of({**keys, K.MODEL: "gpt2"})
    _, proposal = advised(model, findings_of(model))
    assert proposal is not None
    assert proposal.change.keys[K.MODEL] == "llama"
    found = [TokenType[proposal.change.types.get(token, "NORMAL")] for token in range(len(types))]
    assert found[1:] == types[1:]  # but for <unk>
    assert (proposal.differing, proposal.explained) == (2, 2)
