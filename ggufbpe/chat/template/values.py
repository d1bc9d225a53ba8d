"""The values of a template as llama.cpp has them: their text, their JSON, equality and order.

Strings of a template are bytes in llama.cpp: a length counts bytes, an index takes one, and letters beyond ASCII have
no case. Here such a string is a `str` with one character for each byte of its UTF-8 (U+0000 to U+00FF), so that
Python's own methods on `str` do likewise. `viewed` converts JSON values to this form, `plain` converts them back, and
`text` and `value_to_json` write them.

Source: common/jinja/value.h, value.cpp, string.cpp; gather_string_parts_recursive in runtime.h.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from json.encoder import encode_basestring
from typing import Any, TypeAlias

from .attributed_text import Attributed, AttributedInt

Value: TypeAlias = Any  # None, bool, int, float, str, list, tuple, dict, or one of the classes below

WHITE_SPACE = " \t\n\v\f\r"  # of isspace in the C locale


class TemplateError(Exception):
    """Something that a template may not do; the message is llama.cpp's."""


class CallError(TemplateError):
    """A wrong call of a macro, which is the caller's fault."""


class Undefined:
    """A name or property that does not exist; `hint` says which."""

    __slots__ = ("hint",)

    def __init__(self, hint: str = "") -> None:
        self.hint = hint

    def __bool__(self) -> bool:
        return False


class Function:
    """Something that a template can call: `call(arguments)`; the value that it belongs to comes first, if any."""

    __slots__ = ("call", "name", "this")

    def __init__(self, name: str, call: Callable[..., Value], this: tuple[Value, ...] = ()) -> None:
        self.name = name
        self.call = call
        self.this = this

    def __bool__(self) -> bool:
        raise TemplateError("Function is not a bool value")


class Macro(Function):
    """A macro, or the body of a call: `call(scope, arguments)`, the names of where it is called first."""

    __slots__ = ()


class Keyword:
    """An argument given by name."""

    __slots__ = ("name", "value")

    def __init__(self, name: str, value: Value) -> None:
        self.name = name
        self.value = value


class Loop(dict[str, Value]):
    """The variable `loop`: an object without methods."""


UNDEFINED = Undefined("object_property")

# Names that every template has, and may redefine. Source: struct context in runtime.h.
CONSTANTS = {"true": True, "True": True, "false": False, "False": False, "none": None, "None": None}

# The types of values that nothing watches: that there is one is all that has to be known of it.
PLAIN = frozenset((str, bool, int, float, list, tuple, dict, type(None), Function, Macro, Loop))
# the types whose values the filter `default` leaves as they are
GIVEN = frozenset((str, bool, int, float, list, tuple))
SIZED = frozenset((str, list, tuple, dict))  # and those that have a length


def viewed(value: Any) -> Value:
    """JSON in Python as values of a template. `TypeError` for anything else.

    Source: from_json.
    """
    kind = type(value)
    if kind is str:
        return value if value.isascii() else _viewed_text(value)
    if kind is dict:
        return {viewed(_key(key)): viewed(item) for key, item in value.items()}
    if kind is list:
        return [viewed(item) for item in value]
    if value is None or kind is bool:
        return value
    if kind is int:
        return _int64(value)
    if kind is float:
        return value
    if kind is Attributed:
        return value if value.isascii() else value.changed(_viewed_text)
    if kind is AttributedInt:
        return value
    for base, made in _BASES:
        if isinstance(value, base):
            return viewed(made(value))
    raise TypeError(f"a chat is made of what JSON has; it has no {type(value).__name__}")


_BASES: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (str, str.__str__),
    (Mapping, dict),
    (list, list),
    (tuple, list),
    (int, int),
    (float, float),
)


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(f"keys in a chat are strings, as in JSON; one is of type {type(key).__name__}")
    return str(key)


def _viewed_text(text: str) -> str:
    try:
        return text.encode().decode("latin-1")
    except UnicodeEncodeError as error:
        raise ValueError(f"a text of the chat has a lone surrogate at position {error.start}") from None


def _int64(number: int) -> int | float:
    if -(1 << 63) <= number < 1 << 63:
        return number
    if number < 1 << 64 and number > 0:
        return number - (1 << 64)  # it is read as unsigned and used as signed
    try:
        return float(number)
    except OverflowError:
        raise ValueError("number overflow: a number of the chat is too large") from None


def plain(value: Value) -> Any:
    """Values of a template as JSON in Python: the way back from `viewed`. Invalid UTF-8 becomes U+FFFD."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("latin-1").decode("utf-8", "replace")
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return None if isinstance(value, Undefined) else value


def type_name(value: Value) -> str:
    """What llama.cpp calls the type of a value in its messages."""
    if isinstance(value, Undefined):
        return f"Undefined (hint: '{value.hint}')" if value.hint else "Undefined"
    for kind, name in _TYPE_NAMES:
        if isinstance(value, kind):
            return name
    return "Function"


_TYPE_NAMES: tuple[tuple[type, str], ...] = (
    (str, "String"),
    (bool, "Boolean"),
    (int, "Integer"),
    (float, "Float"),
    (list, "Array"),
    (tuple, "Tuple"),
    (dict, "Object"),
    (type(None), "None"),
    (Keyword, "KwArg"),
)


def as_string(value: Value) -> str:
    """A value as a string; `TemplateError` for functions and undefined values, which have none."""
    if isinstance(value, str):
        return str(value)
    if value is None or isinstance(value, (bool, int)):
        return str(value)
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, list):
        return f"[{', '.join(_written(item) for item in value)}]"
    if isinstance(value, tuple):
        return f"({', '.join(_written(item) for item in value)}{',' if len(value) == 1 else ''})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_written(key)}: {_written(item)}' for key, item in value.items())}}}"
    raise TemplateError(f"{type_name(value)} is not a string value")


def _float_text(number: float) -> str:
    if not math.isfinite(number):
        return ("-" if math.copysign(1, number) < 0 else "") + ("nan" if number != number else "inf")
    whole, _, fraction = f"{number:f}".partition(".")
    return f"{whole}.{fraction.rstrip('0') or '0'}"


def _written(value: Value) -> str:
    """A value within an array or object that is written as a string."""
    if isinstance(value, str):
        return value_to_json(value) if "'" in value else f"'{value}'"
    if isinstance(value, Undefined):
        return type_name(value)
    if isinstance(value, Function):
        return f"Function<{value.name}>({''.join(map(_written, value.this))})"
    if isinstance(value, Keyword):
        return "KwArg"
    return as_string(value)


def text(value: Value) -> str:
    """What `{{ value }}` writes: nothing for none, objects and functions; all items for an array."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, int, float)):
        return as_string(value)
    if isinstance(value, (list, tuple)):
        return "".join(map(text, value))
    return ""


def value_to_json(value: Value, indent: int = -1, item: str = ", ", key: str = ": ", level: int = 0) -> str:
    """The JSON of a value as the filter tojson writes it. Source: value_to_json_internal."""
    if isinstance(value, str):
        return encode_basestring(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"{value:g}" if math.isfinite(value) else _float_text(value)
    is_object = isinstance(value, dict)
    if not is_object and not isinstance(value, (list, tuple)):
        return "null"
    opening, closing = "{}" if is_object else "[]"
    if not value:
        return opening + closing
    deeper = level + 1
    parts = [
        f"{value_to_json(as_string(name))}{key}{value_to_json(member, indent, item, key, deeper)}"
        for name, member in (value.items() if is_object else ())
    ] or [value_to_json(member, indent, item, key, deeper) for member in value]
    if indent < 0:
        return opening + item.join(parts) + closing
    inner, outer = " " * (indent * deeper), " " * (indent * level)
    return f"{opening}\n{inner}{f'{item}{chr(10)}{inner}'.join(parts)}\n{outer}{closing}"


def hashable(value: Value) -> bool:
    """Whether a value may be compared member by member, or be part of a key."""
    if isinstance(value, (Undefined, Function)):
        return False
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return all(not isinstance(member, (list, dict)) and hashable(member) for member in value) or not value
    return True


def equal(left: Value, right: Value) -> bool:
    """Whether `left == right` in a template."""
    if isinstance(left, str):
        return isinstance(right, str) and left == right
    if isinstance(left, (bool, int, float)):
        return isinstance(right, (bool, int, float)) and left == right
    if left is None:
        return right is None
    if isinstance(left, Undefined):
        return isinstance(right, Undefined)
    if isinstance(left, Function):
        return isinstance(right, Function) and left.call is right.call
    for kind in (list, tuple, dict):
        if isinstance(left, kind):
            return (
                isinstance(right, kind) and hashable(left) and hashable(right) and _members_equal(left, right)
            )
    return False


def _members_equal(left: Value, right: Value) -> bool:
    if isinstance(left, dict):
        left, right = list(left.items()), list(right.items())
    return len(left) == len(right) and all(equal(a, b) for a, b in zip(left, right))


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "ge": lambda a, b: a >= b,
    "gt": lambda a, b: a > b,
    "lt": lambda a, b: a < b,
}


def compared(left: Value, right: Value, how: str) -> bool:
    """The order used by tests such as `is gt` and by the filters sort, min and max. Source: value_compare."""
    kinds = {_comparable(left), _comparable(right)}
    if kinds == {"number"}:
        return _COMPARISONS[how](float(left), float(right))
    if kinds <= {"number", "string"}:
        return _COMPARISONS[how](as_string(left), as_string(right))
    if isinstance(left, bool) and isinstance(right, bool):
        if how not in ("eq", "ne"):
            raise TemplateError("Unsupported comparison operator for bool type")
        return _COMPARISONS[how](left, right)
    return False


def _comparable(value: Value) -> str:
    if isinstance(value, str):
        return "string"
    return "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else ""
