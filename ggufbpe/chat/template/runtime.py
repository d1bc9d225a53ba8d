"""Implements what a compiled template calls, within the limits of a run: names, members, calls, loops.

Nothing here looks up an attribute of a Python object for a template: names are keys of dicts, and methods come from
the tables in `functions`.

Source: common/jinja/runtime.cpp.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from . import array_methods as arrays
from .call_arguments import Arguments, Builtin, Scope, as_int
from .functions import GLOBALS, METHODS, NO_METHODS, checked_range, methods_for, number_range
from .operations import Operations
from .run_limits import ChatSize, LimitError
from .value_tests import TESTS
from .values import (
    UNDEFINED,
    Function,
    Macro,
    TemplateError,
    Undefined,
    Value,
    hashable,
    type_name,
)

DEEPEST_CALLS = 150
_CALL = 10  # steps of the call of a macro, besides those of its body
_LONG = 1000  # characters of a string that costs more to look at than to handle

_COERCED = frozenset(("capitalize", "lower", "replace", "strip", "title", "upper", "wordcount"))


class Runtime(Operations):
    """One run of a template: its clock and what is left of its limits."""

    def __init__(self, now: time.struct_time, chat_size: Callable[[], ChatSize] = ChatSize) -> None:
        super().__init__(chat_size)
        self.now = now
        self.depth = 0

    # ---- names and members ----------------------------------------------------------------------

    def name(self, scope: Scope, name: str) -> Value:
        """What a name stands for."""
        value = scope.get(name, UNDEFINED)
        if type(value) is Undefined:
            return Function(name, GLOBALS[name]) if name in GLOBALS else Undefined(name)
        return value

    def method(self, value: Value, name: str) -> Value:
        """A method bound to its value; undefined if there is none."""
        function = methods_for(value).get(name)
        return Undefined(name) if function is None else Function(name, function, (value,))

    def attribute(self, value: Value, name: str) -> Value:
        """`value.name`: a method if there is one, otherwise a member."""
        member = methods_for(value).get(name)
        if member is not None:
            return Function(name, member, (value,))
        if isinstance(value, dict):
            member = value.get(name, UNDEFINED)
            return Undefined(name) if type(member) is Undefined else member
        return UNDEFINED if isinstance(value, Undefined) else Undefined(name)

    def item(self, value: Value, key: Value) -> Value:
        """`value[key]`."""
        if type(value) is dict and type(key) is str:  # the most common case
            if len(key) >= _LONG:
                self.read((key,))
            member = value.get(key, UNDEFINED)
            return self.method(value, key) if type(member) is Undefined else member
        if type(key) is int and (type(value) is list or type(value) is tuple):
            return value[key] if -len(value) <= key < len(value) else UNDEFINED
        if isinstance(key, Undefined):
            return UNDEFINED
        self.weigh_key(key)
        if not hashable(key):
            raise TemplateError(f"Type: {type_name(key)} is not allowed as object key")
        if isinstance(value, Undefined):
            return UNDEFINED
        if isinstance(value, dict):
            self.check_key(key, len(value))
            member = value.get(key, UNDEFINED)
            return self.method(value, self.string(key)) if isinstance(member, Undefined) else member
        if isinstance(value, (list, tuple, str)):
            if isinstance(key, int):
                if isinstance(value, str):
                    return value[key] if 0 <= key < len(value) else UNDEFINED
                return arrays.item_or(value, key, UNDEFINED)
            return self.method(value, key) if isinstance(key, str) else UNDEFINED
        if not isinstance(key, str):
            raise TemplateError(f"Cannot access property with non-string: got {type_name(key)}")
        return self.method(value, key)

    def slice(self, value: Value, *, start: Value = ..., stop: Value = ..., step: Value = 1) -> Value:
        """`value[start:stop:step]`; `...` for a bound that is left out, since None is a template's `none`."""
        size = len(value) if isinstance(value, (str, list, tuple)) else 0
        if start is ...:
            start = size - 1 if as_int(step) < 0 else 0
        if stop is ...:
            stop = -1 if as_int(step) < 0 else size
        given = Arguments((value, start, stop, step))
        given.function = "slice"
        return Runtime.filter_of(self, value, "slice")(self, given)

    def insert(self, target: dict[Value, Value], key: Value, value: Value) -> None:
        """Set a member of an object, which grows only if the key is new."""
        self.check_key(key, len(target))
        if key not in target:
            self.spend(16)
        target[key] = value

    def made_object(self, *pairs: tuple[Value, Value]) -> dict[Value, Value]:
        """`{key: value}`."""
        self.spend(64)
        out: dict[Value, Value] = {}
        for key, value in pairs:
            self.insert(out, key, value)
        return out

    def set_member(self, target: Value, name: str, value: Value, continues: bool = False) -> None:
        """`{% set target.name = value %}`; `continues` if the value begins with the old one."""
        if not isinstance(target, dict):
            raise TemplateError("Cannot assign to member of non-object")
        if continues:
            if name not in target:
                self.spend(16)
            self.replace(target, name, value)
        else:
            self.insert(target, name, value)

    # ---- calls ----------------------------------------------------------------------------------

    def fail(self, reason: str, *_: Value) -> None:
        """End the run."""
        raise TemplateError(reason)

    def call(self, scope: Scope, arguments: list[Value], function: Value) -> Value:
        """`function(arguments)`; a macro sees the names of where it is called."""
        if type(function) is Macro:
            self.steps -= _CALL
            self.depth += 1
            if self.depth > DEEPEST_CALLS:
                raise LimitError(f"the template's macros call each other more than {DEEPEST_CALLS} deep")
            try:
                return function.call(scope, arguments)
            finally:
                self.depth -= 1
        if not isinstance(function, Function):
            raise TemplateError(f"Callee is not a function: got {type_name(function)}")
        given = Arguments((*function.this, *arguments))
        given.function = function.name
        self.read(given)
        return self.applied(function.call, given)

    def call_method(self, scope: Scope, arguments: list[Value], value: Value, name: str) -> Value:
        """`value.name(arguments)`."""
        method = METHODS.get(value.__class__, NO_METHODS).get(name)
        if method is None:
            return self.call(scope, arguments, self.attribute(value, name))
        given = Arguments((value, *arguments))
        given.function = name
        self.read(given)
        return self.applied(method, given)

    def applied(self, function: Builtin, given: Arguments) -> Value:
        """The result of a function or filter, counted."""
        value = function(self, given)
        if isinstance(value, str):
            self.characters -= len(value)
            if self.characters < 0:
                self.spend(0)
        return value

    def filter(self, value: Value, name: str, arguments: list[Value] | None) -> Value:
        """`value | name(arguments)`; None for `value | name`, the only form that makes other values texts."""
        if arguments is None and name in _COERCED and not isinstance(value, (str, Undefined)):
            value = self.string(value)
        function = self.filter_of(value, name)
        given = Arguments((value, *(arguments or ())))
        given.function = name
        self.read(given)
        return self.applied(function, given)

    def filter_of(self, value: Value, name: str) -> Builtin:
        """The function of a filter; `TemplateError` if the value's type has none."""
        function = methods_for(value).get(name)
        if function is None:
            raise TemplateError(f"Unknown (built-in) filter '{name}' for type {type_name(value)}")
        return function

    def test(self, name: str, arguments: list[Value]) -> Value:
        """`value is name(arguments)`, the value first among the arguments."""
        function = self.test_named(name)
        if function is None:
            raise TemplateError(f"Unknown test '{name}'")
        self.read(arguments)
        return function(self, Arguments(arguments))

    def test_named(self, name: str) -> Builtin | None:
        """The function of a test."""
        return TESTS.get(name)

    def look_at_all(self, value: Value) -> None:
        """Called when a function looks at all members of a value; only the probing of capabilities notes it."""

    def by_parts(self, change: Callable[[str], str], text: str) -> str:
        """The text with each of its parts changed; a run that keeps no parts has only one."""
        return change(text)

    # ---- statements -----------------------------------------------------------------------------

    def rows(self, value: Value, names: int) -> list[Value]:
        """The rows of a loop: for an object its keys, or pairs if there are several names (0: a single name)."""
        if isinstance(value, Undefined):
            return []
        if isinstance(value, dict):
            items = list(value.items()) if names else list(value)
        elif isinstance(value, (list, tuple)):
            items = list(value)
        else:
            raise TemplateError(f"Expected iterable or object type in for loop: got {type_name(value)}")
        self.items(len(items))
        if names:
            self.step(len(items) * 2)
            for item in items:
                self.unpacked(item, names, "")
        return items

    def rows_of_call(self, scope: Scope, arguments: list[Value], function: Value) -> Sequence[Value]:
        """The rows of a loop over `function(arguments)`: of `range` its numbers, without an array of them."""
        if type(function) is Function and function.call is number_range:
            given = Arguments(arguments)
            given.function = function.name
            return checked_range(given)
        return self.rows(self.call(scope, arguments, function), 0)

    def unpacked(self, value: Value, names: int, where: str = " in set") -> Value:
        """An array with as many items as there are names."""
        if not isinstance(value, (list, tuple)):
            raise TemplateError(f"Cannot unpack non-iterable type{where}: {type_name(value)}")
        if len(value) != names:
            raise TemplateError(f"Too {'few' if names > len(value) else 'many'} items to unpack{where}")
        return value

    def rounds(self, rows: Sequence[Value], weight: int) -> Iterator[Value]:
        """The rows one by one; `weight` is the number of steps of a round."""
        for row in rows:
            self.steps -= weight
            if self.steps < 0:
                self.step(0)
            yield row
        if type(rows) is list:  # it is not needed any more
            self.characters += 8 * len(rows)
