"""The tokenizer model that tokens were made for."""

from __future__ import annotations

from pathlib import Path

import pytest
from real_vocabularies import cached
from small_models import K, Keys

from ggufbpe.analysis.doctor.examination import doctor
from ggufbpe.analysis.doctor.facts import Facts
from ggufbpe.gguf.reader import GGUFFile


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({K.MODEL: "gpt2"}, ["gemma4"]),
        ({K.MODEL: "llama"}, ["gemma4"]),
        ({K.MODEL: "gpt2", K.PRE: "gemma4"}, []),  # which splits alike
        ({K.MERGES: None}, []),
        ({K.MODEL: "gpt2", K.MERGES: None}, []),
    ],
)
def test_a_known_family_decides(changes: Keys, expected: list[str]) -> None:
    with GGUFFile(cached("gemma-4")) as file:
        assert Facts(file, changes).likely_models == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_gemma_4_of_another_name_needs_no_other_change(name: str) -> None:
    found = doctor(cached("gemma-4"), overrides={K.MODEL: name})
    assert [each.id for each in found.findings if each.severity != "note"] == ["model_doubtful"]
    assert f"--set {K.MODEL}=gemma4 -o" in found.fix


def test_tokens_tell_the_model_that_a_file_does_not_name(gpt2_path: Path) -> None:
    found = doctor(gpt2_path, overrides={K.MODEL: None})
    assert [each.id for each in found.findings if each.severity != "note"] == ["missing_key"]
    assert found.fix.endswith(f"--set {K.MODEL}=gpt2 -o fixed.gguf")


@pytest.mark.parametrize("name", ["whitespace", "gemma4"])  # neither writes bytes in GPT-2's alphabet
def test_byte_level_tokens_are_those_of_gpt2(name: str, gpt2_path: Path) -> None:
    found = doctor(gpt2_path, overrides={K.MODEL: name})
    assert "model_doubtful" in [each.id for each in found.findings]
    assert found.fix.endswith(f"--set {K.MODEL}=gpt2 -o fixed.gguf")


@pytest.mark.slow
def test_what_one_change_reveals_after_another_is_mended_as_well() -> None:
    """The model reveals that the pre-tokenizer is missing, and that that BOS is: every text then began with a comma."""
    keys = (K.MODEL, K.PRE, K.BOS_ID)
    found = doctor(cached("llama-bpe"), overrides=dict.fromkeys(keys))
    assert found.proposal is not None
    assert found.proposal.change.keys == {K.MODEL: "gpt2", K.PRE: "llama-bpe", K.BOS_ID: "128000"}


@pytest.mark.slow
def test_no_command_brings_back_the_merges_of_gemma_4() -> None:
    found = doctor(cached("gemma-4"), overrides={K.MERGES: None})
    assert (found.findings[0].id, found.findings[0].where.key, found.fix) == ("missing_key", K.MERGES, "")
