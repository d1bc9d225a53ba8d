"""JSON as llama.cpp reads and writes it outside of templates: compact, in order, and strict.

Source: nlohmann::json's `parse` and `dump`, of which common/json.cpp is a thin form.
"""

from __future__ import annotations

import json
import math
import re
from functools import lru_cache
from typing import Any

from ..._util.errors import printable
from .json_numbers import dumped_float


class JSONError(ValueError):
    """A text that is not JSON to llama.cpp."""


def parsed(text: str) -> Any:
    """The value of a JSON text; of members with the same name, the last counts. `JSONError` says what is wrong."""
    try:
        value = json.loads(
            text.removeprefix("\ufeff"), parse_constant=_no_constant, parse_float=_number, parse_int=_integer
        )
        json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise JSONError(
            f"{error.msg.removesuffix(' at')} at line {error.lineno}, column {error.colno}"
        ) from None
    except UnicodeEncodeError:
        raise JSONError("an escaped surrogate stands alone") from None
    except RecursionError:
        raise JSONError("nested too deeply") from None
    except ValueError as error:
        raise JSONError(str(error)) from None
    return value


def parsed_file(data: bytes) -> Any:
    """Return the value of a JSON file in UTF-8, with or without a byte order mark. `ValueError` for anything else."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8, {error.reason} at byte {error.start}") from None
    return parsed(text)


def parsed_as_llama_cpp(text: str) -> Any:
    """Parse a JSON text that may end at a NUL, as one does for nlohmann::json; `JSONError` as from `parsed`."""
    try:
        return parsed(text)
    except JSONError:
        if "\0" not in text:
            raise
        return parsed(text.partition("\0")[0])


def _no_constant(name: str) -> Any:
    raise JSONError(f"{name} is no JSON")


def _integer(digits: str) -> int | float:
    """An integer, or a double if neither int64 nor uint64 can hold it."""
    if len(digits) <= _MOST_DIGITS and -(1 << 63) <= int(digits) < 1 << 64:
        return int(digits)
    return _number(digits)


_MOST_DIGITS = 20  # of an integer of 64 bits, its sign among them


def _number(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise JSONError(f"number overflow parsing {printable(digits, 60)}")
    return number


def dumped(value: Any, indent: int | None = None) -> str:
    """A value as compact JSON."""
    separators = (",", ":") if indent is None else (",", ": ")
    text = json.dumps(value, ensure_ascii=False, separators=separators, indent=indent, allow_nan=False)
    # JSON has no control characters otherwise; every other part is outside of strings.
    parts = text.replace("\\\\", "\0").replace('\\"', "\1").split('"')
    parts[::2] = _FLOAT.sub(lambda match: _float_text(match[0]), '"'.join(parts[::2])).split('"')
    return '"'.join(parts).replace("\1", '\\"').replace("\0", "\\\\")


_FLOAT = re.compile(r"-?[0-9]+[.e][0-9.e+-]+")


@lru_cache(1 << 12)
def _float_text(digits: str) -> str:
    return dumped_float(float(digits))


def kind_name(value: Any) -> str:
    """What nlohmann::json calls a type in its messages."""
    for kind, name in _KINDS:
        if isinstance(value, kind):
            return name
    return "null"


_KINDS: tuple[tuple[type, str], ...] = (
    (str, "string"),
    (bool, "boolean"),
    (int, "number"),
    (float, "number"),
    (list, "array"),
    (dict, "object"),
)
