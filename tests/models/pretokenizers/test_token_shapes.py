"""Shapes of tokens: every family cuts a token's text exactly where it cuts the token's shape."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic import CHARACTERS, bounded

from ggufbpe._util.unicode_classes import class_of
from ggufbpe.models.bpe.merge import byte_level
from ggufbpe.models.pretokenizers.registry import one_of_each
from ggufbpe.models.pretokenizers.splitter import splitter
from ggufbpe.models.pretokenizers.token_shapes import TokenShapes, token_texts

TEXTS = [
    *(
        "hello",
        " hello",
        " Hello",
        "'s",
        "'re",
        " don't",
        "'Straße",
        "é",
        " naïve",
        "的中国",
        "１２",
        "²³",
        "\u3000\u3000",
    ),
    *("1234", " 7", "\n\n", "  \t", "();\n", "//", "a", "aaaaaaa", "AAAAA", "x1", "“We", "—and", "<image>"),
]


@pytest.mark.parametrize("family", one_of_each())
def test_a_family_cuts_shapes_as_it_cuts_tokens(family: str) -> None:
    words = splitter(one_of_each()[family]).words
    for text in TEXTS:
        shapes = TokenShapes([byte_level(text)]).counts
        assert len(shapes) == (len(text) > 1), text
        assert all((len(words(shape)) > 1) == (len(words(text)) > 1) for shape in shapes), text


@bounded(300)
@given(
    st.lists(st.text(st.sampled_from(CHARACTERS), min_size=2, max_size=6)), st.sampled_from([*one_of_each()])
)
def test_as_many_tokens_are_cut_by_their_shapes(texts: list[str], family: str) -> None:
    words = splitter(one_of_each()[family]).words
    telling = [text for text in texts if not any(class_of(ord(char)) == "M" for char in text)]
    counts = TokenShapes(map(byte_level, texts)).counts
    assert counts.total() == len(telling)
    cut = sum(count for shape, count in counts.items() if len(words(shape)) > 1)
    assert cut == sum(len(words(text)) > 1 for text in telling)


def test_the_first_token_of_a_shape() -> None:
    tokens = ["the", "cat", "dog", "12", "45", "34", "Ġcat"]
    shapes = TokenShapes(tokens)
    assert shapes.counts == Counter({"aaa": 3, "00": 3, " aaa": 1})
    assert shapes.first_tokens({"aaa", "00"}) == {"aaa": "cat", "00": "12"}
    assert shapes.first_tokens(()) == {}


def test_texts_of_tokens() -> None:
    assert token_texts([byte_level(text) for text in TEXTS]) == TEXTS
    assert token_texts([byte_level(" é")[:2], "a b"]) == [" \udcc3", "a\udcfeb"]
    assert token_texts([]) == []
