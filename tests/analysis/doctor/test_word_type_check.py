"""Ordinary words that have the type of a marker."""

from __future__ import annotations

import pytest
from conftest import ROOT
from real_vocabularies import cached
from small_models import CONTROL, MERGES, NORMAL, UNUSED, FactsOf, K, facts_of, found, small_keys

from ggufbpe.analysis.doctor.facts import Facts
from ggufbpe.analysis.doctor.word_type_check import word_types
from ggufbpe.gguf.constants import TokenType
from ggufbpe.gguf.reader import GGUFFile

__all__ = ["facts_of"]  # the fixture

USER_DEFINED = int(TokenType.USER_DEFINED)
OF_TAG = (*MERGES, "< he", "<he >", "< s", "<s >")  # text that looks like a marker


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("hello", NORMAL, []),
        ("hello", CONTROL, [("word_type", "warning")]),
        ("Ġworld", UNUSED, [("word_type", "warning")]),
        ("hello", USER_DEFINED, [("word_type", "note")]),  # which may be meant
        ("<he>", CONTROL, []),
        ("<s>", CONTROL, []),
        ("<|im_start|>", CONTROL, []),  # which no merge makes
    ],
)
def test_types_of_words(text: str, kind: int, expected: list[tuple[str, str]], facts_of: FactsOf) -> None:
    keys = small_keys(merges=OF_TAG)
    token = keys[K.LIST].index(text)
    keys[K.TOKEN_TYPE][token] = kind
    model = facts_of(keys)
    findings = list(word_types(model))
    assert found(findings) == expected
    assert all(finding.fix.endswith(model.set_types(NORMAL=[token])) for finding in findings)


def test_a_special_id_is_left_to_other_checks(facts_of: FactsOf) -> None:
    keys = small_keys()
    token = keys[K.LIST].index("hello")
    keys[K.TOKEN_TYPE][token], keys[K.EOS_ID] = CONTROL, token
    assert not list(word_types(facts_of(keys)))


@pytest.mark.parametrize("name", ["spm", "wpm", "rwkv", "plamo2", "jina-bert-v3"])
@pytest.mark.parametrize("kind", [CONTROL, UNUSED, USER_DEFINED])
def test_most_tokens_of_a_model_without_merges_are_words(name: str, kind: int) -> None:
    with GGUFFile(ROOT / "fixtures" / "vocabs" / f"{name}.gguf") as file:
        types = file[K.TOKEN_TYPE]
        assert not list(word_types(Facts(file, None)))
        [finding] = word_types(Facts(file, {K.TOKEN_TYPE: [kind] * len(types)}))
    assert (finding.id, finding.severity) == ("word_type", "note" if kind == USER_DEFINED else "warning")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "words"), [("llama-spm", range(259, 32000)), ("bert-bge", range(999, 30522))]
)
def test_words_are_told_from_markers_bytes_and_padding(name: str, words: range) -> None:
    with GGUFFile(cached(name)) as file:
        model = Facts(file, {K.TOKEN_TYPE: [CONTROL] * len(file[K.TOKEN_TYPE])})
        [finding] = word_types(model)
        assert finding.fix == model.set_types(NORMAL=words)
