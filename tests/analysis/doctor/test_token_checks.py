"""Texts and types of tokens: duplicates, empty ones, padding, and markers that are stored as text."""

from __future__ import annotations

import pytest
from real_vocabularies import cached
from small_models import (
    CONTROL,
    NORMAL,
    SPECIAL,
    UNUSED,
    FactsOf,
    K,
    facts_of,
    family_keys,
    found,
    small_keys,
)

from ggufbpe.analysis.doctor.facts import Facts
from ggufbpe.analysis.doctor.token_checks import (
    control_shown,
    control_types,
    corrections,
    duplicates,
    empty_tokens,
    hidden_markers,
    is_name,
    lacks_merges,
    made_control,
    marker_like,
    padding_tokens,
)
from ggufbpe.gguf.constants import TokenType
from ggufbpe.gguf.reader import GGUFFile

__all__ = ["facts_of"]  # the fixture

USER_DEFINED = int(TokenType.USER_DEFINED)
SIZE = len(small_keys()[K.LIST])


def test_duplicates(facts_of: FactsOf) -> None:
    assert not list(duplicates(facts_of(small_keys("", "", kind=UNUSED))))  # which llama.cpp gives names
    [finding] = duplicates(facts_of(small_keys("Ġworld", "new", "Ġw", kind=NORMAL)))
    assert (finding.severity, finding.where.token) == ("error", SIZE)
    assert finding.detail == {"count": 2, "ids": [SIZE, SIZE + 2]}
    assert f"token {SIZE} is ' world', like token {SIZE - 4}." in finding.evidence


def test_empty_tokens(facts_of: FactsOf) -> None:
    assert not list(empty_tokens(facts_of(small_keys())))
    [finding] = empty_tokens(facts_of(small_keys("a b", "", "", kind=UNUSED)))
    assert finding.detail == {"count": 2, "ids": [SIZE + 1, SIZE + 2]}


def test_padding(facts_of: FactsOf) -> None:
    assert not list(padding_tokens(facts_of(small_keys("<|im_sep|>", "[PAD]"))))
    names = ("[PAD7]", "<unused3>", "<|reserved_special_token_1|>", "[unused1]")
    [finding] = padding_tokens(facts_of(small_keys(*names, kind=UNUSED)))
    assert finding.detail == {"count": 4, "ids": list(range(SIZE, SIZE + 4)), "types": ["UNUSED"]}


@pytest.mark.parametrize(
    ("kind", "text", "checks"),
    [
        (CONTROL, "<|reserved_special_token_5|>", []),
        (NORMAL, "<|reserved_special_token_5|>", [control_types]),
        (USER_DEFINED, "<|reserved_special_token_5|>", [control_shown]),
        (USER_DEFINED, "<think>", []),  # which a model was given in the place of a reserved token
        (NORMAL, "<think>", []),
    ],
)
def test_markers_of_a_family(kind: int, text: str, checks: list[object], facts_of: FactsOf) -> None:
    keys = family_keys("Llama 3")
    tokens = [token.strip("<>") if token.startswith("<filler") else token for token in keys[K.LIST]]
    keys[K.LIST] = [*tokens[:128002], "filler", "filler2", text]
    keys[K.TOKEN_TYPE] = [*keys[K.TOKEN_TYPE][:128002], NORMAL, NORMAL, kind]
    model = facts_of(keys)
    found_by = {check: list(check(model)) for check in (control_types, control_shown)}
    assert [check for check, findings in found_by.items() if findings] == checks
    for check in checks:
        assert found_by[check][0].fix == model.set_types(CONTROL=[128004])


@pytest.mark.slow
def test_markers_that_gemma_4_shows_are_no_control_tokens() -> None:
    with GGUFFile(cached("gemma-4")) as file:
        assert not list(hidden_markers(Facts(file, None)))
        types = file[K.TOKEN_TYPE]
        model = Facts(file, {K.TOKEN_TYPE: [CONTROL if kind == USER_DEFINED else kind for kind in types]})
        [finding] = hidden_markers(model)
        shown = [token for token, kind in enumerate(types) if kind == USER_DEFINED]
        assert finding.fix == model.set_types(USER_DEFINED=shown)


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        ("<|im_start|>", True),
        ("<｜end▁of▁sentence｜>", True),
        ("</s>", True),
        ("<start_of_turn>", True),
        ("[/INST]", True),
        ("[PAD7]", True),
        ("<b>", False),
        ("[0]", False),
        ("x<|im_start|>", False),
        ("<|a b|>", False),
    ],
)
def test_names_of_tokens_that_stand_for_no_text(token: str, expected: bool) -> None:
    assert is_name(token) is expected


@pytest.mark.parametrize(
    ("token", "kind", "merges", "is_found"),
    [
        ("<|sep|>", NORMAL, (), True),
        ("<|sep|>", CONTROL, (), False),
        ("<|reserved_9|>", NORMAL, (), False),  # padding
        ("<|eot_id|>", NORMAL, (), False),  # which llama.cpp makes a control token itself
        ("<s>", NORMAL, ("< s", "<s >"), False),  # text, which merges make
    ],
)
def test_markers_that_are_stored_as_text(
    token: str, kind: int, merges: tuple[str, ...], is_found: bool, facts_of: FactsOf
) -> None:
    model = facts_of(small_keys(merges=merges) if merges else small_keys(token, kind=kind))
    findings = list(control_types(model))
    assert found(findings) == [("control_type", "warning")] * is_found
    if is_found:
        assert findings[0].fix == model.set_types(CONTROL=[SIZE])


@pytest.mark.parametrize(
    ("tokens", "kind", "expected"),
    [
        (("<SEP>", "[X]", "<|b|>"), NORMAL, ["<SEP>", "[X]", "<|b|>"]),  # beside one with a usual name
        (("<SEP>", "[X]"), NORMAL, ["<SEP>", "[X]"]),  # beside special ones
        (("word", "<SEP>"), NORMAL, []),
        (("<SEP>", "<i>"), NORMAL, []),  # HTML
        (("<SEP>",), CONTROL, []),
    ],
)
def test_tokens_in_brackets_beside_markers_are_markers(
    tokens: tuple[str, ...], kind: int, expected: list[str], facts_of: FactsOf
) -> None:
    model = facts_of(small_keys(*tokens, kind=kind))
    named = [text for finding in control_types(model) for text in (finding.detail or {})["texts"]]
    assert named == expected


def test_markers_whatever_their_type(facts_of: FactsOf) -> None:
    model = facts_of(small_keys("<|sep|>", "<b>", "<s>", "<|x y|>", kind=CONTROL))
    assert [model.tokens[token] for token in marker_like(model)] == [*SPECIAL, "<|sep|>", "<s>"]
    html = facts_of(small_keys("<i>", "<s>"))  # plain HTML, as in Gemma's vocabulary
    assert [html.tokens[token] for token in marker_like(html)] == list(SPECIAL)


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (["<repo_name>", ">>x<<"], [0, 1]),
        (["<repo_name>", "word"], []),
        (["<repo_name>", "word", ">>x<<"], []),
        ([], []),
    ],
)
def test_names_before_the_bytes_are_markers_without_any_merge(
    first: list[str], expected: list[int], facts_of: FactsOf
) -> None:
    keys = small_keys(merges=["a b"])
    kinds = [NORMAL] * len(first) + keys[K.TOKEN_TYPE]
    model = facts_of({**keys, K.LIST: first + keys[K.LIST], K.TOKEN_TYPE: kinds})
    assert [token for token in marker_like(model) if token < len(first)] == expected


def test_vocabularies_without_merges_of_their_tokens() -> None:
    tokens = ["a", "b", "<x>", *(f"word{number}" for number in range(20))]
    assert lacks_merges(tokens, ())
    assert not lacks_merges(tokens, set(tokens))
    assert not lacks_merges(tokens, {f"word{number}" for number in range(19)})  # all but one of 23


def test_what_llama_cpp_corrects(facts_of: FactsOf) -> None:
    model = facts_of(small_keys("<|eot_id|>", kind=NORMAL))
    [finding] = made_control(model)
    assert (finding.where.token, finding.severity) == (SIZE, "note")
    assert finding.evidence.endswith("makes it a control token that ends a generation.")
    assert model.set_types(CONTROL=[SIZE]) in finding.fix
    assert not list(corrections(model))  # the same one is not told twice
    assert not list(made_control(facts_of(small_keys("<|eot_id|>"))))
    text = small_keys(merges=("< /", "</ s", "</s >"))  # as Qwen 2 has it: to other programs it is text, too
    [finding] = made_control(facts_of(text))
    assert finding.fix == "nothing to do"
    always = small_keys(pre="granite-embed-multi-311m", add_bos_token=False)
    [corrected] = corrections(facts_of(always))
    assert (corrected.id, corrected.detail) == ("corrected", {"id": "add_bos"})
