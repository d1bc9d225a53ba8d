"""The name of the pre-tokenizer: missing, unknown, or not the one that the tokens were made with."""

from __future__ import annotations

import pytest
from small_models import FactsOf, facts_of, family_keys, found, small_keys

from ggufbpe.analysis.doctor.pretokenizer_checks import hugging_face_splitting, pre_tokenizer
from ggufbpe.gguf.constants import GGUFValueType

__all__ = ["facts_of"]  # the fixture


@pytest.mark.parametrize(
    ("pre", "expected"),
    [
        ("gpt-2", []),
        (None, [("pre_missing", "warning")]),
        ("", [("pre_missing", "warning")]),
        ("default", [("pre_default", "warning")]),
        ("gpt-22", [("pre_unknown", "error")]),
        ((5, GGUFValueType.UINT32), []),  # a wrong type, which another check reports
    ],
)
def test_names(pre: object, expected: list[tuple[str, str]], facts_of: FactsOf) -> None:
    assert found(pre_tokenizer(facts_of(small_keys(pre=pre)))) == expected


def test_a_name_that_the_tokens_contradict(facts_of: FactsOf) -> None:
    merges = ["1 2", "12 3", "123 4", "1234 5", "12345 6"]  # llama-bpe cuts numbers after three digits
    [finding] = pre_tokenizer(facts_of(small_keys(pre="llama-bpe", merges=merges)))
    assert (finding.id, finding.severity) == ("pre_doubtful", "warning")
    assert "which cuts 3 of " in finding.evidence
    assert "'1234'" in finding.evidence


def test_the_family_is_named_where_it_is_known(facts_of: FactsOf) -> None:
    model = facts_of(family_keys("DeepSeek Coder", pre=None))
    [finding] = pre_tokenizer(model)
    assert (
        finding.what == "This is a DeepSeek Coder vocabulary, but the file does not name its pre-tokenizer."
    )


@pytest.mark.parametrize(("pre", "differs"), [("tekken", True), ("gpt-2", False), ("no such name", False)])
def test_splitting_that_hugging_face_does_otherwise(pre: str, differs: bool, facts_of: FactsOf) -> None:
    findings = list(hugging_face_splitting(facts_of(small_keys(pre=pre))))
    assert found(findings) == [("hf_splitting", "note")] * differs
    if differs:
        assert findings[0].evidence.startswith("tekken differs in Hugging Face's tokenizers. ")
