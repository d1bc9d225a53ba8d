"""The arguments of functions that a template calls, checked as llama.cpp checks them.

Source: struct func_args in common/jinja/value.h and value.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from .values import CallError, Function, Keyword, TemplateError, Undefined, Value, type_name

if TYPE_CHECKING:
    from .runtime import Runtime

Builtin: TypeAlias = "Callable[[Runtime, Arguments], Value]"
Table: TypeAlias = Mapping[str, Builtin]
Scope = dict[str, Value]  # names and what they stand for

# What messages call a type: its name as g++ mangles it.
MANGLED = {
    str: "St10shared_ptrIN5jinja14value_string_tEE",
    int: "St10shared_ptrIN5jinja11value_int_tEE",
    float: "St10shared_ptrIN5jinja13value_float_tEE",
    bool: "St10shared_ptrIN5jinja12value_bool_tEE",
    list: "St10shared_ptrIN5jinja13value_array_tEE",
    dict: "St10shared_ptrIN5jinja14value_object_tEE",
}


class Arguments(list[Value]):
    """The arguments of one call in their order, the value that a method belongs to first."""

    function: str = ""

    def need(self, least: int, most: int = 999) -> None:
        """`TemplateError` unless this many were given."""
        if not least <= len(self) <= most:
            raise TemplateError(
                f"Function '{self.function}' expected between {least} and {most} arguments, got {len(self)}"
            )

    def need_kinds(self, *kinds: type) -> None:
        """`TemplateError` unless the first arguments are of these kinds; more may follow."""
        self.need(len(kinds))
        for value, kind in zip(self, kinds):
            if type(value) is not kind and not is_a(value, kind):
                raise TemplateError(
                    f"Function '{self.function}' expected value of type {MANGLED[kind]}, got {type_name(value)}"
                )

    def at(self, position: int) -> Value:
        """The argument at a position; `TemplateError` where there are fewer."""
        if position >= len(self):
            raise TemplateError(
                f"Function '{self.function}' expected at least {position + 1} arguments, got {len(self)}"
            )
        return self[position]

    def named(self, name: str, otherwise: Value) -> Value:
        """The argument given by this name."""
        for value in self:
            if isinstance(value, Keyword) and value.name == name:
                return value.value
        return otherwise

    def get(self, name: str, position: int) -> Value:
        """The argument with this name, or else the one at this position, or else undefined."""
        value = self.named(name, _MISSING)
        if isinstance(value, Undefined) and position < len(self) and not isinstance(self[position], Keyword):
            return self[position]
        return value


_MISSING = Undefined()


def size_of(kind: type) -> Builtin:
    """Return the built-in `length` of values of `kind`: the number of bytes of UTF-8, items or members."""

    def size(run: Runtime, arguments: Arguments) -> Value:
        arguments.need_kinds(kind)
        return len(arguments[0])

    return size


def is_a(value: Value, kind: type) -> bool:
    """Whether a value is of llama.cpp's type for `kind`: a tuple is an array, a bool is no int."""
    if kind is list:
        return isinstance(value, (list, tuple))
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, kind)


def truth(value: Value) -> bool:
    """Whether a value counts as true; `TemplateError` for a function."""
    if isinstance(value, (Function, Keyword)):
        raise TemplateError(f"{type_name(value)} is not a bool value")
    return bool(value)


def as_int(value: Value) -> int:
    """An int out of a number or bool; `TemplateError` for anything else."""
    if isinstance(value, float):
        return int(value) if abs(value) < 1 << 63 else 0
    if isinstance(value, int):
        return int(value)
    raise TemplateError(f"{type_name(value)} is not an int value")


def as_float(value: Value) -> float:
    """A float out of a number; `TemplateError` for anything else, bools included."""
    if is_a(value, int) or isinstance(value, float):
        return float(value)
    raise TemplateError(f"{type_name(value)} is not a float value")


Parameters = list[tuple[str, Callable[[Scope], Value] | None]]  # names and defaults


def bind(name: str, parameters: Parameters, inner: Scope, scope: Scope, given: list[Value]) -> None:
    """Set the parameters of a macro in the scope of its body, `inner`; defaults are evaluated in its caller's.

    As in llama.cpp, an argument by name is found only if at least as many arguments are given as there are parameters
    before it, and a parameter that is skipped in this way is undefined: it does not get its default.

    Source: bind_parameters.
    """
    by_name = Arguments(given) if Keyword in map(type, given) else None
    count = len(given)
    for position, (parameter, default) in enumerate(parameters):
        if position < count:
            inner[parameter] = given[position] if by_name is None else by_name.get(parameter, position)
        elif default is not None:
            inner[parameter] = default(scope)
        else:
            raise CallError(f"Not enough arguments provided to '{name}'")
