"""Types of values, and lists that are shorter or longer than the list of tokens."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from small_models import MERGES, FactsOf, K, facts_of, family_keys, found, scored_keys, small_keys
from tensors_by_hand import model_with

from ggufbpe.analysis.doctor.advice import advised
from ggufbpe.analysis.doctor.checks import findings_of
from ggufbpe.analysis.doctor.examination import doctor
from ggufbpe.analysis.doctor.proposal import changes_of
from ggufbpe.analysis.doctor.value_checks import lengths, wrong_types
from ggufbpe.gguf.constants import GGUFValueType as T

__all__ = ["facts_of"]  # the fixture

SIZE = len(small_keys()[K.LIST])
TYPES = small_keys()[K.TOKEN_TYPE]


@pytest.mark.parametrize(
    ("key", "value", "severity", "fixed"),
    [
        (K.ADD_BOS, (1, T.UINT8), "error", "true"),
        (K.ADD_BOS, ("False", T.STRING), "error", "false"),
        (K.BOS_ID, (7.0, T.FLOAT32), "error", "7"),
        (K.BOS_ID, (7.5, T.FLOAT32), "error", None),
        (K.PRE, (5, T.UINT32), "error", "gpt-2"),
        (K.CHAT_TEMPLATE, (5, T.UINT32), "warning", None),  # llama.cpp takes its digits
        (K.MERGES, [1, 2], "error", None),
    ],
)
def test_a_wrong_type(key: str, value: Any, severity: str, fixed: str | None, facts_of: FactsOf) -> None:
    model = facts_of({**small_keys(), key: value})
    findings = list(wrong_types(model))
    assert found(findings) == [("wrong_type", severity)]
    assert findings[0].where.key == key
    if fixed == "gpt-2":  # told by the tokens
        assert findings[0].fix == model.set_pre()
    elif fixed:
        assert findings[0].fix == model.set(key, fixed)
    elif key == K.MERGES:  # without which nothing works
        assert findings[0].fix == "convert the model again"
    else:
        assert findings[0].fix.endswith(f"or remove the key: {model.remove(key)}")


@pytest.mark.parametrize("order", ["little", "big"])
def test_the_byte_order_of_another_machine(order: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(model_with(byteorder=order))
    findings = [finding for finding in doctor(path).findings if finding.id == "byte_order"]
    assert [finding.what for finding in findings] == (
        [] if order == sys.byteorder else [f"The file is {order}-endian, and this machine is not."]
    )


def test_ids_of_a_known_family_in_a_list(facts_of: FactsOf) -> None:
    """transformers has lists of EOS. Without the key, llama.cpp would end answers at another token."""
    keys = family_keys("Qwen 2")
    model = facts_of({**keys, K.EOS_ID: [keys[K.EOS_ID], 7]})
    assert [finding.fix for finding in wrong_types(model)] == [model.set(K.EOS_ID, keys[K.EOS_ID])]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, []),
        ({"token_type": TYPES[:-1]}, [("types_length", "error")]),
        ({"token_type": [*TYPES, 1]}, [("types_length", "warning")]),
        ({"scores": [0.0] * 7}, [("scores_length", "error")]),
        ({"scores": [0.0] * SIZE}, []),
        ({"token_type": None}, [("types_missing", "warning")]),
        ({"token_type": [*TYPES[:-1], 9]}, [("type_unknown", "warning")]),
    ],
)
def test_lengths(keys: dict[str, Any], expected: list[tuple[str, str]], facts_of: FactsOf) -> None:
    assert found(lengths(facts_of(small_keys(**keys)))) == expected


def test_types_of_zero_are_mended_by_one_command(facts_of: FactsOf) -> None:
    """Bytes have a finding of their own, which says BYTE."""
    keys = scored_keys([f"word{index}" for index in range(50)])
    right = keys[K.TOKEN_TYPE]
    model = facts_of({**keys, K.TOKEN_TYPE: [0] * len(right)})
    told, proposal = advised(model, findings_of(model))
    assert proposal is not None
    assert not [finding for finding in told if finding.fix.startswith("no command")]
    types = [proposal.change.types.get(token) for token in range(len(right))]
    assert types == ["UNKNOWN", "CONTROL", "CONTROL", *["BYTE"] * 256, *["NORMAL"] * 50]


def test_what_merges_make_is_text_where_types_are_lost(facts_of: FactsOf) -> None:
    """Qwen 2's "</s>" is text."""
    keys = small_keys(merges=(*MERGES, "< s", "<s >"))
    size, text = len(keys[K.LIST]), keys[K.LIST].index("<s>")
    model = facts_of({**keys, K.TOKEN_TYPE: [0] * size})
    [finding] = lengths(model)
    [change] = changes_of(finding)
    assert [change.types[token] for token in (text, size - 1)] == ["NORMAL", "CONTROL"]


@pytest.mark.parametrize("length", [SIZE - 1, SIZE + 1])
@pytest.mark.parametrize(
    ("name", "is_used"), [("gpt2", False), ("llama", True), ("t5", True), ("plamo2", True)]
)
def test_scores_are_removed_only_where_no_ids_depend_on_them(
    name: str, is_used: bool, length: int, facts_of: FactsOf
) -> None:
    model = facts_of(small_keys(model=name, scores=[0.0] * length))
    [finding] = lengths(model)
    removed = f", or remove them: {model.remove(K.SCORES)}"
    assert finding.fix == "convert the model again" + ("" if is_used else removed)


@pytest.mark.parametrize("key", [K.SCORES, K.PRECOMPILED_CHARSMAP])
def test_what_ids_depend_on_is_not_removed_for_its_type(key: str, facts_of: FactsOf) -> None:
    [finding] = wrong_types(facts_of({**small_keys(model="t5"), key: (5, T.UINT32)}))
    assert finding.fix == "convert the model again"


def test_without_the_scores_that_no_ids_depend_on_nothing_is_left_to_mend(facts_of: FactsOf) -> None:
    model = facts_of(small_keys(scores=[0.0] * 7))
    findings = findings_of(model)
    _, proposal = advised(model, findings)
    assert proposal is not None
    assert proposal.command == model.remove(K.SCORES)
    mended = findings_of(model.changed({K.SCORES: None}))
    assert not [each for each in mended if each.severity != "note"]


def test_the_types_that_are_proposed(facts_of: FactsOf) -> None:
    model = facts_of(small_keys(token_type=None))
    [finding] = lengths(model)
    assert finding.fix == model.set_types(CONTROL=range(SIZE - 3, SIZE))  # what looks like a marker
    model = facts_of(small_keys("<|x|>", "x", kind=9))
    [finding] = lengths(model)
    assert finding.fix == model.set_types(CONTROL=[SIZE], NORMAL=[SIZE + 1])
