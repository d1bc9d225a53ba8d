"""WordPiece: normalized characters, and the longest tokens of each word."""

from __future__ import annotations

from typing import Any

import pytest
from synthetic import make_vocabulary

from ggufbpe.models.format_detection import Looks
from ggufbpe.models.wordpiece import BertNormalizer, LongestMatch, WordPieceModel, WordPieceText

VOCABULARY = make_vocabulary(
    ["[UNK]", "▁hel", "▁hello", "lo", "l", "▁,", "▁中", "▁", "x"],
    model="bert",
    special_ids={"unk": 0},
)

NORMALIZED = {  # with lower case and without accents, and as they are
    "Ça va": ("ca va", "Ça va"),
    "e\u0301x": ("ex", "e\u0301x"),
    "a,b": ("a , b", "a , b"),
    "中a": (" 中 a", " 中 a"),
    "a\t\u00a0b": ("a  b", "a  b"),
    "a\0\u200d\ufffdb": ("ab", "ab"),
    "$+a": (" $  + a", " $  + a"),
    "€a": ("€a", "€a"),  # a symbol beyond ASCII does not stand alone
    "\U0002b820": ("\U0002b820", "\U0002b820"),  # in no range: a slip in HF tokenizers that llama.cpp follows
    "\U0002b920": (" \U0002b920 ", " \U0002b920 "),
}


@pytest.mark.parametrize("text", NORMALIZED)
def test_normalizer(text: str) -> None:
    changed, kept = (BertNormalizer(lowercase=flag, strip_accents=flag) for flag in (True, False))
    assert (text.translate(changed), text.translate(kept)) == NORMALIZED[text]


REASONS = {
    "\n": ("white_space",),
    "\u0301": ("accents",),
    "\u200d": ("control",),
    "À": ("accents", "lower_case"),
    "A": ("lower_case",),
    ",": ("alone",),
}


@pytest.mark.parametrize("char", REASONS)
def test_reasons(char: str) -> None:
    assert BertNormalizer(lowercase=True, strip_accents=True).reasons(ord(char)) == REASONS[char]


WORDS = {"hello": [2], "hell": [1, 4], "hellolox": [2, 3, 8], "hxy": [0], "xx": [7, 8, 8], "中": [6]}


@pytest.mark.parametrize("word", WORDS)
def test_longest_match(word: str) -> None:
    assert list(LongestMatch(VOCABULARY).ids(word)) == WORDS[word]


def test_text() -> None:
    text = WordPieceText(VOCABULARY)
    assert text.words("Héllo, 中x".encode()) == ["hello", ",", "中", "x"]
    assert [list(run) for run in text.runs(b"hello hell")] == [[(2,), (1, 4)]]
    assert list(text.spans("HÉLlo,".encode())) == [(2, 0, 6), (5, 6, 7)]  # É has two bytes
    assert list(text.spans("x \u0301x".encode())) == [(7, 0, 0), (8, 0, 1), (7, 4, 4), (8, 4, 5)]


def test_model() -> None:
    model = WordPieceModel()
    assert model.line_break(VOCABULARY, [5]) == 0  # the default padding token
    looks: dict[str, Any] = {"has_bert_names": True, "continues_words": True}
    assert model.recognizes(Looks(**looks))
    assert not model.recognizes(Looks(**looks, has_merges=True))
    assert not model.recognizes(Looks(continues_words=True))
