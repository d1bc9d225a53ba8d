"""Whether a text fits: as counting all of it says, for every kind of tokenizer, and without reading all of it."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import numpy as np
import pytest
from budget_texts import KINDS, random_text, tokenizer_of_kind

from ggufbpe import Tokenizer
from ggufbpe.tokenizer.budget_methods import check_overlap
from ggufbpe.tokenizer.budgets import TextStream


@pytest.mark.parametrize("kind", KINDS)
def test_count_with_a_limit_is_the_count_up_to_it(kind: str) -> None:
    tok, dice = tokenizer_of_kind(kind), random.Random(kind)
    for _ in range(20):
        text = random_text(dice, dice.choice((0, 3, 50, 3000)))
        add_special = dice.random() < 0.5
        count = tok.count(text, add_special=add_special)
        for limit in {0, max(count - 1, 0), count, count + 1, dice.randint(0, count)}:
            found = tok.count(text, limit=limit, add_special=add_special)
            assert found == min(count, limit + 1)
            assert tok.count(text.encode(), limit=limit, add_special=add_special) == found
            assert tok.fits(text, limit, add_special=add_special) == (count <= limit)


def test_a_text_that_continues() -> None:
    tok = tokenizer_of_kind("spm")
    text = "ab " * 5000
    assert tok.count(text, continues=True, add_special=False, limit=10**6) == tok.count(
        text, continues=True, add_special=False
    )


@pytest.mark.parametrize("kind", ["gpt-2", "spm"])
def test_little_is_read_of_a_long_text(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tok = tokenizer_of_kind(kind)
    read = []
    original = TextStream.read

    def noted(stream: TextStream, size: int) -> bytes:
        read.append(len(part := original(stream, size)))
        return part

    monkeypatch.setattr(TextStream, "read", noted)
    assert not tok.fits("Some words, and more. " * 500_000, 100)
    assert sum(read) < 10_000


def test_the_longest_token_decides_about_an_endless_word() -> None:
    tok = tokenizer_of_kind("gpt-2")
    assert not tok.fits("a" * 3_000_000, 1000)
    assert tok.fits("a" * 1_500_000, 10**6)
    assert tok.count(b"a" * 1_500_000, limit=10**7) == tok.count("a" * 1_500_000)


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_a_long_text_with_a_lone_surrogate_is_refused_like_a_short_one(engine: Any) -> None:
    tok = Tokenizer(tokenizer_of_kind("gpt-2").vocabulary, engine)
    for size in (3, 30_000):
        with pytest.raises(ValueError, match=rf"lone surrogate, U\+D800, at character {size}"):
            tok.fits("a" * size + "\ud800 b", 10**6)


@pytest.mark.parametrize("size", [10, 100_000])
def test_memory_that_is_not_contiguous(size: int) -> None:
    tok = tokenizer_of_kind("gpt-2")
    text = b"a b " * size
    count = tok.count(text[::3], add_special=False)
    every_third = memoryview(text)[::3]
    assert [tok.fits(every_third, count - 1), tok.fits(every_third, count)] == [False, True]


def test_what_is_no_budget() -> None:
    tok = tokenizer_of_kind("gpt-2")
    for call in (tok.fits, lambda text, limit: tok.count(text, limit=limit), tok.truncate):
        with pytest.raises(ValueError, match="limit must be 0 or more, not -1"):
            call("a", -1)
    with pytest.raises(TypeError):
        tok.fits(5, 1)  # type: ignore[arg-type]
    for call in (tok.fits, lambda text, limit: tok.count(text, limit=limit), tok.truncate):
        with pytest.raises(TypeError, match="limit must be an integer, not str"):
            call("a", "3")  # type: ignore[operator]


def test_a_limit_of_numpy_is_one_of_python() -> None:
    tok = tokenizer_of_kind("gpt-2")
    text = "word, " * 300
    assert tok.fits(text, np.int64(3)) is False
    for limit in (np.uint8(250), np.int8(127), np.int16(300)):
        assert tok.truncate(text, limit) == tok.truncate(text, int(limit))
        assert tok.split(text, limit, np.uint8(100)) == tok.split(text, int(limit), 100)


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("fits", ["add_special", "parse_special"]),
        ("count", ["add_special", "parse_special", "continues"]),
        ("truncate", ["add_special", "parse_special"]),
        ("split", ["add_special", "parse_special"]),
    ],
)
def test_flags_are_bools_of_python_or_numpy(engine: Any, name: str, flags: list[str]) -> None:
    tok = Tokenizer(tokenizer_of_kind("gpt-2").vocabulary, engine)
    method = partial(getattr(tok, name), "a b c", **{"size" if name == "split" else "limit": 2})
    for flag in flags:
        for value in (1, None, "no", []):
            with pytest.raises(TypeError, match=f"^{flag} must be True or False, not "):
                method(**{flag: value})
        for value in (False, True):
            assert method(**{flag: np.bool_(value)}) == method(**{flag: value})


def test_a_marker_is_text() -> None:
    tok = tokenizer_of_kind("gpt-2")
    with pytest.raises(TypeError, match="marker must be a str, not bytes"):
        tok.truncate(b"a b c", 1, marker=b"")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="lone surrogate"):
        tok.truncate("a b c", 2, marker="\ud800")


def test_bos_counts_if_asked_for() -> None:
    tok = tokenizer_of_kind("spm")
    assert tok.add_bos
    count = tok.count("Hello", add_special=False)
    assert tok.fits("Hello", count)
    assert not tok.fits("Hello", count, add_special=True)
    assert isinstance(tok, Tokenizer)


@pytest.mark.parametrize("kind", ["gpt-2", "spm"])
def test_words_behind_a_very_long_one_count(kind: str) -> None:
    """The long word is a chunk of more than a megabyte that ends at a place: it is not the last one."""
    tok = tokenizer_of_kind(kind)
    text = "a" * 1_100_000 + " hello" * 50_000
    count = tok.count(text, add_special=False)
    assert tok.count(text, add_special=False, limit=10**7) == count
    assert [tok.fits(text, count - 1), tok.fits(text, count)] == [False, True]


@pytest.mark.parametrize(("size", "overlap"), [(0, 0), (-1, 0), (3, 3), (3, 4), (3, -1)])
def test_an_overlap_is_less_than_the_size(size: int, overlap: int) -> None:
    check_overlap(3, 2)
    with pytest.raises(ValueError, match=f"{size}"):
        check_overlap(size, overlap)
