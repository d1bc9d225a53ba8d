"""The arguments of a template's calls, checked as llama.cpp checks them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ggufbpe.chat.template.call_arguments import Arguments, Parameters, as_float, as_int, bind, is_a, truth
from ggufbpe.chat.template.values import CallError, Function, Keyword, TemplateError, Undefined

NAMED = Arguments(("text", 1, Keyword("b", 2)))
NAMED.function = "f"


def test_arguments_by_name_and_position() -> None:
    assert NAMED.get("b", 1) == 2
    assert NAMED.get("a", 1) == 1
    assert isinstance(NAMED.get("c", 2), Undefined)  # a named argument has no position
    assert isinstance(NAMED.get("c", 3), Undefined)
    assert NAMED.named("c", "default") == "default"
    assert NAMED.at(1) == 1


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "too few": (lambda: NAMED.need(4, 5), "Function 'f' expected between 4 and 5 arguments, got 3"),
    "too many": (lambda: NAMED.need(0, 2), "Function 'f' expected between 0 and 2 arguments, got 3"),
    "another kind": (
        lambda: NAMED.need_kinds(str, dict),
        "Function 'f' expected value of type St10shared_ptrIN5jinja14value_object_tEE, got Integer",
    ),
    "none at a position": (lambda: NAMED.at(3), "Function 'f' expected at least 4 arguments, got 3"),
    "a text is no int": (lambda: as_int("1"), "String is not an int value"),
    "a bool is no float": (lambda: as_float(True), "Boolean is not a float value"),
    "a function is not true": (lambda: truth(Function("f", len)), "Function is not a bool value"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    call, message = REFUSED[name]
    with pytest.raises(TemplateError) as refusal:
        call()
    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [((1,), list, True), (True, int, False), (True, bool, True), (1, float, False), ("", str, True)],
)
def test_is_a(value: Any, kind: type, expected: bool) -> None:
    assert is_a(value, kind) is expected


def test_numbers() -> None:
    assert [as_int(value) for value in (2.9, -2.9, True, 1e30, 7)] == [2, -2, 1, 0, 7]
    assert as_float(3) == 3.0
    assert [truth(value) for value in ("0", [0], 0.5)] == [True] * 3
    assert [truth(value) for value in ("", [], 0.0, None, Undefined())] == [False] * 5


PARAMETERS: Parameters = [("a", None), ("b", lambda scope: scope["x"]), ("c", lambda scope: 3)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([1], {"a": 1, "b": "X", "c": 3}),
        ([1, 2, 4], {"a": 1, "b": 2, "c": 4}),
        ([1, Keyword("b", 5)], {"a": 1, "b": 5, "c": 3}),
        ([1, Keyword("c", 5)], {"a": 1, "b": "undefined", "c": 3}),  # c is found only among three arguments
        ([1, 2, Keyword("c", 5)], {"a": 1, "b": 2, "c": 5}),
    ],
)
def test_bind(given: list[Any], expected: dict[str, Any]) -> None:
    inner: dict[str, Any] = {}
    bind("m", PARAMETERS, inner, {"x": "X"}, given)
    assert {
        name: "undefined" if isinstance(value, Undefined) else value for name, value in inner.items()
    } == expected


def test_a_parameter_without_default_is_required() -> None:
    with pytest.raises(CallError, match="Not enough arguments provided to 'm'"):
        bind("m", PARAMETERS, {}, {}, [])
