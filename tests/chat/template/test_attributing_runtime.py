"""Runs that find the origins of what a function made of attributed texts."""

from __future__ import annotations

import time
from typing import Any

import pytest

from ggufbpe.chat.template.attributed_text import attributed, origins_of, with_one_origin
from ggufbpe.chat.template.attributing_runtime import AttributingRuntime
from ggufbpe.chat.template.values import Keyword

A, B = attributed("one", "a"), attributed("two", "b")

# A filter with its value and arguments, its text, and the origin of each character; "." for none.
FILTERS: dict[str, tuple[Any, str, list[Any], str, str]] = {
    "upper": (A, "upper", [], "ONE", "aaa"),
    "capitalize in parts": (A + B, "capitalize", [], "OneTwo", "aaabbb"),
    "replace in the template's text": ("<x>", "replace", ["x", A], "<one>", ".aaa."),
    "join": ([A, B], "join", ["-"], "one-two", "aaa.bbb"),
    "an array of one origin as text": ([A, 1], "string", [], "['one', 1]", "a" * 10),
    "an array of two origins as text": ([A, B], "string", [], "['one', 'two']", "." * 14),
    "JSON of one origin": ([A, 1], "tojson", [], '["one", 1]', "a" * 10),
    "JSON of two origins": ([A, B], "tojson", [], '["one", "two"]', "." + "a" * 5 + "." + "b" * 6 + "."),
    "JSON in ASCII": (
        attributed("\xc3\xa4", "a"),
        "tojson",
        [Keyword("ensure_ascii", True)],
        '"\\u00e4"',
        "a" * 8,
    ),
    "JSON of a number": (with_one_origin(12, "a"), "tojson", [], "12", "aa"),
    "a literal": ("x", "upper", [], "X", "."),
}


@pytest.mark.parametrize("name", FILTERS)
def test_filters(name: str) -> None:
    value, filter_name, arguments, text, origins = FILTERS[name]
    written = AttributingRuntime(time.gmtime(0)).filter(value, filter_name, arguments)
    assert (str(written), origins_of(written).replace("\0", ".")) == (text, origins)


def test_operators_and_what_is_written() -> None:
    run = AttributingRuntime(time.gmtime(0))
    assert origins_of(run.plus(A, "x")) == "aaa\0"
    assert origins_of(run.text([A, 1, B])) == "aaa\0bbb"
    assert origins_of(run.written([A, B])) == "aaabbb"
    assert run.by_parts(str.title, "one two") == "One Two"
