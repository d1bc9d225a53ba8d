"""Words of texts, and their symbols."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest

from ggufbpe.data.training.word_counts import Splitting, count_words, splitting

WORDS = {  # a splitting, a text: its words, with those that are dropped in the end
    ("gpt-2", "Hi, you  there"): ["Hi", ",", " you", " ", " there"],
    ("none", "a b\n\nc"): ["a b\n", "\n", "c"],
    ("none", ""): [],
    ("words", "naïve, 12x\t…"): ["naïve", ",", "12x", "…"],
    ("gemma4", "a b\n"): ["a▁b", "\n"],
}


@pytest.mark.parametrize("case", WORDS)
def test_words(case: tuple[str, str]) -> None:
    pre, text = case
    split = splitting(pre, None)
    assert [word for word in split.words(text) if not split.drops(word)] == WORDS[case]


def test_symbols() -> None:
    assert Splitting("gpt-2", "bytes").symbols(" é") == ["Ġ", "Ã", "©"]
    assert Splitting("none", "chars").symbols(" é") == [" ", "é"]


def test_count_words() -> None:
    counts = count_words(["low low\n", "lower low"], splitting("words", "chars"), None)
    assert list(counts.items()) == [("low", 3), ("lower", 1)]

    def cut(text: str) -> Iterable[str]:
        return text.split("<s>")

    counts = count_words(["a<s>b", "<s>a"], splitting("none", None), cut)
    assert list(counts.items()) == [("a", 2), ("b", 1)]


UNITS = [
    ("gpt-2", None, "bytes"),
    ("gemma4", None, "chars"),
    ("words", "chars", "chars"),
    ("none", None, "bytes"),
]


@pytest.mark.parametrize(("pre", "units", "expected"), UNITS)
def test_units(pre: str, units: str | None, expected: str) -> None:
    assert splitting(pre, units) == Splitting(pre, expected)


REFUSED = {
    ("gpt-22", None): "unknown pre-tokenizer 'gpt-22' (near: gpt-2, gpt-4o",
    ("gpt-2", "words"): "units are bytes or chars, not 'words'",
    ("gemma4", "bytes"): "gemma4 does not write text as bytes; its units are chars",
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: tuple[str, str | None]) -> None:
    with pytest.raises(ValueError, match=re.escape(REFUSED[case])):
        splitting(*case)
