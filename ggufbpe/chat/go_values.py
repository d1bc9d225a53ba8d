"""The values of a Go template, how Go prints them, their JSON, and the functions that every template has.

Texts are `viewed`, slices are lists or tuples (a nil slice is the empty tuple), maps are dicts.

Source: text/template/funcs.go, fmt/print.go and strconv/ftoa.go of Go 1.19; encoding/json/encode.go as of 1.22, which
writes a backspace as \\b.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any

from .template.values import TemplateError, Value

NO_VALUE = object()  # Go's invalid value; None is a nil interface


class Struct:
    """A struct: its fields, the names of those that its JSON has, and its methods.

    A pointer to a struct equals only itself, and only the outermost one is printed.
    """

    def __init__(
        self,
        fields: Mapping[str, Value],
        json: Mapping[str, str] | None = None,
        is_pointer: bool = False,
    ) -> None:
        self.fields, self.is_pointer = fields, is_pointer
        self.json_names = {name: name for name in fields} if json is None else json
        self.methods: dict[str, Callable[[], Value]] = {}


class Named:
    """What slices and maps of a type with methods inherit: what they print as, and their JSON."""

    @property
    def methods(self) -> Mapping[str, Callable[[], Value]]:
        return {"String": self.go_text}

    def go_text(self) -> str:
        return go_json_text(self)

    def go_json(self) -> Value:
        """The value that stands for this one in JSON."""
        return dict(self) if isinstance(self, dict) else list(self)  # type: ignore[call-overload]


def go_json_text(value: Value) -> str:
    """The JSON that encoding/json makes of a value: keys sorted, and <, > and & escaped."""
    if isinstance(value, Named):
        value = value.go_json()
    if value is None or value is NO_VALUE or value == ():
        return "null"
    if isinstance(value, str):
        text = encode_basestring(value.encode("latin-1").decode("utf-8", "surrogateescape"))
        return _UNSAFE.sub(_escaped, text).encode().decode("latin-1")
    if isinstance(value, float):
        text = float_text(value, -6, 21)
        return re.sub(r"e-0(?=[0-9]$)", "e-", text)
    if isinstance(value, (bool, int)):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(go_json_text, value))}]"
    if isinstance(value, Struct):
        members = [(name, value.fields[field]) for field, name in value.json_names.items()]
    else:
        members = sorted(value.items())
    return f"{{{','.join(f'{go_json_text(name)}:{go_json_text(each)}' for name, each in members)}}}"


_UNSAFE = re.compile("[<>&\u2028\u2029\udc80-\udcff]")


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\u{0xFFFD if code >= 0xDC80 else code:04x}"


def float_text(number: float, least: int = -4, most: int = 6) -> str:
    """The shortest digits of a number, with an exponent below `least` and from `most` on."""
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    text, point = "".join(map(str, digits)), len(digits) + int(exponent)
    if number and not least <= point - 1 < most:
        shown = f"{text[0]}.{text[1:]}".rstrip(".") + f"e{point - 1:+03d}"
    else:
        shown = f"{abs(Decimal(repr(number))).normalize():f}"
    return "-" * sign + shown


def printed(value: Value, inside: bool = False) -> str:
    """What Go prints for a value; `inside` of another one."""
    if isinstance(value, (Named, Struct)) and "String" in value.methods:
        return str(value.methods["String"]())
    if isinstance(value, Struct):
        if value.is_pointer and inside:
            raise TemplateError("Go prints an address here, which is another in each run")
        return f"{{{' '.join(printed(each, True) for each in value.fields.values())}}}"
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{printed(value[key], True)}' for key in sorted(value))}]"
    if isinstance(value, (list, tuple)):
        return f"[{' '.join(printed(each, True) for each in value)}]"
    if value is None or value is NO_VALUE:
        return "<nil>"
    if isinstance(value, str):
        return value
    return float_text(value) if isinstance(value, float) else str(value).lower()


def _argument(value: Value) -> str:
    """What Go prints for a value that it is given as such."""
    return ("&" if isinstance(value, Struct) and value.is_pointer else "") + printed(value)


def sprintf(template: Any, *values: Value) -> str:
    """What fmt.Sprintf returns for %s, %d, %t and %v. `TemplateError` for other verbs, and values of other types."""
    parts, left = re.split(r"(%.?)", template, flags=re.DOTALL), list(values)
    for place in range(1, len(parts), 2):
        if parts[place] == "%%":
            parts[place] = "%"
            continue
        takes = _VERBS.get(parts[place])
        if (
            takes is None
            or not left
            or not isinstance(left[0], takes)
            or (type(left[0]), parts[place]) == (bool, "%d")
        ):
            raise TemplateError(f"printf: {parts[place]} is not supported for this value")
        parts[place] = _argument(left.pop(0))
    if left:
        raise TemplateError("printf: more values than verbs")
    return "".join(parts)


_VERBS: dict[str, type | tuple[type, ...]] = {"%s": (str, Named), "%d": int, "%t": bool, "%v": object}


def sprint(*values: Value) -> str:
    """What fmt.Sprint returns: a space between two values of which neither is a text."""
    parts = list(map(_argument, values))
    for place in range(len(values) - 1, 0, -1):
        if not isinstance(values[place], str) and not isinstance(values[place - 1], str):
            parts.insert(place, " ")
    return "".join(parts)


def go_truth(value: Value) -> bool:
    """Whether a value is true for `if`: a struct always, anything else if it is not empty or zero."""
    return isinstance(value, Struct) or (value is not NO_VALUE and bool(value))


def _kind(value: Value) -> type | None:
    """The type of what can be compared by size or is no container; None for others."""
    return next((kind for kind in (str, bool, int, float) if isinstance(value, kind)), None)


def go_equal(first: Value, *others: Value) -> bool:
    """`eq`: whether the first value equals one of the others."""
    if not others:
        raise TemplateError("missing argument for comparison")
    return any(_equals(first, other) for other in others)


def _equals(left: Value, right: Value) -> bool:
    absent = _is_absent(left) or _is_absent(right)
    if _kind(left) != _kind(right) and not absent:
        raise TemplateError("incompatible types for comparison")
    if _kind(left) is not None and not absent:
        return bool(left == right)
    if not absent and _container(left) != _container(right):
        raise TemplateError("values of unlike kinds cannot be compared")
    if _is_nil(left) or _is_nil(right):
        return _is_nil(left) and _is_nil(right)
    if not (isinstance(left, Struct) and left.is_pointer):
        raise TemplateError("slices, maps and structs cannot be compared")
    return left is right


def _is_absent(value: Value) -> bool:
    """Whether there is no value at all, not even a nil slice or map."""
    return value is None or value is NO_VALUE


def _container(value: Value) -> tuple[bool, bool, bool]:
    """What tells a slice, a map, a struct and a pointer to one apart."""
    return isinstance(value, dict), isinstance(value, Struct), isinstance(value, Struct) and value.is_pointer


def _is_nil(value: Value) -> bool:
    return (value.go_json() if isinstance(value, Named) else value) in (None, (), NO_VALUE)


def _ordered(holds: Callable[[Any, Any], bool]) -> Callable[[Value, Value], bool]:
    def compared(left: Value, right: Value) -> bool:
        if _kind(left) not in (str, int, float) or _kind(left) is not _kind(right):
            raise TemplateError("values of these types have no order")
        return holds(left, right)

    return compared


def index(value: Value, *keys: Value) -> Value:
    """The member of a map or slice, and of that one, and so on."""
    if _is_absent(value):
        raise TemplateError("index of untyped nil")
    for key in keys:
        if isinstance(value, dict) and isinstance(key, str):
            value = value.get(key)
        elif isinstance(value, (str, list, tuple)):
            member = value[_place(key, len(value) - 1)]
            value = ord(member) if isinstance(value, str) else member
        else:
            raise TemplateError("index of a value that has no members by such a key")
    return value


def part(value: Value, *bounds: Value) -> Value:
    """`slice`: a text or slice between two places; beyond its end there is nothing, whatever Go has allocated."""
    if not isinstance(value, (str, list, tuple)) or len(bounds) > 2:
        raise TemplateError("slice takes a text or a slice, and two places")
    start, end = [*(_place(each, len(value)) for each in bounds), *(0, len(value))[len(bounds) :]]
    if start > end:
        raise TemplateError(f"invalid slice index: {start} > {end}")
    kept = value[start:end]
    if isinstance(value, Named):
        return type(value)(kept)
    return list(kept) if value and isinstance(value, tuple) else kept  # what is left of a slice is not nil


def _place(key: Value, last: int) -> int:
    if type(key) is not int or not 0 <= key <= last:
        raise TemplateError(f"index out of range: {printed(key)}")
    return key


def length(value: Value) -> int:
    """`len`: bytes of a text, members of a slice or map."""
    if not isinstance(value, (str, list, tuple, dict)):
        raise TemplateError("len of a value that has no length")
    return len(value)


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "eq": go_equal,
    "ne": lambda left, right: not _equals(left, right),
    "lt": _ordered(operator.lt),
    "le": _ordered(operator.le),
    "gt": _ordered(operator.gt),
    "ge": _ordered(operator.ge),
    "not": lambda value: not go_truth(value),
    "index": index,
    "slice": part,
    "len": length,
    "print": sprint,
    "printf": sprintf,
}
