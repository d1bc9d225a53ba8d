"""The tokenizer model that tokens were made for."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import ROOT
from real_vocabularies import cached
from small_models import FactsOf, K, Keys, facts_of

from ggufbpe.analysis.doctor.examination import doctor
from ggufbpe.analysis.doctor.facts import Facts
from ggufbpe.analysis.doctor.likely_models import likely_models
from ggufbpe.gguf.constants import KEY_ARCHITECTURE
from ggufbpe.gguf.reader import GGUFFile

__all__ = ["facts_of"]  # the fixture

MERGES = ["▁ word"]
FALLING = [-float(index) for index in range(857)]


def spaced_keys(**keys: Any) -> Keys:
    """Words with U+2581 and all bytes, as in vocabularies that sentencepiece made."""
    tokens = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), *(f"▁word{at}" for at in range(600))]
    own = {"general.architecture": "llama", K.LIST: tokens, K.TOKEN_TYPE: [2] + [6] * 256 + [1] * 600}
    return {**own, **{f"tokenizer.ggml.{name}": value for name, value in keys.items()}}


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"model": "llama", "scores": FALLING}, []),
        ({"model": "t5", "scores": FALLING}, ["llama"]),
        ({"model": "gpt2", "scores": FALLING}, ["llama"]),
        ({"model": "gpt2", "merges": MERGES}, []),
        # merges are lost, or scores: nothing tells which
        ({"model": "gpt2"}, []),
        ({"model": "gpt2", "scores": [-1000.0] * 857}, []),
        ({"model": "gemma4", "scores": [-1000.0] * 857}, []),
        ({"model": "t5"}, ["llama"]),
        ({"model": "unheard-of", "scores": FALLING}, []),
    ],
)
def test_what_tokens_with_spaces_point_to(keys: Keys, expected: list[str], facts_of: FactsOf) -> None:
    assert likely_models(facts_of(spaced_keys(**keys))) == expected


@pytest.mark.parametrize(
    ("name", "named", "expected"),
    [
        *(("rwkv", named, ["rwkv"]) for named in ("gpt2", "llama", "t5", "bert")),
        *(
            (name, named, ["plamo2", "plamo3"])  # the converter of 0c1e57098 writes plamo2 for both
            for name in ("plamo2", "plamo3")
            for named in ("llama", "t5", "bert")
        ),
    ],
)
def test_names_and_escapes_tell_in_small_vocabularies_too(name: str, named: str, expected: list[str]) -> None:
    with GGUFFile(ROOT / "fixtures" / "vocabs" / f"{name}.gguf") as file:
        own = {KEY_ARCHITECTURE: name}
        assert likely_models(Facts(file, own)) == []
        assert likely_models(Facts(file, {**own, K.MODEL: named})) == expected


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
        assert likely_models(Facts(file, changes)) == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_gemma_4_of_another_name_needs_no_other_change(name: str) -> None:
    found = doctor(cached("gemma-4"), overrides={K.MODEL: name})
    assert [each.id for each in found.findings if each.severity != "note"] == ["model_doubtful"]
    assert f"--set {K.MODEL}=gemma4 -o" in found.fix


@pytest.mark.slow
def test_no_command_brings_back_the_merges_of_gemma_4() -> None:
    found = doctor(cached("gemma-4"), overrides={K.MERGES: None})
    assert (found.findings[0].id, found.findings[0].where.key, found.fix) == ("missing_key", K.MERGES, "")
