"""Turns Python values into JSON values: mappings become objects, sequences arrays; any other type is refused.

A chat is first tried without this conversion. Nearly all are what `json.loads` gives, and looking at every value
takes time.
"""

from __future__ import annotations

import math
from collections import UserString
from collections.abc import Mapping, Sequence
from typing import Any

from ..._util.errors import ChatError

_TEXTS = (str, bytes, bytearray, memoryview, UserString)  # sequences, too
_PLAIN = frozenset((dict, list, str, int, float, bool, type(None)))  # an ABC is slow to ask


def is_other_form(value: Any) -> bool:
    """Whether a value stands for an object or array, but is not the dict or list that `json.loads` gives."""
    return (
        type(value) not in _PLAIN
        and not isinstance(value, (dict, list))
        and (isinstance(value, Mapping) or is_array(value))
    )


def is_array(value: Any) -> bool:
    """Whether a value is a sequence of other values, as an array of JSON is, and no text."""
    return isinstance(value, (list, tuple)) or (isinstance(value, Sequence) and not isinstance(value, _TEXTS))


def has_other_forms(value: Any) -> bool:
    """Whether a value contains one of these."""
    if isinstance(value, (dict, list)):
        return any(map(has_other_forms, value.values() if isinstance(value, dict) else value))
    return is_other_form(value)


def in_json_form(value: Any, place: str = "") -> Any:
    """The value as `json.loads` would give it. `ChatError` with the place of a value that JSON does not have."""
    if isinstance(value, str):
        _check_text(value, place)
        return value
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        _check_number(value, place)
        return value
    if isinstance(value, Mapping):
        return {_key(key, place): in_json_form(member, _inside(place, key)) for key, member in value.items()}
    if is_array(value):
        return [in_json_form(member, f"{place}[{number}]") for number, member in enumerate(value)]
    raise ChatError(f"{place or 'a chat'} is of type {type(value).__name__}, which JSON does not have")


def _inside(place: str, key: str) -> str:
    return f"{place}.{key}" if place else str(key)


def _key(key: Any, place: str) -> str:
    if not isinstance(key, str):
        raise ChatError(
            f"{place or 'a chat'} has a key of type {type(key).__name__}; those of JSON are strings"
        )
    _check_text(key, f"a key of {place or 'a chat'}")
    return key


def _check_text(text: str, place: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ChatError(f"{place} has a lone surrogate at position {error.start}") from None


def _check_number(number: float, place: str) -> None:
    try:
        is_finite = math.isfinite(number)
    except OverflowError:
        raise ChatError(f"{place} is too large a number") from None
    if not is_finite:
        raise ChatError(f"{place} is {number}, which JSON does not have")
