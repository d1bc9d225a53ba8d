"""Filters and methods of strings: on bytes, with C's readings of numbers."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from ggufbpe.chat.template import string_methods as strings
from ggufbpe.chat.template.call_arguments import Arguments, size_of
from ggufbpe.chat.template.runtime import Runtime
from ggufbpe.chat.template.values import Keyword, TemplateError

Method = Callable[[Runtime, Arguments], Any]


def called(method: Method, *given: Any) -> Any:
    """The result of a method in a fresh run."""
    return method(Runtime(time.gmtime(0)), Arguments(given))


RESULTS: list[tuple[Method, tuple[Any, ...], Any]] = [
    (strings.upper_case, ("a\xc3\xa9z",), "A\xc3\xa9Z"),  # the bytes of é are left alone
    (strings.lower_case, ("A\xc3\x89Z",), "a\xc3\x89z"),
    (strings.capitalize, ("hELLO wORLD",), "Hello world"),
    (strings.title, ("hELLO\twORLD o'neil",), "Hello\tWorld O'neil"),
    (strings.strip, (" \n a b \t",), "a b"),
    (strings.strip, ("xxabxx", "x"), "ab"),
    (strings.rstrip, ("  a  ",), "  a"),
    (strings.lstrip, ("-=a", Keyword("chars", "=-")), "a"),
    (size_of(str), ("\xc3\xa9",), 2),
    (strings.startswith, ("abc", "ab"), True),
    (strings.endswith, ("abc", "ab"), False),
    (strings.split_at, ("a  b",), ["a", "", "b"]),
    (strings.split_at, ("a,b,c", ",", 1), ["a", "b,c"]),
    (strings.split_at_from_end, ("a,b,c", ",", 1), ["a,b", "c"]),
    (strings.split_at_from_end, ("abab", "ab"), ["", "", ""]),
    (strings.replaced, ("a-a", "a", "bc"), "bc-bc"),
    (strings.formatted, ("{}+{}!", 1, "x"), "1+x!"),
    (strings.leading_int_or_default, (" 12px",), 12),
    (strings.leading_int_or_default, ("0x1fz", 0, 16), 31),
    (strings.leading_int_or_default, ("017", 0, 0), 15),
    (strings.leading_int_or_default, ("0x", 5, 0), 0),
    (strings.leading_int_or_default, ("x", 7), 7),
    (strings.leading_int_or_default, ("2147483648", 7), 7),  # stoi reads 32 bits
    (strings.leading_int_or_default, ("-2147483648", 7), -(1 << 31)),
    (strings.leading_float_or_default, ("1.5e1x",), 15.0),
    (strings.leading_float_or_default, ("0x1.8p1",), 3.0),
    (strings.leading_float_or_default, (".", 2.5), 2.5),
    (strings.leading_float_or_default, ("1e999", 2.5), 2.5),
    (strings.leading_float_or_default, ("0e-999", 2.5), 0.0),
    (strings.indent, ("a\nb",), "a\n    b"),
    (strings.indent, ("a\n\nb\n", 2), "a\n\n  b\n"),
    (strings.indent, ("a\n\nb", 1, True, True), " a\n \n b"),
    (strings.indent, ("a\nb", "> "), "a\n> b"),
]


@pytest.mark.parametrize(("method", "given", "expected"), RESULTS)
def test_results(method: Method, given: tuple[Any, ...], expected: Any) -> None:
    assert called(method, *given) == expected


REFUSED: list[tuple[Method, tuple[Any, ...], str]] = [
    (strings.split_at, ("a", ""), "empty separator"),
    (
        strings.replaced,
        ("a", "a", "b", 1),
        "NotImplemented: String replace with count argument not implemented",
    ),
    (strings.formatted, ("{0}", 1), "NotImplemented: format() only supports simple '{}' placeholders"),
    (strings.formatted, ("{}",), "Function '' expected at least 2 arguments, got 1"),
    (strings.leading_int_or_default, ("1", 0, 1), "int() base must be 0 or between 2 and 36"),
    (strings.indent, ("a", -1), "basic_string::_M_replace_aux"),
    (strings.not_implemented("x"), (), "NotImplemented: x not implemented"),
]


@pytest.mark.parametrize(("method", "given", "message"), REFUSED)
def test_refused(method: Method, given: tuple[Any, ...], message: str) -> None:
    with pytest.raises(TemplateError) as refusal:
        called(method, *given)
    assert str(refusal.value) == message
