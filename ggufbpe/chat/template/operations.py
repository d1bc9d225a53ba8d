"""Implements the operators of a template: `+`, `~`, `==`, `in` and the others, within the limits of a run.

Source: binary_expression::execute_impl in common/jinja/runtime.cpp; arithmetic on two numbers is in `operators`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from . import array_methods as arrays
from .attributed_text import attributed
from .call_arguments import is_a
from .operators import ARITHMETIC, is_number, negated
from .run_limits import Bounds
from .values import (
    WHITE_SPACE,
    TemplateError,
    Undefined,
    Value,
    as_string,
    equal,
    hashable,
    text,
    type_name,
)


class _Chain(list[str]):
    """The strings of a row of `+` and `~`, which no template ever sees."""


class _Float(float):
    """A number that is identical to no other."""


class Operations(Bounds):
    """The operators, and what they need: strings that are counted, and keys that are checked."""

    # Every joining of strings goes through one of these: the one gives a text of a single part, the other of several.
    joined: Callable[[str, Iterable[str]], str] = staticmethod(str.join)
    appended: Callable[[Iterable[str]], str] = staticmethod("".join)

    def weigh_key(self, key: Value) -> None:
        """Pay for looking up a key: Python hashes all members of a tuple."""
        if isinstance(key, (tuple, list, dict)):
            self.weigh(key)
        elif isinstance(key, str):
            self.read((key,))

    def check_key(self, key: Value, members: int) -> None:
        """`TemplateError` for a value that cannot be a key of an object, which has so many members.

        Tuples of -1 and -2 have the same hash in all orders, so that each member may be looked at.
        """
        self.weigh_key(key)
        if isinstance(key, str):
            return
        if isinstance(key, tuple):
            self.step(members >> 2)
        if isinstance(key, (list, dict)) or not hashable(key):
            raise TemplateError(f"Object key of unhashable type: {type_name(key)}")

    def string(self, value: Value) -> str:
        """A value as a string, counted."""
        if isinstance(value, (dict, list, tuple)):
            self.weigh(value)
        return as_string(value)

    def text(self, value: Value) -> str:
        """What `{{ value }}` writes; strings are counted when all that was written is put together."""
        if isinstance(value, (list, tuple)):
            self.weigh(value)
        return text(value)

    def written(self, texts: list[str]) -> str:
        """All that was written, put together and counted."""
        self.characters -= sum(map(len, texts))
        if self.characters < 0:
            self.spend(0)
        return self.appended(texts)

    def stripped(self, text: str) -> str:
        """`text | trim` for a plain text."""
        self.characters -= len(text)
        if self.characters < 0:
            self.spend(0)
        return text.strip(WHITE_SPACE)

    def equal(self, left: Value, right: Value) -> bool:
        """`left == right`."""
        if type(left) is str:
            if isinstance(right, str) and len(left) == len(right):
                self.read((left,))
            return bool(left == right)
        if isinstance(left, (dict, list, tuple)) and isinstance(right, type(left)):
            self.weigh(left)
            self.weigh(right)
        return equal(left, right)

    def plus(self, left: Value, right: Value, operator: str = "+") -> Value:
        """`left + right` or `left ~ right`."""
        if type(left) is str and type(right) is str:
            out = left + right
            self.characters -= len(out)
            if self.characters < 0:
                self.spend(0)
            return out
        return self.operate(left, operator, right)

    def chain(self, left: Value, right: Value, operator: str = "+") -> Value:
        """`left + right` or `left ~ right` where another text follows: strings are put together in `chained`."""
        if isinstance(left, str):
            left = _Chain((left,))
        if type(left) is _Chain:
            if type(right) is int or type(right) is float:
                right = as_string(right)
            if isinstance(right, str):
                left.append(right)
                return left
        return self.plus(self.chained(left), right, operator)

    def chained(self, value: Value) -> Value:
        """What a row of `+` and `~` made, put together if it is all strings."""
        if type(value) is not _Chain:
            return value
        if len(value) == 1:
            return value[0]
        self.spend(sum(map(len, value)))
        return self.appended(value)

    def operate(self, left: Value, operator: str, right: Value) -> Value:
        """`left operator right`, for all operators but `and`, `or`, `==` and `!=`."""
        if type(left) is int and type(right) is int and operator in ARITHMETIC:
            return ARITHMETIC[operator](left, right)
        if type(left) is str and type(right) is dict and operator in ("in", "not in"):
            self.read((left,))
            return (left in right) is (operator == "in")
        if (operator == "+" or operator == "~") and isinstance(left, str) and isinstance(right, str):
            self.spend(len(left) + len(right))
            return self.appended((left, right))
        for absent in (Undefined, type(None)):
            if type(left) is absent or type(right) is absent:
                return self._with_absent(left, operator, right, absent)
        if is_number(left) and is_number(right) and operator in ARITHMETIC:
            return ARITHMETIC[operator](left, right)
        if isinstance(right, (list, tuple)):
            if isinstance(left, (list, tuple)):
                if operator == "+":
                    self.items(len(left) + len(right))
                    return [*left, *right]
            elif operator in ("in", "not in"):
                return self._contains(left, operator, right)
        if operator in ("~", "+") and (isinstance(left, str) or isinstance(right, str)):
            out = self.appended((self.string(left), self.string(right)))
            self.spend(len(out))
            return out
        if operator == "*" and (
            (isinstance(left, str) and is_a(right, int)) or (is_a(left, int) and isinstance(right, str))
        ):
            part, count = (left, right) if isinstance(left, str) else (right, left)
            self.spend(len(part) * max(count, 0))
            return part * count
        among = isinstance(right, dict) or (isinstance(left, str) and isinstance(right, str))
        if among and operator in ("in", "not in"):
            return self._contains(left, operator, right)
        if isinstance(right, dict):
            self.check_key(left, len(right))
        raise TemplateError(f'Unknown operator "{operator}" between {type_name(left)} and {type_name(right)}')

    def _contains(self, left: Value, operator: str, right: Value) -> bool:
        return arrays.is_in(self, left, right) is (operator == "in")

    def _with_absent(self, left: Value, operator: str, right: Value, absent: type) -> Value:
        """An operation on none or an undefined value."""
        if operator in ("in", "not in"):
            if absent is Undefined and isinstance(right, Undefined):
                return operator == "not in"
            if absent is not Undefined and right is not None:
                return self._contains(left, operator, right)
        if operator in ("+", "~"):
            missing = (Undefined, type(None))
            if isinstance(left, missing) and isinstance(right, str):
                return self.appended((right,))
            if isinstance(right, missing) and isinstance(left, str):
                return self.appended((left,))
        if absent is Undefined:
            raise TemplateError(f"Cannot perform operation {operator} on undefined values")
        raise TemplateError("Cannot perform operation on null values")

    def negative(self, value: Value) -> Value:
        """`-value`."""
        if not is_number(value):
            raise TemplateError("Unary - operator requires numeric operand")
        return negated(value)

    def positive(self, value: Value) -> Value:
        """`+value`."""
        if not is_number(value):
            raise TemplateError("Unary + operator requires numeric operand")
        return value

    def own(self, value: Value) -> Value:
        """A literal that is identical to no other, and keeps its parts: Python shares equal ones."""
        return attributed(value) if isinstance(value, str) else _Float(value)
