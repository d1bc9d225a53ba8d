"""The name of the pre-tokenizer: missing, unknown, or not the one that the tokens were made with."""

from __future__ import annotations

import pytest
from small_models import FactsOf, K, facts_of, family_keys, found, known_family, small_keys

from ggufbpe.analysis.doctor.bos_checks import bos_is_eos
from ggufbpe.analysis.doctor.facts import Facts
from ggufbpe.analysis.doctor.pretokenizer_checks import hugging_face_splitting, pre_tokenizer
from ggufbpe.gguf.constants import GGUFValueType
from ggufbpe.models.bpe.merge import byte_level
from ggufbpe.models.pretokenizers.families import Evidence, Family

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


def test_tokens_that_are_spelt_twice_in_bytes_point_to_none(facts_of: FactsOf) -> None:
    """Every pre-tokenizer cuts most of them, so that the likeliest one is no better than any other."""
    keys = small_keys(pre="llama-bpe", merges=["1 2", "12 3", "123 4", "1234 5", "12345 6"])
    keys[K.LIST] = list(map(byte_level, keys[K.LIST]))
    assert not list(pre_tokenizer(facts_of(keys)))


def test_a_name_that_the_tokens_contradict(facts_of: FactsOf) -> None:
    merges = ["1 2", "12 3", "123 4", "1234 5", "12345 6"]  # llama-bpe cuts numbers after three digits
    [finding] = pre_tokenizer(facts_of(small_keys(pre="llama-bpe", merges=merges)))
    assert (finding.id, finding.severity) == ("pre_doubtful", "warning")
    assert "which cuts 3 of " in finding.evidence
    assert "'1234'" in finding.evidence


@pytest.mark.parametrize(
    ("pre", "add_bos", "expected"),
    [
        ("qwen2", None, []),
        ("llama-bpe", None, ["pre_doubtful"]),  # which adds BOS, so that this is no finding of its own
        ("llama-bpe", True, ["pre_doubtful", "bos_is_eos"]),
        ("qwen2", True, ["bos_is_eos"]),
    ],
)
def test_the_pre_tokenizer_of_another_family(
    pre: str,
    add_bos: bool | None,
    expected: list[str],
    facts_of: FactsOf,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Qwen 2 has no tokens of two or three digits, so that llama-bpe cuts none of its tokens."""
    keys = small_keys(pre=pre, add_bos_token=add_bos)
    model = facts_of({**keys, K.EOS_ID: keys[K.BOS_ID]})
    likely, other = Family("qwen2", 1.0, 9, 9, (), ()), Family("llama-bpe", 3.0, 9, 9, (), ("two digits",))
    monkeypatch.setattr(Facts, "family", known_family("Qwen 2"))
    monkeypatch.setattr(Facts, "evidence", Evidence(pre, frozenset(), [likely, other], [likely], "qwen2"))
    findings = [*pre_tokenizer(model), *bos_is_eos(model)]
    assert [finding.id for finding in findings] == expected
    if pre == "llama-bpe":
        assert findings[0].fix == model.set(K.PRE, "qwen2")
        assert findings[0].what == "This is a Qwen 2 vocabulary, but the file says 'llama-bpe'."


@pytest.mark.parametrize(
    ("likely", "other", "expected"),
    [
        (
            Family("qwen2", 1.0, 9, 9, (), ("line break and spaces",)),
            Family("llama-bpe", 3.0, 9, 9, (), ("two digits",)),
            r" It also allows tokens such as '\n ', but the vocabulary has few of that kind or none. The next best is "
            "llama-bpe, which also allows tokens such as '10', but the vocabulary has few of that kind or none.",
        ),
        (
            Family("qwen2", 0.0, 9, 9, (), ()),
            Family("llama-bpe", 1.0, 8, 9, (), ()),
            " The next best is llama-bpe, which cuts 1 token.",
        ),
    ],
)
def test_what_the_tokens_point_to_in_words(likely: Family, other: Family, expected: str) -> None:
    found = Evidence("", frozenset(), [likely, other], [likely], "qwen2")
    first, *_, last = found.sentence.partition("9 of 9 tokens whole.")
    assert first.startswith("The tokens point to qwen2")
    assert last == expected


def test_the_family_is_named_where_it_is_known(facts_of: FactsOf) -> None:
    model = facts_of(family_keys("DeepSeek Coder", pre=None))
    [finding] = pre_tokenizer(model)
    assert (
        finding.what == "This is a DeepSeek Coder vocabulary, but the file does not name its pre-tokenizer."
    )


def test_the_family_decides_where_merges_are_missing(facts_of: FactsOf) -> None:
    keys = family_keys("Falcon", pre="default")
    keys[K.LIST][100:103] = ["a", "b", "ab"]
    keys[K.MERGES] = ["a b"]
    model = facts_of(keys)
    assert (
        model.evidence.name != "falcon"
    )  # without numbers among the tokens, one that cuts numbers is likelier
    [finding] = pre_tokenizer(model)
    assert (finding.id, finding.severity) == ("pre_default", "warning")
    assert f"--set {K.PRE}=falcon " in finding.fix
    assert finding.evidence.endswith(" falcon keeps as many whole, and all files of the family have it.")


@pytest.mark.parametrize(("pre", "differs"), [("tekken", True), ("gpt-2", False), ("no such name", False)])
def test_splitting_that_hugging_face_does_otherwise(pre: str, differs: bool, facts_of: FactsOf) -> None:
    findings = list(hugging_face_splitting(facts_of(small_keys(pre=pre))))
    assert found(findings) == [("hf_splitting", "note")] * differs
    if differs:
        assert findings[0].evidence.startswith("tekken differs in Hugging Face's tokenizers. ")
