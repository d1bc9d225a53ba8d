"""Bodies of requests, read as llama.cpp reads JSON: a field of a wrong type mostly counts as missing.

Source: json_value in tools/server/server-common.h, and what common/json.h makes of nlohmann::json's conversions.
"""

from __future__ import annotations

from typing import Any, TypeVar

import orjson

from ..chat.json_text import kind_name
from .failures import RequestError

T = TypeVar("T")

_BOM = b"\xef\xbb\xbf"


def parsed_body(body: bytes) -> Any:
    """The JSON in a body. Numbers that no 64 bits hold are floats, and the last of fields with one name counts.

    `RequestError` 400 for what is none, for numbers that no double holds, and beyond 1024 levels of nesting.
    """
    try:
        return orjson.loads(body.removeprefix(_BOM))
    except orjson.JSONDecodeError as error:
        raise RequestError(400, f"the body is no JSON: {error}") from None


def field(body: Any, name: str, default: T) -> T:
    """A field of the default's type; the default where it is missing, null, or of another type."""
    value = body.get(name) if isinstance(body, dict) else None
    return value if type(value) is type(default) else default


def has_field(body: Any, name: str) -> bool:
    """Whether a value is an object with such a field."""
    return isinstance(body, dict) and name in body


def string_of(value: Any) -> str:
    """A value that must be a text."""
    if not isinstance(value, str):
        raise RequestError(
            400, f"[json.exception.type_error.302] type must be string, but is {kind_name(value)}"
        )
    return value


def ids_of(value: Any) -> list[int]:
    """A value that must be an array of ids; see `id_of`."""
    if not isinstance(value, list):
        raise RequestError(
            400, f"[json.exception.type_error.302] type must be array, but is {kind_name(value)}"
        )
    return list(map(id_of, value))


def id_of(value: Any) -> int:
    """An id out of any number, as C++ converts it: floats are cut off, integers taken modulo 2**32.

    A float that no int32 holds is the least one, as x86 has it.
    """
    if not isinstance(value, (int, float)):
        raise RequestError(
            400, f"[json.exception.type_error.302] type must be number, but is {kind_name(value)}"
        )
    if isinstance(value, float):
        return int(value) if -_HALF - 1 < value < _HALF else -_HALF
    return (value + _HALF) % (2 * _HALF) - _HALF


_HALF = 2**31


def dict_of(body: Any) -> dict[str, Any]:
    """A body that must be an object."""
    if not isinstance(body, dict):
        raise RequestError(400, f"the body must be an object, but is {kind_name(body)}")
    return body


def given_texts(body: dict[str, Any], name: str, most: int) -> list[str]:
    """A field that is a text or an array of texts, at most so many."""
    given = body.get(name)
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise RequestError(400, f"'{name}' must be a string or an array of strings")
    if len(texts) > most:
        raise RequestError(413, f"'{name}' has {len(texts)} texts; the server takes {most} at once")
    return texts


def required_text(body: dict[str, Any], name: str) -> str:
    """A field that must be there and be a text."""
    given = body.get(name)
    if not isinstance(given, str):
        raise RequestError(400, f"'{name}' is required and must be a string")
    return given


def given_flag(body: dict[str, Any], name: str, default: bool) -> bool:
    """A field that is true or false if it is there; where answers are our own, nothing else is guessed at."""
    given = body.get(name, default)
    if not isinstance(given, bool):
        raise RequestError(400, f"'{name}' must be true or false")
    return given
