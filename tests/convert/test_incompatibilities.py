"""What a format cannot express, found in small vocabularies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from synthetic import byte_tokens, make_vocabulary

from ggufbpe.convert import incompatibilities
from ggufbpe.convert.incompatibilities import Incompatibility
from ggufbpe.models.vocabulary import CONTROL, LSTRIP, NORMAL, RSTRIP, USER_DEFINED, Vocabulary


def special(*texts: str, kind: int = CONTROL) -> Vocabulary:
    """A vocabulary of special tokens."""
    return make_vocabulary(texts, attributes=dict.fromkeys(texts, kind))


def numbers(found: Iterator[Incompatibility]) -> list[tuple[str, int]]:
    """The names and numbers of incompatibilities."""
    return [(each.name, each.number) for each in found]


def test_usable_merges() -> None:
    vocabulary = make_vocabulary(["a", "b", "ab"], merges=["a b", "a b", "a c", " b", "x"])
    merges = incompatibilities.usable_merges(vocabulary)
    assert merges == incompatibilities.Merges([("a", "b")], ["a c"])
    assert numbers(incompatibilities.dropped_merges(merges)) == [("merges_without_tokens", 1)]


def test_bytes() -> None:
    tokens = byte_tokens()
    whole = make_vocabulary(tokens)
    assert incompatibilities.bytes_without_tokens(whole) == []
    without = make_vocabulary([text for byte, text in enumerate(tokens) if byte not in (1, 2, 3, 9, 0xC0)])
    assert incompatibilities.bytes_without_tokens(without) == [1, 2, 3, 9]  # 0xC0 is never part of UTF-8
    [missing] = incompatibilities.missing_bytes(without, "so")
    assert "the bytes 0x01 to 0x03, 0x09 of UTF-8" in missing.what
    spm = make_vocabulary(
        ["a", *(f"<0x{byte:02X}>" for byte in range(256) if byte != 0x61)], flags={"byte_encode": False}
    )
    assert list(incompatibilities.bytes_that_fail(spm)) == []  # `a` is a token by itself


OVERLAPPING = {
    ("<ab>", "b>cde>"): 1,  # of `<ab>cde>`, llama.cpp takes the second
    ("<abcde>", "e>c"): 0,  # the first is longer
    ("<ab>", "<cd>"): 0,
}


@pytest.mark.parametrize("texts", OVERLAPPING)
def test_overlapping_tokens(texts: tuple[str, ...]) -> None:
    found = numbers(incompatibilities.overlapping_tokens(special(*texts)))
    assert found == [("overlapping_special_tokens", 1)] * OVERLAPPING[texts]


HIDDEN = {("<|x|>", "x"): 1, ("<|x|>", "|>y"): 1, ("<|x|>", "<|x|>y"): 0, ("<|x|>", "y"): 0}


@pytest.mark.parametrize("texts", HIDDEN)
def test_hidden_tokens(texts: tuple[str, str]) -> None:
    control, user_defined = texts
    vocabulary = make_vocabulary(texts, attributes={control: CONTROL, user_defined: USER_DEFINED})
    found = numbers(incompatibilities.hidden_tokens(vocabulary))
    assert found == [("user_defined_tokens_in_control_tokens", 1)] * HIDDEN[texts]


def test_white_space_beside_tokens() -> None:
    vocabulary = make_vocabulary(
        ["<a>", "<b>", "<c>", "d"],
        attributes={
            "<a>": CONTROL | LSTRIP,
            "<b>": USER_DEFINED | RSTRIP,
            "<c>": CONTROL,
            "d": NORMAL | LSTRIP,
        },
    )
    assert numbers(incompatibilities.stripped_spaces(vocabulary)) == [("white_space_beyond_ascii", 2)]
    assert numbers(incompatibilities.kept_spaces(vocabulary, "x")) == [("white_space_beside_tokens", 2)]
    assert numbers(incompatibilities.kept_spaces(vocabulary, "x", unless=CONTROL)) == [
        ("white_space_beside_tokens", 1)
    ]
    assert numbers(incompatibilities.user_defined_prefixes(vocabulary)) == [("user_defined_prefixes", 1)]


SPACES: list[tuple[dict[str, Any], int]] = [
    ({"add_space_prefix": True}, 1),
    ({"add_space_prefix": True, "remove_extra_whitespaces": True}, 0),
    ({}, 0),
]


@pytest.mark.parametrize(("flags", "number"), SPACES)
def test_texts_of_spaces(flags: dict[str, Any], number: int) -> None:
    found = incompatibilities.texts_of_spaces(make_vocabulary(["a"], **flags))
    assert numbers(found) == [("texts_of_spaces", 1)] * number


def test_about_tokens() -> None:
    [one] = incompatibilities.about_tokens("name", ["▁a"], "new")
    assert one == ("name", "1 token, such as ' a', is new", 1)
    [two] = incompatibilities.about_tokens("name", ["a", "b"], "new names", ("has", "have"))
    assert two == ("name", "2 tokens, such as 'a', have new names", 2)
    assert not [*incompatibilities.about_tokens("name", [], "new")]
