"""The functions and tests that templates of every kind of value have."""

from __future__ import annotations

import time
from typing import Any

import pytest

from ggufbpe.chat.template import functions
from ggufbpe.chat.template.call_arguments import Arguments
from ggufbpe.chat.template.functions import GLOBALS, METHODS, TESTS, methods_for
from ggufbpe.chat.template.runtime import Runtime
from ggufbpe.chat.template.values import Function, Keyword, Loop, TemplateError, Undefined

RUN = Runtime(time.gmtime(86_400))


def called(function: functions.Builtin, *given: Any) -> Any:
    """The result of a function with these arguments."""
    return function(RUN, Arguments(given))


JSON: list[tuple[tuple[Any, ...], str]] = [
    (({"a": [1, None, True]},), '{"a": [1, null, true]}'),
    (([1, 2], Keyword("indent", 1)), "[\n 1,\n 2\n]"),
    (([1, 2], Keyword("indent", (1 << 32) + 1)), "[\n 1,\n 2\n]"),
    (([1, 2], Keyword("indent", (1 << 63) - 1)), "[1, 2]"),
    (([1, 2], None, 1 - (1 << 32)), "[\n 1,\n 2\n]"),
    (({"a": 1, "b": 2}, Keyword("separators", (",", ":"))), '{"a":1,"b":2}'),
    (("\xc3\xa4", Keyword("ensure_ascii", True)), '"\\u00e4"'),
    (("\xc3\xa4",), '"\xc3\xa4"'),
]


@pytest.mark.parametrize(("given", "expected"), JSON)
def test_tojson(given: tuple[Any, ...], expected: str) -> None:
    assert called(functions.tojson, *given) == expected


RESULTS: list[tuple[str, tuple[Any, ...], Any]] = [
    ("range", (3,), [0, 1, 2]),
    ("range", (5, 1, -2), [5, 3]),
    ("strftime_now", ("%d %b %Y",), "02 Jan 1970"),
    ("dict", (Keyword("a", 1),), {"a": 1}),
]


@pytest.mark.parametrize(("name", "given", "expected"), RESULTS)
def test_global_functions(name: str, given: tuple[Any, ...], expected: Any) -> None:
    assert called(GLOBALS[name], *given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((None, 1), 1),
        ((Undefined(), 1), 1),
        (("", 1), ""),
        (("", 1, True), 1),
        (("", 1, Keyword("boolean", True)), 1),
        ((0, 1), 0),
    ],
)
def test_default(given: tuple[Any, ...], expected: Any) -> None:
    assert called(functions.default, *given) == expected


def test_numbers() -> None:
    assert called(functions.absolute, -3) == 3
    assert called(functions.number_as_int, -2.9) == -2
    assert called(functions.number_as_int, True) == 1
    assert called(functions.sliced, "abcdef", 1, 5, 2) == "bd"
    assert called(functions.sliced, [1, 2, 3], -2, 3, 1) == [2, 3]


REFUSED: list[tuple[functions.Builtin, tuple[Any, ...], str]] = [
    (functions.raise_exception, ("no",), "Jinja Exception: no"),
    (functions.number_range, (1, 2, 0), "range() step argument must not be zero"),
    (functions.sliced, ("a", 0, 1, 0), "slice step cannot be zero"),
    (functions.strftime_now, ("%Y" * 30,), "strftime_now: failed to format time"),
    (
        functions.tojson,
        ([], Keyword("sort_keys", True)),
        "NotImplemented: tojson sort_keys=true not implemented",
    ),
    (TESTS["divisibleby"], (1, 0), "division by zero"),
]


@pytest.mark.parametrize(("function", "given", "message"), REFUSED)
def test_refused(function: functions.Builtin, given: tuple[Any, ...], message: str) -> None:
    with pytest.raises(TemplateError) as refusal:
        called(function, *given)
    assert str(refusal.value) == message


PASSED = {  # a value, and the tests that it passes, of those without arguments
    "text": ("ab", "defined iterable lower sequence string"),
    "capitals": ("AB", "defined iterable sequence string upper"),
    "int": (3, "defined integer number odd"),
    "float": (2.0, "defined float number"),
    "bool": (True, "boolean defined true"),
    "array": ([], "defined iterable sequence"),
    "object": ({}, "defined iterable mapping sequence"),
    "none": (None, "defined none"),
    "undefined": (Undefined(), "iterable sequence undefined"),
    "function": (Function("f", len), "callable defined"),
}
ALONE = sorted({*" ".join(passed for _, passed in PASSED.values()).split(), "even", "false"})
NEEDS = {"odd": int, "even": int, "lower": str, "upper": str}  # kinds without which a test is refused


@pytest.mark.parametrize("name", PASSED)
def test_tests_of_kinds(name: str) -> None:
    value, expected = PASSED[name]
    passed = []
    for test in ALONE:
        if type(value) is not NEEDS.get(test, type(value)):
            with pytest.raises(TemplateError, match="expected value of type"):
                called(TESTS[test], value)
        elif called(TESTS[test], value):
            passed.append(test)
    assert " ".join(passed) == expected


def test_tests_with_arguments() -> None:
    text = "".join(["long ", "text"])
    pairs = [(None, None), (256, 256), (257, 257), (text, text)]
    assert [called(TESTS["sameas"], *pair) for pair in pairs] == [True, True, False, True]
    assert called(TESTS["divisibleby"], 6, 3) is True
    assert called(TESTS["in"], 1, [1]) is True
    assert [called(TESTS["test"], name) for name in ("odd", "round")] == [True, False]


def test_methods_for() -> None:
    assert methods_for(Loop()) == {}
    assert methods_for(type("Text", (str,), {})("a")) is METHODS[str]
    assert called(METHODS[Undefined]["length"], Undefined()) == 0
    with pytest.raises(TemplateError, match="Function has no builtins"):
        methods_for(Function("f", len))
