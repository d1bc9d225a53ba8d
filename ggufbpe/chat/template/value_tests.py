"""The tests of a template, such as `value is string`, in a table by name.

Source: global_builtins in common/jinja/value.cpp, whose names are those here after `test_is_`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from . import array_methods as arrays
from . import string_methods as strings
from .call_arguments import Arguments, Builtin, Table, is_a
from .values import Function, TemplateError, Undefined, Value, compared

if TYPE_CHECKING:
    from .runtime import Runtime


def is_same(run: Runtime, arguments: Arguments) -> Value:
    """Whether two values are the same object; Python keeps only one of small ones."""
    arguments.need(2)
    a, b = arguments[0], arguments[1]
    if isinstance(a, Undefined) or isinstance(b, Undefined):
        return False
    if a is None and b is None:
        return True
    if isinstance(a, bool) and isinstance(b, bool):
        return a == b
    if is_a(a, int) and is_a(b, int):
        return -5 <= a <= 256 and a == b
    return a is b


def _of_kind(*kinds: type) -> Builtin:
    def test(run: Runtime, arguments: Arguments) -> Value:
        arguments.need(1)
        return any(is_a(arguments[0], kind) for kind in kinds)

    return test


def _compared(how: str) -> Builtin:
    def test(run: Runtime, arguments: Arguments) -> Value:
        arguments.need(2, 2)
        return compared(arguments[0], arguments[1], how)

    return test


def _of_number(holds: Callable[[int], bool]) -> Builtin:
    def test(run: Runtime, arguments: Arguments) -> Value:
        arguments.need_kinds(int)
        return holds(arguments[0])

    return test


def _of_letters(letters: str) -> Builtin:
    other = re.compile(letters)

    def test(run: Runtime, arguments: Arguments) -> Value:
        arguments.need_kinds(str)
        run.scan(len(arguments[0]))
        return other.search(arguments[0]) is None

    return test


def _divides(run: Runtime, arguments: Arguments) -> Value:
    arguments.need_kinds(int, int)
    if not arguments[1]:
        raise TemplateError("division by zero")
    return arguments[0] % arguments[1] == 0


def _is_bool(value: bool) -> Builtin:
    def test(run: Runtime, arguments: Arguments) -> Value:
        arguments.need(1)
        return arguments[0] is value

    return test


def _is_in(run: Runtime, arguments: Arguments) -> Value:
    arguments.need(2)
    return arrays.is_in(run, arguments[0], arguments[1])


def _is_test(run: Runtime, arguments: Arguments) -> Value:
    arguments.need_kinds(str)
    return arguments[0] in TESTS


_SEQUENCE = _of_kind(dict, list, str, Undefined)

TESTS: Table = {
    "boolean": _of_kind(bool),
    "callable": _of_kind(Function),
    "odd": _of_number(lambda number: number % 2 != 0),
    "even": _of_number(lambda number: number % 2 == 0),
    "false": _is_bool(False),
    "true": _is_bool(True),
    "divisibleby": _divides,
    "string": _of_kind(str),
    "integer": _of_kind(int),
    "float": _of_kind(float),
    "number": _of_kind(int, float),
    "iterable": _SEQUENCE,
    "sequence": _SEQUENCE,
    "mapping": _of_kind(dict),
    "lower": _of_letters("[A-Z]"),
    "upper": _of_letters("[a-z]"),
    "none": _of_kind(type(None)),
    "defined": lambda run, arguments: not _of_kind(Undefined)(run, arguments),
    "undefined": _of_kind(Undefined),
    "eq": _compared("eq"),
    "equalto": _compared("eq"),
    "ge": _compared("ge"),
    "gt": _compared("gt"),
    "greaterthan": _compared("gt"),
    "lt": _compared("lt"),
    "lessthan": _compared("lt"),
    "ne": _compared("ne"),
    "in": _is_in,
    "test": _is_test,
    "sameas": is_same,
    "escaped": strings.not_implemented("escaped test"),
    "filter": strings.not_implemented("filter test"),
}
