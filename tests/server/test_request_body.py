"""Fields of request bodies, read as llama.cpp reads them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest
from conftest import ROOT

from ggufbpe.server import request_body
from ggufbpe.server.endpoints import ENDPOINTS
from ggufbpe.server.failures import RequestError
from ggufbpe.server.request_body import (
    bounded_text,
    field,
    given_choice,
    given_flag,
    given_flags,
    given_number,
    given_template,
    given_texts,
    has_field,
    parsed_body,
    require_id,
    require_ids,
    require_object,
    require_string,
    required_ids,
    required_number,
    required_text,
)

BODIES: list[tuple[bytes, Any]] = [
    (b'{"a": 1, "a": 2}', {"a": 2}),
    (b"\xef\xbb\xbf[1]", [1]),
    (b"18446744073709551616", 2.0**64),
]


@pytest.mark.parametrize(("body", "value"), BODIES)
def test_parsed_body(body: bytes, value: Any) -> None:
    parsed = parsed_body(body)
    assert (parsed, type(parsed)) == (value, type(value))


@pytest.mark.parametrize("body", [b"", b"{", b"nan", b"1e999", b"[1,]", b'"\xff"', b"[" * 1100 + b"]" * 1100])
def test_what_is_not_json(body: bytes) -> None:
    with pytest.raises(RequestError, match="the body is not JSON") as refusal:
        parsed_body(body)
    assert refusal.value.status == 400


def test_a_body_that_is_not_utf8_is_refused_with_the_place_of_the_byte() -> None:
    with pytest.raises(RequestError, match="not JSON: not UTF-8, invalid start byte at byte 13") as refusal:
        parsed_body(b'{"content": "\xff"}')
    assert refusal.value.status == 400


def test_too_many_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_body, "MOST_VALUES", 4)
    assert parsed_body(b'["[[[[[{{{", "\\"[[[", 1, 2, 3, 4, 5]') == ["[[[[[{{{", '"[[[', 1, 2, 3, 4, 5]
    for body in (b"[[],[],[],[]]", b'{"a":{"b":{}}}', b'["a","b","c","d"]'):
        with pytest.raises(RequestError) as refusal:
            parsed_body(body)
        assert refusal.value.status == 413


IDS = [
    (5, 5),
    (-1, -1),
    (2.9, 2),
    (-2.9, -2),
    (True, 1),
    (2**31, -(2**31)),  # modulo 2**32
    (2**32 + 7, 7),
    (2.0**31, -(2**31)),  # a float that does not fit
    (-1e300, -(2**31)),
]


@pytest.mark.parametrize(("value", "token"), IDS)
def test_require_id(value: float, token: int) -> None:
    assert require_id(value) == token


def test_fields_of_another_type_count_as_missing() -> None:
    body = {"a": 1, "b": True, "c": None}
    assert [field(body, name, 7) for name in "abcd"] == [1, 7, 7, 7]
    assert field([1], "a", "x") == "x"
    assert [has_field(value, "c") for value in (body, {}, [])] == [True, False, False]


def test_fields_of_our_own_endpoints() -> None:
    assert require_object({"model": None}) == {"model": None}
    assert given_texts({"t": "a"}, "t", 1) == ["a"]
    assert given_texts({"t": ["a", "b"]}, "t", 2) == ["a", "b"]
    assert required_text({"t": ""}, "t") == ""
    assert required_ids({"t": [0, -1, 2**31 - 1, -(2**31)]}, "t", 4) == [0, -1, 2**31 - 1, -(2**31)]
    assert required_ids({"t": []}, "t", 0) == []
    assert [required_number({"n": n}, "n") for n in (0, 2**31 - 1)] == [0, 2**31 - 1]
    assert [given_number(body, "n") for body in ({}, {"n": 5})] == [0, 5]
    assert [given_choice(body, "c", ("a", False)) for body in ({}, {"c": False})] == ["a", False]
    assert [given_flag(body, "f", True) for body in ({}, {"f": False})] == [True, False]
    assert given_flags({}) == {"add_special": True, "parse_special": True}
    assert given_flags({"parse_special": False}, False) == {"add_special": False, "parse_special": False}
    assert bounded_text("é", 2) == "é"


BOUNDS = {name: most for name, most in vars(request_body).items() if name.startswith("MOST_")}
OF_EVERY_BODY = "MOST_VALUES"
ROWS = (ROOT / "docs" / "server.md").read_text("utf-8").partition("## Limits\n")[2].partition("\n\nR")[0]


def bounds_of(function: Any, seen: set[Any]) -> set[str]:
    """The bounds that a function uses, or functions of the server that it calls."""
    if function in seen or not getattr(function, "__module__", "").startswith("ggufbpe.server"):
        return set()
    seen.add(function)
    names = set(function.__code__.co_names)
    called = [function.__globals__.get(name) for name in names]
    of_called = [bounds_of(each, seen) for each in called if inspect.isfunction(each)]
    return (BOUNDS.keys() & names).union(*of_called)


USERS: dict[str, set[str]] = {name: set() for name in BOUNDS}
for endpoint in ENDPOINTS.values():
    for bound in bounds_of(endpoint.answer, set()):
        USERS[bound].add(endpoint.path)


def rows_with(name: str) -> list[str]:
    """The rows of the table of limits that have the number of a bound."""
    most = BOUNDS[name]
    spellings = {str(most), f"{most:,}", f"{most >> 10} kB", f"{most >> 20} MB"}
    return [row for row in ROWS.splitlines() if any(re.search(rf"\b{each}\b", row) for each in spellings)]


def addresses_in(rows: list[str]) -> set[str]:
    return {path for row in rows for path in re.findall(r"`(/[\w/]+)`", row)}


@pytest.mark.parametrize("name", BOUNDS)
def test_the_table_of_limits_has_each_bound_beside_the_addresses_that_use_it(name: str) -> None:
    rows = rows_with(name)
    assert rows
    if name == OF_EVERY_BODY:
        assert any(row.startswith("| a body ") for row in rows)
    else:
        assert USERS[name]
        assert USERS[name] <= addresses_in(rows)


def test_the_table_of_limits_names_no_address_beside_a_bound_that_it_does_not_use() -> None:
    for row in ROWS.splitlines():
        bounds = [name for name in BOUNDS if row in rows_with(name)]
        assert addresses_in([row]) <= set().union(*(USERS[name] for name in bounds))


REFUSED: dict[str, tuple[Callable[[], object], int]] = {
    "type must be string, but is number": (lambda: require_string(1), 400),
    "type must be array, but is object": (lambda: require_ids({}), 400),
    "type must be number, but is string": (lambda: require_ids([1, "2"]), 400),
    "the body must be an object, but is array": (lambda: require_object([]), 400),
    "'model' must be a string": (lambda: require_object({"model": ["a"]}), 400),
    "'t' must be a string or an array of strings": (lambda: given_texts({"t": ["a", 1]}, "t", 9), 400),
    "'t' has 2 texts; the limit is 1": (lambda: given_texts({"t": ["a", "b"]}, "t", 1), 413),
    "'t' is required and must be a string": (lambda: required_text({"t": 1}, "t"), 400),
    "the text has 2 bytes; the limit here is 1": (lambda: bounded_text("é", 1), 413),
    "'t' has an integer that does not fit in a signed 32-bit integer, so it is not an id": (
        lambda: required_ids({"t": [0, 2**31]}, "t", 2),
        400,
    ),
    "'t' has 2 ids; the limit is 1": (lambda: required_ids({"t": [0, "a"]}, "t", 1), 413),
    "'n' is required and must be an integer of 0 or more, below 2^31": (
        lambda: required_number({}, "n"),
        400,
    ),
    "'n' is required and must be an integer of 1 or more, below 2^31": (
        lambda: required_number({"n": 0}, "n", 1),
        400,
    ),
    "'n' must be an integer of 0 or more, below 2^31": (lambda: given_number({"n": 2**31}, "n"), 400),
    "'c' is one of 'a', false": (lambda: given_choice({"c": 0}, "c", ("a", False)), 400),
    "'f' must be true or false": (lambda: given_flag({"f": 1}, "f", True), 400),
}


@pytest.mark.parametrize("given", [None, 1, "1", {}, [1, "2"], [True], [1.0], [[1]], [None]])
def test_ids_of_our_own_endpoints_are_integers(given: Any) -> None:
    """Those of llama-server are any numbers, see `require_id`."""
    with pytest.raises(RequestError) as refusal:
        required_ids({"t": given}, "t", 2)
    message = "'t' is required and must be an array of ids, which are integers"
    assert (refusal.value.status, refusal.value.message) == (400, message)


@pytest.mark.parametrize("message", REFUSED)
def test_refused(message: str) -> None:
    call, status = REFUSED[message]
    with pytest.raises(RequestError) as refusal:
        call()
    assert refusal.value.status == status
    assert refusal.value.message.endswith(message)


@pytest.mark.parametrize("given", [None, "", "{{ messages }}", "a\nb", "chatml", "known:chatml", "tool_use"])
def test_given_template(given: str | None) -> None:
    assert given_template({"chat_template": given}, ["tool_use"]) == given


@pytest.mark.parametrize("given", [__file__, "/no/such/file", "tool_user"])
def test_a_path_is_no_template_whether_or_not_there_is_a_file(given: str) -> None:
    words = "'chat_template' is neither the text of a template nor the name of one"
    with pytest.raises(RequestError) as refusal:
        given_template({"chat_template": given}, ["tool_use"])
    assert (refusal.value.status, refusal.value.message) == (400, words)
