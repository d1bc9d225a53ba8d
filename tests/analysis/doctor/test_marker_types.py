"""The types that markers are given where theirs are lost."""

from __future__ import annotations

import pytest
from conftest import ROOT
from real_vocabularies import cached
from small_models import FactsOf, K, facts_of, small_keys

from ggufbpe.analysis.doctor.examination import doctor
from ggufbpe.analysis.doctor.facts import Facts
from ggufbpe.analysis.doctor.marker_types import listed_markers, set_marker_types, types_of_markers
from ggufbpe.analysis.doctor.token_checks import control_types
from ggufbpe.gguf.change import Change
from ggufbpe.gguf.constants import TokenType
from ggufbpe.gguf.metadata import Metadata
from ggufbpe.gguf.reader import GGUFFile

__all__ = ["facts_of"]  # the fixture

SIZE = len(small_keys()[K.LIST])


def test_a_marker_that_a_known_family_shows_is_user_defined(facts_of: FactsOf) -> None:
    model = facts_of(small_keys('<|"|>', "<|x|>", "<unk>"))
    assert types_of_markers(model, [SIZE + 2, SIZE + 1, SIZE]) == {
        "CONTROL": [SIZE + 1, SIZE + 2],
        "USER_DEFINED": [SIZE],
        "UNKNOWN": [],  # byte pair encoding has no unknown token
    }
    assert set_marker_types(model, [SIZE, SIZE + 1]) == model.set_types(
        CONTROL=[SIZE + 1], USER_DEFINED=[SIZE]
    )
    assert listed_markers(model) == []


@pytest.mark.parametrize("name", ["think", "tool_call", "tool_response"])
def test_tags_of_reasoning_and_tools_stay_in_the_answer(name: str, facts_of: FactsOf) -> None:
    """As Qwen 3 has them; as control tokens, which are not shown, they would be lost to programs that look for them."""
    keys = small_keys(f"<{name}>", f"</{name}>", "<|x|>", kind=int(TokenType.NORMAL))
    [finding] = control_types(facts_of(keys))
    change = Change.of_command(finding.fix)
    assert change is not None
    assert change.types == {SIZE: "USER_DEFINED", SIZE + 1: "USER_DEFINED", SIZE + 2: "CONTROL"}


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("<|{}|>", "USER_DEFINED"),  # OuteTTS
        ("<custom_token_{}>", "USER_DEFINED"),  # Orpheus
        ("<|reserved_special_token_{}|>", "CONTROL"),  # Llama 3
        ("<SPECIAL_{}>", "CONTROL"),  # Mistral, Nemotron
        ("[control_{}]", "CONTROL"),  # Mistral 7B v0.3
        ("<｜place▁holder▁no▁{}｜>", "CONTROL"),  # DeepSeek V3
        ("<|{}.00|>", "CONTROL"),  # timestamps of speech recognition, as Whisper has them
    ],
)
def test_audio_codes_stay_in_the_answer(form: str, expected: str, facts_of: FactsOf) -> None:
    """Programs read them there, and make sound of them; what is only reserved for markers is never written."""
    model = facts_of(small_keys("<|x|>", *(form.format(number) for number in range(64))))
    found = types_of_markers(model, range(SIZE, SIZE + 65))
    assert found[expected][-64:] == [*range(SIZE + 1, SIZE + 65)]
    assert SIZE in found["CONTROL"]
    assert types_of_markers(model, [SIZE + 1])[expected] == [SIZE + 1]


def test_a_few_audio_codes_without_their_type_are_told_by_all_others(facts_of: FactsOf) -> None:
    keys = small_keys(*(f"<|{number}|>" for number in range(70)), kind=int(TokenType.USER_DEFINED))
    keys[K.TOKEN_TYPE][-2:] = [int(TokenType.NORMAL)] * 2
    [finding] = control_types(facts_of(keys))
    change = Change.of_command(finding.fix)
    assert change is not None
    assert change.types == {SIZE + 68: "USER_DEFINED", SIZE + 69: "USER_DEFINED"}
    few = facts_of(small_keys(*(f"<|{number}|>" for number in range(63))))
    assert types_of_markers(few, [SIZE])["CONTROL"] == [SIZE]


def test_the_unknown_token_of_a_model_with_scores_is_unknown() -> None:
    with GGUFFile(ROOT / "fixtures" / "plamo.gguf") as file:
        model = Facts(file, {K.TOKEN_TYPE: None})
        found = types_of_markers(model, [0, 1])
    assert (found["UNKNOWN"], found["CONTROL"]) == ([0], [1])


# All types of a file: what is left of them, and the tokens that have another type after the proposed command.
LOST = {
    "none": (),
    "without markers": (TokenType.NORMAL, TokenType.BYTE),
    "without bytes": (TokenType.NORMAL, TokenType.CONTROL, TokenType.USER_DEFINED, TokenType.UNKNOWN),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "loss"),
    [
        *(("gemma-4", loss) for loss in LOST),
        *(("llama-spm", loss) for loss in LOST),
        *(("bert-bge", loss) for loss in ("none", "without markers")),  # which has no bytes
    ],
)
def test_one_command_brings_back_all_types(name: str, loss: str) -> None:
    path = cached(name)
    with GGUFFile(path) as file:
        types = list(file[K.TOKEN_TYPE])
    lost = [kind if kind in LOST[loss] else int(TokenType.NORMAL) for kind in types]
    assert lost != types
    found = doctor(path, overrides={K.TOKEN_TYPE: lost})
    assert {each.id for each in found.findings if each.severity != "note"} <= {
        *("byte_type", "bytes_missing", "control_type", "chat_marker"),
        *("special_id_is_normal", "special_id_missing"),
    }
    change = Change.of_command(found.fix)
    assert change is not None
    given = {token: int(TokenType[kind]) for token, kind in change.types.items()}
    assert [given.get(token, kind) for token, kind in enumerate(lost)] == types


@pytest.mark.parametrize("name", ["plamo2", "plamo3"])
def test_a_plamo_without_types_is_mended(name: str) -> None:
    path = ROOT / "fixtures" / "vocabs" / f"{name}.gguf"
    found = doctor(path, overrides={K.TOKEN_TYPE: None})
    assert found.findings[0].id == "byte_type"
    change = Change.of_command(found.fix)
    assert change is not None
    with GGUFFile(path) as file:
        types = Metadata(file)[K.TOKEN_TYPE]
    of_bytes = {token for token, kind in enumerate(types) if kind == TokenType.BYTE}
    assert {token for token, kind in change.types.items() if kind == "BYTE"} == of_bytes
