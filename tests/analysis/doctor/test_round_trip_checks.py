"""Text that does not survive encoding and decoding."""

from __future__ import annotations

import pytest
from conftest import ROOT
from small_models import MERGES, SPECIAL, UNUSED, FactsOf, K, Keys, facts_of, found, small_keys

from ggufbpe.analysis.doctor.facts import Facts
from ggufbpe.analysis.doctor.round_trip_checks import (
    byte_types,
    dropped_spaces,
    line_break,
    lost_bytes,
    round_trips,
)
from ggufbpe.gguf.constants import TokenType
from ggufbpe.gguf.reader import GGUFFile
from ggufbpe.models.bpe.merge import BYTE_CHARS

__all__ = ["facts_of"]  # the fixture


def without_bytes(*lost: int) -> Keys:
    """A small model, with the tokens of some bytes replaced."""
    tokens = [f"<gone {byte}>" if byte in lost else char for byte, char in enumerate(BYTE_CHARS)]
    return small_keys(tokens=[*tokens, *(merge.replace(" ", "") for merge in MERGES), *SPECIAL])


@pytest.mark.parametrize(
    ("lost", "severity", "reported"),
    [
        ((), None, []),
        ((ord("^"),), "warning", [94]),
        ((1, 0xF1), "note", [1, 0xF1]),  # control characters, and planes without text
        ((ord("\n"),), "warning", [10]),
        ((0xC0, 0xFF), None, []),  # in no UTF-8
    ],
)
def test_bytes_without_a_token(
    lost: tuple[int, ...], severity: str | None, reported: list[int], facts_of: FactsOf
) -> None:
    findings = list(lost_bytes(facts_of(without_bytes(*lost))))
    assert [(finding.severity, finding.detail) for finding in findings] == (
        [(severity, {"bytes": reported})] if severity else []
    )


def test_texts_that_decoding_does_not_restore(facts_of: FactsOf) -> None:
    sound = small_keys()
    assert not list(round_trips(facts_of(sound)))
    k = sound[K.LIST].index("k")
    sound[K.TOKEN_TYPE][k] = UNUSED  # which no program shows
    [finding] = round_trips(facts_of(sound))
    assert (finding.id, finding.severity) == ("round_trip", "warning")
    assert finding.detail is not None
    assert all("k" in sample for sample in finding.detail["samples"])
    assert finding.evidence.endswith("from character 8 on, 'k'.")


@pytest.mark.parametrize(("pre", "is_found"), [("gpt-2", True), ("qwen2", False)])
def test_spaces_that_decoding_drops(pre: str, is_found: bool, facts_of: FactsOf) -> None:
    findings = list(dropped_spaces(facts_of(small_keys(pre=pre))))
    assert found(findings) == [("clean_spaces", "note")] * is_found
    if is_found:
        assert findings[0].evidence == '"It \'s here , now !" comes back as "It\'s here, now!".'


def test_line_breaks(facts_of: FactsOf) -> None:
    assert found(line_break(facts_of(without_bytes(10)))) == [("no_line_break", "warning")]
    assert not list(line_break(facts_of(small_keys())))


@pytest.mark.parametrize(
    ("name", "severity"),
    [("gemma4", "warning"), ("plamo2", "error"), ("plamo3", "error"), ("spm", "warning"), ("rwkv", None)],
)
@pytest.mark.parametrize("kind", [TokenType.NORMAL, TokenType.CONTROL])
def test_bytes_of_another_type(name: str, severity: str | None, kind: TokenType) -> None:
    with GGUFFile(ROOT / "fixtures" / "vocabs" / f"{name}.gguf") as file:
        types = list(file[K.TOKEN_TYPE])
        assert not list(byte_types(Facts(file, None)))
        lost = [int(kind) if each == TokenType.BYTE else each for each in types]
        model = Facts(file, {K.TOKEN_TYPE: lost})
        findings = list(byte_types(model))
        assert found(findings) == ([("byte_type", severity)] if severity else [])
        if severity:
            of_bytes = [token for token, each in enumerate(types) if each == TokenType.BYTE]
            assert findings[0].fix == model.set_types(BYTE=of_bytes)
        if severity == "warning":  # otherwise there is no tokenizer
            assert not list(round_trips(model))  # which would say nothing else


@pytest.mark.parametrize(
    ("keys", "severity"),
    [
        ({}, "warning"),
        ({"general.name": "granite-embedding-311m"}, "note"),
        ({"bert.pooling_type": 1}, "note"),
    ],
)
def test_a_model_of_embeddings_may_have_bytes_as_normal_tokens(
    keys: Keys, severity: str, facts_of: FactsOf
) -> None:
    with GGUFFile(ROOT / "fixtures" / "vocabs" / "sarvam-moe.gguf") as file:
        own = {key: file[key] for key in file}
    types = [int(TokenType.NORMAL) if kind == TokenType.BYTE else kind for kind in own[K.TOKEN_TYPE]]
    model = facts_of({**own, K.TOKEN_TYPE: types, "general.architecture": "bert", **keys})
    [finding] = byte_types(model)
    assert (finding.id, finding.severity) == ("byte_type", severity)
    assert ("--set-token-type" in finding.fix) == (severity == "warning")
    assert not list(round_trips(model))
