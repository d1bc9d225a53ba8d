"""Filters and methods of arrays and objects, called with arguments as a template gives them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from ggufbpe.chat.template import array_methods as arrays
from ggufbpe.chat.template.call_arguments import Arguments
from ggufbpe.chat.template.runtime import Runtime
from ggufbpe.chat.template.values import Keyword, TemplateError, Undefined

ROWS = [{"role": "user", "n": 2}, {"role": "system", "n": 1}, {"n": 3}]
Method = Callable[[Runtime, Arguments], Any]


def called(method: Method, *given: Any) -> Any:
    """The result of a method in a fresh run; an undefined value as the text "undefined"."""
    value = method(Runtime(time.gmtime(0)), Arguments(given))
    return "undefined" if isinstance(value, Undefined) else value


RESULTS: dict[str, tuple[Method, tuple[Any, ...], Any]] = {
    "items that have an attribute": (arrays.select, (ROWS, "role"), ROWS[:2]),
    "items that lack an attribute": (arrays.reject, (ROWS, "role"), ROWS[2:]),
    "items whose attribute passes a test": (arrays.select, (ROWS, "n", "gt", 1), [ROWS[0], ROWS[2]]),
    "items whose attribute fails a test": (arrays.reject, (ROWS, "role", "eq", "user"), ROWS[1:]),
    "items that pass a test": (arrays.select, ([1, 2, 3], "lt", 3), [1, 2]),
    "a number as text is an index": (arrays.select, ([[0, 5], [1, 0]], "1"), [[0, 5]]),
    "first of none": (arrays.first, ([],), "undefined"),
    "last": (arrays.last, ((1, 2),), 2),
    "joined numbers": (arrays.join, ([1, "a", 2.5], ", "), "1, a, 2.5"),
    "joined attributes": (arrays.join, (ROWS[:2], "/", Keyword("attribute", "role")), "user/system"),
    "attributes with a default": (
        arrays.mapped,
        (ROWS, Keyword("attribute", "role"), Keyword("default", "-")),
        ["user", "system", "-"],
    ),
    "a tuple stays a tuple": (arrays.mapped, (tuple(ROWS), Keyword("attribute", "n")), (2, 1, 3)),
    "sorted": (arrays.sort, ([3, 1, 2],), [1, 2, 3]),
    "sorted from the greatest": (arrays.sort, ([3, 1, 2], Keyword("reverse", True)), [3, 2, 1]),
    "sorted by an attribute": (arrays.sort, (ROWS, Keyword("attribute", "n")), [ROWS[1], ROWS[0], ROWS[2]]),
    "sorted beside an item without order": (arrays.sort, ([3, None, 1],), [1, 3, None]),
    "sorted in spite of one": (arrays.sort, (["q", 1, None, 2.5, 3],), [1, "q", None, 2.5, 3]),
    "reversed": (arrays.reverse, ([1, 2, 3],), [3, 2, 1]),
    "the smallest": (arrays.least, ([3, 1, 2],), 1),
    "the greatest by an attribute": (arrays.greatest, (ROWS, Keyword("attribute", "n")), ROWS[2]),
    "the smallest of none": (arrays.least, ([],), "undefined"),
    "a member": (arrays.get, ({"a": 1}, "a", 5), 1),
    "no member, with a default": (arrays.get, ({"a": 1}, "b", 5), 5),
    "no member": (arrays.get, ({"a": 1}, "b"), None),
    "members by value": (arrays.dictsort, ({"a": 2, "b": 1}, Keyword("by", "value")), {"b": 1, "a": 2}),
    "an object of pairs and names": (arrays.namespace, ([("a", 1)], Keyword("b", 2)), {"a": 1, "b": 2}),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results(name: str) -> None:
    method, given, expected = RESULTS[name]
    assert called(method, *given) == expected


def test_order_of_sorted_members() -> None:
    assert list(called(arrays.dictsort, {"b": 1, "a": 2})) == ["a", "b"]
    assert list(called(arrays.dictsort, {"b": 1, "a": 2}, Keyword("by", "value"))) == ["b", "a"]


def test_append_and_pop_change_the_array() -> None:
    array = [1, 2, 3]
    assert called(arrays.append, array, 4) is array
    assert called(arrays.pop, array) == 4
    assert called(arrays.pop, array, 0) == 1
    assert array == [2, 3]


REFUSED: dict[str, tuple[Method, tuple[Any, ...], str]] = {
    "a tuple cannot grow": (arrays.append, ((1,), 2), "Attempting to modify immutable type"),
    "pop beyond the start": (arrays.pop, ([1], -3), "Index -2 out of bounds for array of size 1"),
    "an unknown test": (arrays.select, ([1], "round", 1), "selectattr: unknown test 'round'"),
    "a bool is not joined": (
        arrays.join,
        ([True], ","),
        "join() can only join arrays of strings or numerics",
    ),
    "map by position": (arrays.mapped, ([1], "n"), "NotImplemented: map: filter-mapping not implemented"),
    "a triple is no pair": (
        arrays.namespace,
        ([(1, 2, 3)],),
        "namespace/dict() iterable argument must consist of tuples, not Tuple",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    method, given, message = REFUSED[name]
    with pytest.raises(TemplateError) as refusal:
        called(method, *given)
    assert str(refusal.value) == message


CONTAINED = [
    ("a", ["a", "b"], True),
    (1, [2, 3], False),
    ("ell", "hello", True),
    ("a", {"a": 0}, True),
    ("a", Undefined(), False),
]


@pytest.mark.parametrize(("needle", "haystack", "expected"), CONTAINED)
def test_is_in(needle: Any, haystack: Any, expected: bool) -> None:
    assert arrays.is_in(Runtime(time.gmtime(0)), needle, haystack) is expected
