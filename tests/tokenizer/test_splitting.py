"""`split` covers a text exactly with parts that fit, at the strongest boundaries."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from budget_texts import KINDS, random_text, tokenizer_of_kind

from ggufbpe import BoundaryLevel
from ggufbpe.tokenizer.boundaries import BOUNDARIES
from ggufbpe.tokenizer.splitting import is_character_start

TOK = tokenizer_of_kind("gpt-2")


@pytest.mark.parametrize("kind", KINDS)
def test_parts_cover_the_text_and_fit(kind: str) -> None:
    tok, dice = tokenizer_of_kind(kind), random.Random(kind)
    for _ in range(40):
        text = random_text(dice, dice.choice((0, 1, 2, 10, 60)))
        size = dice.choice((1, 2, 3, 8, 20, 100))
        overlap = dice.choice((0, 0, dice.randrange(size)))
        boundaries, keep = dice.choice([*BOUNDARIES]), dice.choice(("end", "start"))
        spans = tok.split(text, size, overlap, boundaries, keep)  # type: ignore[arg-type]
        done = 0
        for start, end in spans:
            assert start <= done < end
            assert tok.fits(text[start:end], size) or end == start + 1
            assert start == done or tok.fits(text[start:done], overlap)
            done = end
        assert done == len(text)
        in_bytes = tok.split(text.encode(), size, overlap, boundaries, keep)  # type: ignore[arg-type]
        assert [len(text[:place].encode()) for span in spans for place in span] == [
            place for span in in_bytes for place in span
        ]


@pytest.mark.parametrize("kind", ["gpt-2", "spm", "wpm", "reference"])
def test_separators_can_be_left_out(kind: str) -> None:
    tok, dice = tokenizer_of_kind(kind), random.Random(kind)
    for _ in range(20):
        text = random_text(dice, 40)
        parts = [text[start:end] for start, end in tok.split(text, 8, keep_separator=False)]
        assert [part for part in parts if part != part.strip(" \t\r\n") or not part] == []
        assert [part for part in parts if not tok.fits(part, 8) and len(part) > 1] == []
        assert "".join("".join(parts).split()) == "".join(text.split())


EXAMPLES = [
    ("paragraph", 8, "One.\n\nThree four. Five six.\n\nTen.", ["One.\n\n", "Three four. Five six.\n\n", "Ten."]),
    ("sentence", 7, "One two. Three four. Five.", ["One two. Three four. ", "Five."]),
    ("sentence", 5, "一。二。三。", ["一。二。", "三。"]),
    ("line", 6, "One two. Three\nfour five", ["One two. Three\n", "four five"]),
    ("word", 3, "one two three four", ["one two ", "three four"]),
    ("token", 2, "one two three", ["one two", " three"]),
    ("markdown", 8, "# A\n\ntext\n\n# B\n\nmore text", ["# A\n\ntext\n\n", "# B\n\nmore text"]),
    ("markdown", 14, "T\n\n```\na\n\n# no\n```\nBehind it all", ["T\n\n", "```\na\n\n# no\n```\n", "Behind it all"]),
    ("code", 16, "import os\n\n\ndef f():\n    a\n\n    b\n\n\ndef g(): pass\n", None),
]  # fmt: skip


@pytest.mark.parametrize(("boundaries", "size", "text", "expected"), EXAMPLES)
def test_where_parts_end(boundaries: str, size: int, text: str, expected: list[str] | None) -> None:
    parts = [text[start:end] for start, end in TOK.split(text, size, boundaries=boundaries)]
    if expected is None:
        assert [part for part in parts[1:] if not part.startswith("def ")] == []
        assert len(parts) == 3
    else:
        assert parts == expected


def test_separators_can_begin_parts() -> None:
    text = "one two three four"
    spans = TOK.split(text, 2, boundaries="word", keep_separator="start")
    assert [text[start:end] for start, end in spans] == ["one two", " three four"]


def test_own_levels() -> None:
    level = BoundaryLevel("semicolon", re.compile(rb";"), is_dense=True)
    text = "a b; c d; e f"
    spans = TOK.split(text, 6, boundaries=[level])
    assert [text[start:end] for start, end in spans] == ["a b; c d;", " e f"]


def test_a_character_of_many_tokens_is_a_part() -> None:
    assert TOK.split("a𓀀b", 1) == [(0, 1), (1, 2), (2, 3)]


def test_long_texts_are_measured_by_the_lengths_of_tokens() -> None:
    text = random_text(random.Random(5), 20_000)
    for kind in ("gpt-2", "spm", "wpm", "spm that strips"):
        tok = tokenizer_of_kind(kind)
        spans = tok.split(text, 200)
        assert "".join(text[start:end] for start, end in spans) == text
        assert [span for span in spans if not tok.fits(text[slice(*span)], 200)] == []


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [((5, 5), "overlap must be"), ((0,), "size must be 1 or more, not 0"), ((5, 0, "page"), "boundaries is one of"),
     ((5, 0, "word", "both"), "keep_separator is")],
)  # fmt: skip
def test_what_is_refused(arguments: tuple[object, ...], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        TOK.split("a b", *arguments)  # type: ignore[arg-type]


def test_where_characters_begin() -> None:
    data = "é".encode() + b"\x80\xff" + "者".encode()
    assert [place for place in range(len(data)) if is_character_start(data, place)] == [0, 2, 3, 4]


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("a" + "\n" * 60_000 + "b", {"boundaries": "code"}),
        ("a" + "\r\n" * 30_000 + "b", {"boundaries": "code"}),
        ("a" + "\n" * 60_000 + "b", {"boundaries": "markdown"}),
        ("~" * 60_000, {"boundaries": "markdown"}),
        ("~~~ " * 15_000, {"boundaries": "markdown"}),
        (" " * 20_000, {"overlap": 32}),
    ],
    ids=["line breaks", "of Windows", "of Markdown", "tildes", "fences", "spaces"],
)
def test_runs_take_linear_time(text: str, arguments: dict[str, Any]) -> None:
    """In quadratic time, each would take minutes: the test would not end."""
    tok = tokenizer_of_kind("gpt-2")
    spans = tok.split(text, 64, **arguments)
    assert (spans[0][0], spans[-1][1]) == (0, len(text))
    assert all(tok.fits(text[slice(*span)], 64) for span in spans)
