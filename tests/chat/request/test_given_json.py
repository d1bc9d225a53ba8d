"""Python values as JSON values."""

from __future__ import annotations

from collections import OrderedDict, UserList, UserString, deque
from types import MappingProxyType
from typing import Any

import pytest

from ggufbpe import ChatError
from ggufbpe.chat.request.given_json import has_other_forms, in_json_form, is_other_form

VALUES: list[tuple[Any, Any, bool]] = [  # a value, its form in JSON, whether it has other forms
    ({"a": [1, 2.5, True, None, "x"]}, {"a": [1, 2.5, True, None, "x"]}, False),
    ({"a": (1, [2])}, {"a": [1, [2]]}, True),
    ([MappingProxyType({"a": ()})], [{"a": []}], True),
    (OrderedDict(a=1), {"a": 1}, False),
    (UserList([range(2)]), [[0, 1]], True),
    ([deque("a")], [["a"]], True),
]


@pytest.mark.parametrize(("value", "form", "has_others"), VALUES)
def test_in_json_form(value: Any, form: Any, has_others: bool) -> None:
    made = in_json_form(value)
    assert (made, type(made)) == (form, type(form))
    assert has_other_forms(value) is has_others


def test_is_other_form() -> None:
    values = [(), MappingProxyType({}), UserList(), {}, [], OrderedDict(), "a", 1, None]
    assert [is_other_form(value) for value in values] == [True, True, True, *[False] * 6]


REFUSED: list[tuple[Any, str]] = [
    ({"messages": [{"content": {1}}]}, "messages[0].content is of type set, which JSON does not have"),
    (b"x", "a chat is of type bytes, which JSON does not have"),
    ([UserString("x")], "[0] is of type UserString, which JSON does not have"),
    ({"a": {1: 2}}, "a has a key of type int; those of JSON are strings"),
    ({"a": "x\udc80"}, "a has a lone surrogate at position 1"),
    ({"\udc80": 1}, "a key of a chat has a lone surrogate at position 0"),
    ({"a": [float("nan")]}, "a[0] is nan, which JSON does not have"),
    ({"a": float("-inf")}, "a is -inf, which JSON does not have"),
    ({"a": 10**400}, "a is too large a number"),
]


@pytest.mark.parametrize(("value", "reason"), REFUSED)
def test_refused(value: Any, reason: str) -> None:
    with pytest.raises(ChatError) as refusal:
        in_json_form(value)
    assert refusal.value.reason == reason
