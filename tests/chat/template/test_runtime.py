"""The operators of a template on values of every kind."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from ggufbpe.chat.template.functions import GLOBALS
from ggufbpe.chat.template.run_limits import LimitError
from ggufbpe.chat.template.runtime import DEEPEST_CALLS, Runtime
from ggufbpe.chat.template.values import Function, Macro, TemplateError, Undefined


@pytest.fixture
def run() -> Runtime:
    return Runtime(time.gmtime(0))


NONE, MISSING = None, Undefined("x")
OPERATIONS: list[tuple[Any, str, Any, Any]] = [
    (1, "+", 2, 3),
    ("a", "+", 1, "a1"),
    (1.5, "~", "a", "1.5a"),
    ("a", "~", NONE, "a"),
    (MISSING, "+", "a", "a"),
    ([1], "+", (2,), [1, 2]),
    ("ab", "*", 2, "abab"),
    (-1, "*", "ab", ""),
    ("a", "in", "cab", True),
    ("a", "not in", {"b": 1}, True),
    (1, "in", [1], True),
    (NONE, "in", [NONE], True),
    (MISSING, "not in", MISSING, True),
]


@pytest.mark.parametrize(("left", "operator", "right", "expected"), OPERATIONS)
def test_operate(run: Runtime, left: Any, operator: str, right: Any, expected: Any) -> None:
    assert run.operate(left, operator, right) == expected


REFUSED: dict[str, Callable[[Runtime], object]] = {
    'Unknown operator "-" between String and Integer': lambda run: run.operate("a", "-", 1),
    "Cannot perform operation + on undefined values": lambda run: run.operate(MISSING, "+", 1),
    "Cannot perform operation on null values": lambda run: run.operate(NONE, "-", 1),
    "Unary - operator requires numeric operand": lambda run: run.negative(True),
    "Unary + operator requires numeric operand": lambda run: run.positive("1"),
    "Callee is not a function: got String": lambda run: run.call({}, [], "f"),
    "Unknown test 'round'": lambda run: run.test("round", [1]),
    "Unknown (built-in) filter 'upper' for type Array": lambda run: run.filter_of([], "upper"),
    "Unknown (built-in) filter 'lower' for type Array": lambda run: run.filter([], "lower", []),
    "Cannot assign to member of non-object": lambda run: run.set_member([], "a", 1),
    "Expected iterable or object type in for loop: got Integer": lambda run: run.rows(1, 0),
    "Too many items to unpack in set": lambda run: run.unpacked([1, 2], 1),
    "Cannot unpack non-iterable type in set: String": lambda run: run.unpacked("ab", 2),
    "Object key of unhashable type: Array": lambda run: run.check_key([], 0),
    "Cannot access property with non-string: got Integer": lambda run: run.item(5, 0),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refused(run: Runtime, message: str) -> None:
    with pytest.raises(TemplateError) as refusal:
        REFUSED[message](run)
    assert str(refusal.value) == message


ITEMS: list[tuple[Any, Any, Any]] = [
    ({"a": 1}, "a", 1),
    ([1, 2], -1, 2),
    ([1, 2], 2, "undefined"),
    ("ab", 1, "b"),
    ("ab", -1, "undefined"),
    (MISSING, "a", "undefined"),
    ({"a": 1}, MISSING, "undefined"),
]


@pytest.mark.parametrize(("value", "key", "expected"), ITEMS)
def test_item(run: Runtime, value: Any, key: Any, expected: Any) -> None:
    item = run.item(value, key)
    assert ("undefined" if isinstance(item, Undefined) else item) == expected


def test_names_and_attributes(run: Runtime) -> None:
    assert run.name({"a": 1}, "a") == 1
    assert run.name({}, "range").call is GLOBALS["range"]
    assert isinstance(run.name({}, "a"), Undefined)
    assert isinstance(run.attribute({"items": 1}, "items"), Function)  # a method hides a member,
    assert run.item({"items": 1}, "items") == 1  # but not in brackets
    assert run.item({}, "keys").name == "keys"
    assert run.slice("abcd", stop=2) == "ab"
    assert run.slice([1, 2, 3], step=-1) == [3, 2, 1]


def test_filters_take_other_values_as_text(run: Runtime) -> None:
    assert run.filter(["A"], "lower", None) == "['a']"
    assert run.filter(None, "upper", None) == "NONE"


def test_a_row_of_texts_is_put_together_once(run: Runtime) -> None:
    value = run.chain("a", 1)
    value = run.chain(value, "b")
    assert run.chained(value) == "a1b"
    assert run.chained(run.chain(1, 2)) == 3
    assert run.chained(run.chain("a", None)) == "a"


def test_rows(run: Runtime) -> None:
    assert run.rows({"a": 1}, 0) == ["a"]
    assert run.rows({"a": 1}, 2) == [("a", 1)]
    assert run.rows(MISSING, 0) == []
    assert run.rows_of_call({}, [2], run.name({}, "range")) == range(2)
    assert list(run.rounds([1, 2], 1)) == [1, 2]


def test_macros_call_each_other_only_so_deep(run: Runtime) -> None:
    deepest = 0

    def body(scope: Any, given: Any) -> str:
        nonlocal deepest
        deepest += 1
        text: str = run.call(scope, given, macro)
        return text

    macro = Macro("m", body)
    with pytest.raises(LimitError, match=f"more than {DEEPEST_CALLS} deep"):
        run.call({}, [], macro)
    assert deepest == DEEPEST_CALLS


def test_rounds_end_at_the_limit_of_steps(run: Runtime) -> None:
    with pytest.raises(LimitError):
        for _ in run.rounds(range(10), 1 << 40):
            pass
