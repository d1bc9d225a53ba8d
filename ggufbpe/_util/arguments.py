"""Checks arguments of Python callers, so that each error names the argument."""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def integer(name: str, value: object, least: int | None = None) -> int:
    """Return the integer that the argument `name` is given, also as a numpy integer.

    `TypeError` for anything else, `ValueError` if it is below `least`.
    """
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name} must be an integer, not {type(value).__name__}") from None
    if least is not None and number < least:
        raise ValueError(f"{name} must be {least} or more, not {value}")
    return number


def checked_str(name: str, value: object) -> str:
    """Return the `str` that the argument `name` is given; `TypeError` for anything else."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {type(value).__name__}")
    return value


def checked_flag(name: str, value: object) -> bool:
    """Return the bool that the argument `name` is given, also as a `numpy.bool_`; `TypeError` for anything else."""
    if value is True or value is False:
        return value
    numpy = sys.modules.get("numpy")  # without it, no value is a numpy.bool_
    if numpy is not None and isinstance(value, numpy.bool_):
        return bool(value)
    raise TypeError(f"{name} must be True or False, not {_shown(value)}")


def iterable(name: str, value: Iterable[T], items: str) -> Iterable[T]:
    """Return the iterable of `items` that the argument `name` is given.

    `TypeError` for anything else, and for a single text, whose items are characters or bytes.
    """
    if isinstance(value, (str, bytes, bytearray, memoryview)):
        raise TypeError(f"{name} must be an iterable of {items}, not a single {type(value).__name__}")
    try:
        iter(value)
    except TypeError:
        raise TypeError(f"{name} must be an iterable of {items}, not {_shown(value)}") from None
    return value


def _shown(value: object) -> str:
    return repr(value) if value is None or isinstance(value, str) else type(value).__name__
