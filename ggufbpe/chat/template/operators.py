"""Arithmetic and slices as llama.cpp does them: int64 by way of doubles, remainders as in C.

Source: binary_expression::execute_impl in common/jinja/runtime.cpp, slice in value.cpp.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .values import Value

_SMALLEST = -(1 << 63)


def negated(number: Value) -> Value:
    """`-number`; the smallest int64 is its own negative, as in two's complement."""
    return number if isinstance(number, int) and number == _SMALLEST else -number


def is_number(value: Any) -> bool:
    """Whether a value is an int or a float, but not a bool."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _arithmetic(operation: Callable[[Any, Any], Any]) -> Callable[[Value, Value], Value]:
    def operate(left: Value, right: Value) -> Value:
        if isinstance(left, int) and isinstance(right, int):
            exact = operation(left, right)
            if abs(exact) < 1 << 53 and abs(left) < 1 << 53 and abs(right) < 1 << 53:
                return exact
            return cast_to_int(operation(_as_float(left), _as_float(right)))
        return operation(_as_float(left), _as_float(right))

    return operate


def _as_float(value: Value) -> float:
    number = float(value)
    return number if isinstance(value, float) or int(number) == value else math.copysign(math.inf, number)


def cast_to_int(number: float) -> int:
    """A float as an int64, as on x86: what does not fit becomes the smallest int64."""
    return int(number) if abs(number) < 2.0**63 else -(1 << 63)


_INVALID = math.copysign(math.nan, -1)  # what x86 gives for 0/0


def _nan_of(a: float, b: float) -> float:
    """The result of an operation that is invalid, or has a NaN, which goes through with its sign."""
    return a if a != a else b if b != b else _INVALID


def _divide(left: Value, right: Value) -> Value:
    a, b = _as_float(left), _as_float(right)
    if b:
        return a / b
    return _nan_of(a, b) if not a or a != a else math.copysign(math.inf, a) * math.copysign(1, b)


def _remainder(left: Value, right: Value) -> Value:
    a, b = _as_float(left), _as_float(right)
    remainder = _nan_of(a, b) if not b or math.isinf(a) or a != a or b != b else math.fmod(a, b)
    return cast_to_int(remainder) if isinstance(left, int) and isinstance(right, int) else remainder


ARITHMETIC: dict[str, Callable[[Value, Value], Value]] = {
    "+": _arithmetic(lambda a, b: a + b),
    "-": _arithmetic(lambda a, b: a - b),
    "*": _arithmetic(lambda a, b: a * b),
    "/": _divide,
    "%": _remainder,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
}


def slice_of(size: int, start: int, stop: int, step: int) -> slice:
    """Bounds as llama.cpp takes them, as a slice of Python's. Source: slice in value.cpp."""
    if step > 0:
        start = max(size + start, 0) if start < 0 else min(start, size)
        stop = max(size + stop, 0) if stop < 0 else min(stop, size)
        return slice(start, stop, step)
    start = max(size + start, 0) if start < 0 else min(start, size - 1)
    stop = max(size + stop, -1) if stop < -1 else min(stop, size - 1)
    return slice(start if start >= 0 else 0, stop if stop >= 0 else None, step) if size else slice(0, 0)
