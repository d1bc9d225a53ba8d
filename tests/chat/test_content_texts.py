"""Texts in a message's content: found, and cut to a number of tokens."""

from __future__ import annotations

import random
from typing import Any

import pytest
from conftest import GPT2

from ggufbpe import Tokenizer
from ggufbpe.chat.content_texts import cut_content, texts_of

TOK = Tokenizer.from_gguf(GPT2)
IMAGE = {"type": "image_url", "image_url": {"url": "data:,"}}


def text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ("one", ["one"]),
        ([text_part("one"), IMAGE, text_part("two")], ["one", "two"]),
        ([IMAGE, {"type": "text", "text": 5}, "bare"], []),
        (None, []),
        (5, []),
        (b"one", []),
    ],
)
def test_texts_of(content: Any, texts: list[str]) -> None:
    assert texts_of(content) == texts


def test_the_longest_text_is_cut_first_and_other_parts_stay() -> None:
    content = [text_part("short one"), IMAGE, text_part("word " * 100)]
    cut = cut_content(TOK, content, 20, "middle", "…")
    assert cut is not None
    assert cut[0][:2] == content[:2]
    first, last = texts_of(cut[0])
    assert TOK.count(first) + TOK.count(last) == 20
    assert cut[1] == TOK.count("short one") + TOK.count("word " * 100) - 20
    assert content[2] == text_part("word " * 100)  # what was given has not changed


def test_a_text_and_one_part_are_cut_alike() -> None:
    text = "word " * 100
    as_text, as_part = (cut_content(TOK, given, 10, "right", "…") for given in (text, [text_part(text)]))
    assert as_text is not None
    assert as_part is not None
    assert (texts_of(as_part[0]), as_part[1]) == ([as_text[0]], as_text[1])
    assert as_text[0] == TOK.truncate(text, 10, marker="…")


def test_random_contents_fit_unless_every_text_is_a_marker() -> None:
    dice = random.Random(5)
    marker = "[…]"
    least = TOK.count(marker)
    for _ in range(300):
        texts = [
            " ".join(dice.choices(["word", "Straße", "日本語", "x1"], k=dice.randrange(30))) for _ in range(3)
        ]
        content, size = [*map(text_part, texts), IMAGE], dice.randrange(least, 60)
        before = sum(map(TOK.count, texts))
        cut = cut_content(TOK, content, size, dice.choice(["left", "right", "middle"]), marker)
        after = texts_of(content if cut is None else cut[0])
        total = sum(map(TOK.count, after))
        assert before - total == (0 if cut is None else cut[1])
        assert total <= size or all(TOK.count(text) <= least for text in after)
        assert (cut is None) == (before <= size) or total > size
