"""`truncate` gives exactly the longest part that fits, which brute force finds for small texts."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from budget_cases import check_truncate
from budget_texts import KINDS, random_text, tokenizer_of_kind

from ggufbpe.tokenizer.budget_methods import T
from ggufbpe.tokenizer.truncation import _Cuts, longest_part


@pytest.mark.parametrize("kind", KINDS)
def test_truncated_texts_are_the_longest(kind: str) -> None:
    tok, dice = tokenizer_of_kind(kind), random.Random(kind)
    for _ in range(30 if kind == "reference" else 150):
        check_truncate(tok, dice)
    for _ in range(8):
        check_truncate(tok, dice, (80,))


def test_undecodable_bytes_are_surrogates_in_the_longest_part() -> None:
    tok = tokenizer_of_kind("gpt-2")
    text = b"\xff one two three".decode("utf-8", "surrogateescape")
    for limit in range(1, tok.count(b"\xff one two three", add_special=False)):
        found = longest_part(tok, text, limit, "right", "", "character", True)
        assert text.startswith(found)
        assert tok.truncate(b"\xff one two three", limit) == found.encode("utf-8", "surrogateescape")


@pytest.mark.parametrize("limit", [1, 9])
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytes_stay_of_their_type(kind: Callable[[bytes], T], limit: int) -> None:
    assert T.__constraints__ == (str, bytes, bytearray, memoryview)
    cut = tokenizer_of_kind("gpt-2").truncate(kind(b"one two"), limit)
    assert (type(cut), bytes(cut)) == (kind, b"one two" if limit == 9 else b"one")


@pytest.mark.parametrize("code_point", [0xD800, 0xDCFF])
def test_a_lone_surrogate_in_what_is_kept_of_a_long_text(code_point: int) -> None:
    tok = tokenizer_of_kind("gpt-2")
    text = "b " * 9000 + chr(code_point) + "b"
    for side in ("left", "middle"):
        with pytest.raises(ValueError, match=rf"lone surrogate, U\+{code_point:X}, at character 18000"):
            tok.truncate(text, 9, side=side)  # type: ignore[arg-type]
    assert tok.fits(tok.truncate(text, 9), 9)  # so far it is not read


@pytest.mark.parametrize("text", ["a", "one two three four", b"one two three four"])
def test_a_lone_surrogate_in_the_marker(text: str | bytes) -> None:
    said = r"^marker has a lone surrogate, U\+DCFF, at character 1, which UTF-8 cannot write$"
    with pytest.raises(ValueError, match=said):
        tokenizer_of_kind("gpt-2").truncate(text, 3, marker="…\udcff")


@pytest.mark.parametrize("side", ["right", "left", "middle"])
@pytest.mark.parametrize("kind", ["gpt-2", "spm", "wpm", "rwkv"])
def test_long_texts(kind: str, side: str) -> None:
    """Of a long text, only parts that are longer by some words are tried."""
    tok, dice = tokenizer_of_kind(kind), random.Random(side)
    text = random_text(dice, 6000)
    for limit in (0, 10, 500):
        found = tok.truncate(text, limit, side=side)  # type: ignore[arg-type]
        assert tok.fits(found, limit)
        for size in range(len(found) + 1, len(found) + 200):
            head = {"right": size, "left": 0, "middle": (size + 1) // 2}[side]
            assert not tok.fits(text[:head] + text[len(text) - size + head :], limit)


@pytest.mark.parametrize("kind", ["gpt-2", "unigram"])
def test_an_endless_word(kind: str) -> None:
    tok = tokenizer_of_kind(kind)
    text = "ab" * 20_000
    found = tok.truncate(text, 50)
    assert text.startswith(found)
    assert tok.fits(found, 50)
    assert not tok.fits(text[: len(found) + 1], 50)


CUT_AT_WORDS = [
    ("one two three", 2, "right", "one two"),
    ("one twothreefour", 2, "right", "one "),
    ("one two three", 2, "left", " two three"),
    ("naïveté", 1, "right", ""),
    ("者者者者", 2, "right", "者者"),
]


@pytest.mark.parametrize(("text", "limit", "side", "expected"), CUT_AT_WORDS)
def test_words_stay_whole(text: str, limit: int, side: str, expected: str) -> None:
    found = tokenizer_of_kind("gpt-2").truncate(text, limit, side=side, at="word")  # type: ignore[arg-type]
    assert found == expected


def test_bytes_that_are_not_utf8() -> None:
    tok = tokenizer_of_kind("gpt-2")
    data = b"a\xff\xfe\x80b" * 50
    found = tok.truncate(data, 20)
    assert data.startswith(found)
    assert tok.fits(found, 20)
    assert not tok.fits(data[: len(found) + 1], 20)


def test_added_tokens_count_if_asked_for() -> None:
    tok = tokenizer_of_kind("spm")
    assert len(tok.encode(tok.truncate("ab ab ab ab", 4, add_special=True))) <= 4
    with pytest.raises(ValueError, match="less than the number of tokens that are added"):
        tok.truncate("ab", 0, add_special=True)


@pytest.mark.parametrize("name", ["side", "at"])
def test_other_choices_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is '"):
        tokenizer_of_kind("gpt-2").truncate("a b", 1, **{name: "top"})  # type: ignore[arg-type]


@pytest.mark.parametrize("side", ["right", "left", "middle"])
def test_the_word_at_the_cut_is_looked_through_once(side: Any) -> None:
    """Walking through it for each part that is tried would take minutes."""
    tok = tokenizer_of_kind("gpt-2")
    assert tok.truncate("a" * 60_000, 10, side=side, at="word") == ""
    assert tok.truncate("some words " + "a" * 60_000 + " more", 3, side="right", at="word") == "some words "


@pytest.mark.parametrize("side", ["right", "left"])
def test_what_is_known_of_a_word_is_not_looked_through_again(
    side: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search by halves goes back and forth: of a word of 2 MB, five million characters were looked at."""
    text = "a" * 10_000
    cuts, looked = _Cuts(text, text.encode(), side, "word"), []
    is_in_word = cuts._is_in_word
    monkeypatch.setattr(cuts, "_is_in_word", lambda place: looked.append(place) or is_in_word(place))
    for size in (9000, 1000, 9000, 500, 9500, 20, 9990):
        assert cuts.ends(size) == (0, 0)
    assert len(looked) < 10_100
