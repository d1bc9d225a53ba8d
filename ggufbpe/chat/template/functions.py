"""The functions and filters that a template has, in tables by the type of value they belong to.

Source: global_builtins and get_builtins in common/jinja/value.cpp.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, Any

from . import array_methods as arrays
from . import string_methods as strings
from .call_arguments import Arguments, Builtin, Table, as_int, is_a, size_of, truth
from .operators import cast_to_int, negated, slice_of
from .value_tests import TESTS
from .values import (
    Loop,
    TemplateError,
    Undefined,
    Value,
    as_string,
    plain,
    value_to_json,
    viewed,
)

if TYPE_CHECKING:
    from .runtime import Runtime


def tojson(run: Runtime, arguments: Arguments) -> Value:
    """The JSON of a value."""
    arguments.need(1, 5)
    ascii_only, indent = arguments.get("ensure_ascii", 1), arguments.get("indent", 2)
    separators, in_order = arguments.get("separators", 3), arguments.get("sort_keys", 4)
    run.look_at_all(arguments[0])
    if truth(in_order):
        raise TemplateError("NotImplemented: tojson sort_keys=true not implemented")
    width = (indent + (1 << 31)) % (1 << 32) - (1 << 31) if is_a(indent, int) else -1  # an int of C
    given = separators if isinstance(separators, (list, tuple)) else []
    item = run.string(given[0]) if given else (", " if width < 0 else ",")
    key = run.string(given[1]) if len(given) > 1 else ": "
    run.weigh(arguments[0], 8 + len(item) + len(key), 2 * max(width, 0), visit=15)
    written = value_to_json(arguments[0], width, item, key)
    return in_ascii(written) if truth(ascii_only) else written


def in_ascii(text: str) -> str:
    """JSON with everything beyond ASCII escaped.

    >>> in_ascii('"\\u00c3\\u00a4"')
    '"\\\\u00e4"'
    """
    if text.isascii():
        return text
    wide = text.encode("latin-1").decode("utf-8", "replace")
    return _BEYOND_ASCII.sub(lambda match: encode_basestring_ascii(match[0])[1:-1], wide)


_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")


def default(run: Runtime, arguments: Arguments) -> Value:
    """The value, or the default where it is undefined or none, or with `boolean` where it is false."""
    arguments.need(2, 3)
    value = arguments[0]
    if truth(arguments.get("boolean", 2)):
        return value if truth(value) else arguments[1]
    return arguments[1] if value is None or isinstance(value, Undefined) else value


def written(run: Runtime, arguments: Arguments) -> Value:
    """A value as a string."""
    run.look_at_all(arguments[0])
    return run.string(arguments[0])


def absolute(run: Runtime, arguments: Arguments) -> Value:
    """A number without its sign."""
    return negated(arguments[0]) if arguments[0] < 0 else arguments[0] * 1  # another float


def number_as_int(run: Runtime, arguments: Arguments) -> Value:
    """A number or bool as an int."""
    return cast_to_int(arguments[0]) if isinstance(arguments[0], float) else as_int(arguments[0])


def number_as_float(run: Runtime, arguments: Arguments) -> Value:
    """A number or bool as a float."""
    return arguments[0] * 1.0  # another float


def constant(make: Callable[[], Value]) -> Builtin:
    """A function that always gives the same, like those of undefined values."""
    return lambda run, arguments: make()


def raise_exception(run: Runtime, arguments: Arguments) -> Value:
    """Refuses the chat, in the template's words."""
    arguments.need_kinds(str)
    raise TemplateError("Jinja Exception: " + arguments[0])


def strftime_now(run: Runtime, arguments: Arguments) -> Value:
    """The date and time in a given format."""
    arguments.need_kinds(str)
    if len(arguments[0]) > 4096:
        raise TemplateError("strftime_now: failed to format time")
    run.step(30 + len(arguments[0]))
    date = time.strftime(plain(as_string(arguments[0])).partition("\0")[0], run.now)
    out: str = viewed(date)
    if not 0 < len(out) < 100:
        raise TemplateError("strftime_now: failed to format time")
    return out


def number_range(run: Runtime, arguments: Arguments) -> Value:
    """Whole numbers as an array, as Python's range gives them."""
    numbers = checked_range(arguments)
    run.step(len(numbers) >> 1)
    run.spend(32 * len(numbers))
    return list(numbers)


def checked_range(arguments: Arguments) -> range:
    """The numbers of the function range. `TemplateError` for arguments that it does not take."""
    arguments.need(1, 3)
    arguments.need_kinds(int)
    numbers = [as_int(value) for value in arguments]
    if len(numbers) == 3 and numbers[2] == 0:
        raise TemplateError("range() step argument must not be zero")
    return range(*numbers)


def sliced(run: Runtime, arguments: Arguments) -> Value:
    """The items of an array or the bytes of a text from one to another; all three numbers are required."""
    arguments.need(1, 4)
    value = arguments[0]
    arguments.need_kinds(str if isinstance(value, str) else list, int)
    start, stop, step = map(as_int, [*arguments[1:], Undefined(), Undefined()][:3])
    if step == 0:
        raise TemplateError("slice step cannot be zero")
    picked = slice_of(len(value), start, stop, step)
    size = len(range(*picked.indices(len(value))))
    if isinstance(value, str):
        run.spend(size)
        return str(value[picked])
    run.items(size)
    return value[picked]


GLOBALS: Table = {
    "raise_exception": raise_exception,
    "dict": arrays.namespace,
    "namespace": arrays.namespace,
    "strftime_now": strftime_now,
    "range": number_range,
    "tojson": tojson,
    **{f"test_is_{name}": test for name, test in TESTS.items()},
}

_NUMBER: Table = {
    "default": default,
    "abs": absolute,
    "int": number_as_int,
    "float": number_as_float,
    "safe": tojson,
    "string": tojson,
    "tojson": tojson,
}
_BOOL: Table = {
    "default": default,
    "int": number_as_int,
    "float": number_as_float,
    "safe": written,
    "string": written,
    "tojson": tojson,
}
_STRING: Table = {
    "default": default,
    "upper": strings.upper_case,
    "lower": strings.lower_case,
    "strip": strings.strip,
    "rstrip": strings.rstrip,
    "lstrip": strings.lstrip,
    "title": strings.title,
    "capitalize": strings.capitalize,
    "length": size_of(str),
    "startswith": strings.startswith,
    "endswith": strings.endswith,
    "split": strings.split_at,
    "rsplit": strings.split_at_from_end,
    "replace": strings.replaced,
    "format": strings.formatted,
    "int": strings.leading_int_or_default,
    "float": strings.leading_float_or_default,
    "string": strings.copied,
    "safe": strings.unchanged,
    "tojson": tojson,
    "indent": strings.indent,
    "slice": sliced,
    "join": strings.not_implemented("String join builtin"),
}
_ARRAY: Table = {
    "default": default,
    "list": arrays.as_list,
    "first": arrays.first,
    "last": arrays.last,
    "length": size_of(list),
    "slice": sliced,
    "selectattr": arrays.select,
    "select": arrays.select,
    "rejectattr": arrays.reject,
    "reject": arrays.reject,
    "join": arrays.join,
    "string": written,
    "tojson": tojson,
    "map": arrays.mapped,
    "append": arrays.append,
    "pop": arrays.pop,
    "sort": arrays.sort,
    "reverse": arrays.reverse,
    "min": arrays.least,
    "max": arrays.greatest,
    "unique": strings.not_implemented("Array unique builtin"),
}
_OBJECT: Table = {
    "get": arrays.get,
    "keys": arrays.keys,
    "values": arrays.values,
    "items": arrays.items,
    "tojson": tojson,
    "string": written,
    "length": size_of(dict),
    "dictsort": arrays.dictsort,
    "join": strings.not_implemented("object join"),
}
_NONE: Table = {
    "default": default,
    "tojson": tojson,
    "string": written,
    "safe": written,
    **dict.fromkeys(
        ("items", "map", "reject", "rejectattr", "select", "selectattr", "unique"), constant(list)
    ),
}
_UNDEFINED: Table = {
    "default": default,
    **dict.fromkeys(
        ("capitalize", "join", "lower", "replace", "safe", "string", "strip", "title", "truncate", "upper"),
        constant(str),
    ),
    **dict.fromkeys(
        ("items", "list", "map", "reject", "rejectattr", "reverse", "select", "selectattr", "sort", "unique"),
        constant(list),
    ),
    **dict.fromkeys(("first", "last", "max", "min"), constant(Undefined)),
    **dict.fromkeys(("length", "sum", "wordcount"), constant(int)),
}

METHODS: dict[type, Table] = {
    str: _STRING,
    bool: _BOOL,
    int: _NUMBER,
    float: _NUMBER,
    list: _ARRAY,
    tuple: _ARRAY,
    Loop: {},
    dict: _OBJECT,
    type(None): _NONE,
    Undefined: _UNDEFINED,
}


NO_METHODS: Table = {}


def methods_for(value: Any) -> Table:
    """The filters and methods of a value's type; `TemplateError` where it has none, as functions do."""
    table = METHODS.get(value.__class__)
    if table is not None:
        return table
    for kind, table in METHODS.items():
        if isinstance(value, kind):
            return table
    raise TemplateError("Function has no builtins")
