"""Ordinary words that have the type of a marker."""

from __future__ import annotations

import pytest
from conftest import ROOT
from real_vocabularies import cached
from small_models import (
    CONTROL,
    MERGES,
    NORMAL,
    SPECIAL,
    UNUSED,
    FactsOf,
    K,
    facts_of,
    found,
    scored_keys,
    small_keys,
)

from ggufbpe.analysis.doctor.advice import advised
from ggufbpe.analysis.doctor.checks import findings_of
from ggufbpe.analysis.doctor.facts import Facts
from ggufbpe.analysis.doctor.word_type_check import word_types
from ggufbpe.gguf.constants import TokenType
from ggufbpe.gguf.reader import GGUFFile
from ggufbpe.models.bpe.merge import BYTE_CHARS

__all__ = ["facts_of"]  # the fixture

USER_DEFINED, UNKNOWN = int(TokenType.USER_DEFINED), int(TokenType.UNKNOWN)
OF_TAG = (*MERGES, "< he", "<he >", "< s", "<s >")  # text that looks like a marker


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("hello", NORMAL, []),
        ("hello", CONTROL, [("word_type", "warning")]),
        ("Ġworld", UNUSED, [("word_type", "warning")]),
        ("Ġworld", UNKNOWN, [("word_type", "warning")]),
        ("!", CONTROL, [("word_type", "warning")]),  # a byte that merges begin with
        ("Ã", CONTROL, [("word_type", "warning")]),
        ("õ", CONTROL, []),  # a byte that UTF-8 lacks
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


@pytest.mark.parametrize(
    ("text", "kind", "is_found"),
    [
        ("Section 5A", CONTROL, True),
        ("assessee", CONTROL, True),
        ("纳税人识别号", CONTROL, True),
        ("Section 5A", USER_DEFINED, False),
        ("Section 5A", NORMAL, False),
        ("sop", CONTROL, False),  # a marker of ChatGLM
        ("ACGTAC", CONTROL, False),
        ("fim_prefix", CONTROL, False),
        (">>TITLE<<", CONTROL, False),
        ("|||IP_ADDRESS|||", CONTROL, False),
        ("<|assistant|>", CONTROL, False),
        ("[gMASK]", CONTROL, False),
        ("200019", CONTROL, False),
        ("endoftext", CONTROL, False),
        ("reserved 17", CONTROL, False),
    ],
)
def test_added_words(text: str, kind: int, is_found: bool, facts_of: FactsOf) -> None:
    """llama.cpp issue 15842: answers lacked the words that a fine-tune had added."""
    model = facts_of(small_keys(text, kind=kind))
    findings = list(word_types(model))
    assert found(findings) == [("word_type", "warning")] * is_found
    assert all(finding.fix == model.set_types(USER_DEFINED=[len(model.tokens) - 1]) for finding in findings)


def test_words_that_the_chat_template_writes_are_markers(facts_of: FactsOf) -> None:
    model = facts_of(
        {**small_keys("begin message", kind=CONTROL), K.CHAT_TEMPLATE: "begin message{{ messages }}"}
    )
    assert not list(word_types(model))


def test_one_command_mends_many_added_words(facts_of: FactsOf) -> None:
    model = facts_of(small_keys(*(f"Section {number}" for number in range(100)), kind=CONTROL))
    _, proposal = advised(model, findings_of(model))
    assert proposal is not None
    assert set(proposal.change.types.values()) == {"USER_DEFINED"}


@pytest.mark.parametrize("kind", [TokenType.CONTROL, TokenType.USER_DEFINED])
def test_one_command_mends_a_model_whose_tokens_all_are_special(kind: TokenType, facts_of: FactsOf) -> None:
    """Where the bytes stayed special, every text became single characters."""
    keys = small_keys()
    right = keys[K.TOKEN_TYPE]
    model = facts_of({**keys, K.TOKEN_TYPE: [int(kind)] * len(right)})
    _, proposal = advised(model, findings_of(model))
    assert proposal is not None
    types = [proposal.change.types.get(token, kind.name) for token in range(len(right))]
    left = {BYTE_CHARS[byte] for byte in (0xC0, 0xC1, *range(0xF5, 0x100))}  # which are in no text
    left |= {*SPECIAL} if kind is TokenType.USER_DEFINED else set()  # markers may be shown
    wrong = [keys[K.LIST][at] for at, kind in enumerate(right) if TokenType[types[at]] != kind]
    assert left.issuperset(wrong)


def test_a_special_id_is_left_to_other_checks(facts_of: FactsOf) -> None:
    keys = small_keys()
    token = keys[K.LIST].index("hello")
    keys[K.TOKEN_TYPE][token], keys[K.EOS_ID] = CONTROL, token
    assert not list(word_types(facts_of(keys)))


@pytest.mark.parametrize("name", ["wpm", "rwkv", "plamo2"])
@pytest.mark.parametrize("kind", [CONTROL, UNUSED, USER_DEFINED])
def test_most_tokens_of_a_model_without_merges_are_words(name: str, kind: int) -> None:
    with GGUFFile(ROOT / "fixtures" / "vocabs" / f"{name}.gguf") as file:
        types = file[K.TOKEN_TYPE]
        assert not list(word_types(Facts(file, None)))
        [finding] = word_types(Facts(file, {K.TOKEN_TYPE: [kind] * len(types)}))
    assert (finding.id, finding.severity) == ("word_type", "warning")


def numbered(form: str, count: int) -> list[str]:
    return [form.format(number) for number in range(count)]


WORDS = 900
OF_SPEECH = scored_keys(numbered("▁word{}", WORDS), numbered("<audio_{}>", 1500))
FIRST = OF_SPEECH[K.LIST].index("▁word0")


@pytest.mark.parametrize("model", ["llama", "t5"])
def test_more_markers_than_words_may_be_control_tokens(model: str, facts_of: FactsOf) -> None:
    """As in models of speech and images."""
    assert not list(word_types(facts_of({**OF_SPEECH, K.MODEL: model})))


@pytest.mark.parametrize("kind", [CONTROL, USER_DEFINED])
@pytest.mark.parametrize(
    ("words", "of_kind", "is_found"),
    [(900, 450, False), (900, 451, True), (40, 40, True), (39, 39, False), (0, 0, False)],
)
def test_only_the_types_of_most_words_tell_that_they_are_lost(
    words: int, of_kind: int, kind: int, is_found: bool, facts_of: FactsOf
) -> None:
    keys = scored_keys(numbered("▁word{}", words), numbered("<audio_{}>", 1500))
    lost = range(FIRST, FIRST + of_kind)
    keys[K.TOKEN_TYPE][lost.start : lost.stop] = [kind] * of_kind
    model = facts_of(keys)
    fixes = [finding.fix for finding in word_types(model)]
    assert len(fixes) == is_found
    assert all(fix.endswith(model.set_types(NORMAL=lost)) for fix in fixes)


def test_what_looks_like_a_marker_between_words_is_text(facts_of: FactsOf) -> None:
    """As Baichuan's "<h2>"; what stands before or behind all words is a marker."""
    words = numbered("▁word{}", WORDS)
    keys = scored_keys(["[control_1]", *words[:1], "<h2>", *words[1:]], ["<audio_1>"])
    keys[K.TOKEN_TYPE] = [CONTROL] * len(keys[K.LIST])
    model = facts_of(keys)
    [finding] = word_types(model)
    assert finding.fix == model.set_types(NORMAL=range(FIRST + 1, FIRST + WORDS + 2))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "words"), [("llama-spm", range(259, 32000)), ("bert-bge", range(999, 30522))]
)
def test_words_are_told_from_markers_bytes_and_padding(name: str, words: range) -> None:
    with GGUFFile(cached(name)) as file:
        model = Facts(file, {K.TOKEN_TYPE: [CONTROL] * len(file[K.TOKEN_TYPE])})
        [finding] = word_types(model)
        assert finding.fix == model.set_types(NORMAL=words)
