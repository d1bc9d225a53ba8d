"""Arguments of the wrong type are refused by name."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

from ggufbpe._util.arguments import checked_flag, checked_str, integer, iterable


def test_integers() -> None:
    assert [integer("n", value) for value in (3, True, numpy.int64(-7))] == [3, 1, -7]
    assert integer("n", 0, least=0) == 0


@pytest.mark.parametrize("value", ["3", 2.5, None, b"1"])
def test_anything_else(value: object) -> None:
    with pytest.raises(TypeError, match=f"^n must be an integer, not {type(value).__name__}$"):
        integer("n", value)


def test_below_the_least() -> None:
    with pytest.raises(ValueError, match=r"^n must be 1 or more, not 0$"):
        integer("n", 0, least=1)
    with pytest.raises(ValueError, match=r"^n must be 2 or more, not True$"):
        integer("n", True, least=2)


def test_strings() -> None:
    assert checked_str("s", "") == ""
    for value, kind in ((None, "NoneType"), (b"a", "bytes"), (5, "int")):
        with pytest.raises(TypeError, match=f"^s must be a str, not {kind}$"):
            checked_str("s", value)


def test_flags() -> None:
    values = (True, False, numpy.True_, numpy.False_)
    assert [checked_flag("f", value) for value in values] == [True, False, True, False]
    assert all(type(checked_flag("f", value)) is bool for value in values)


FLAGS = [(1, "int"), (2, "int"), (None, "None"), ("no", "'no'"), ([], "list"), (numpy.int8(1), "int8")]


@pytest.mark.parametrize(("value", "shown"), FLAGS)
def test_what_is_no_flag(value: object, shown: str) -> None:
    with pytest.raises(TypeError, match=f"^f must be True or False, not {shown}$"):
        checked_flag("f", value)


def test_iterables() -> None:
    texts = ["a", "b"]
    given = iter(texts)
    assert iterable("texts", texts, "texts") is texts
    assert iterable("texts", given, "texts") is given
    assert list(given) == texts


@pytest.mark.parametrize(("value", "shown"), [(None, "None"), (5, "int"), ("ab", "a single str")])
def test_what_is_no_iterable(value: Any, shown: str) -> None:
    with pytest.raises(TypeError, match=f"^texts must be an iterable of texts, not {shown}$"):
        iterable("texts", value, "texts")
