"""Reads the fields of request bodies, within the bounds that this file lists.

A field of the wrong type usually counts as missing, as in llama.cpp; our own endpoints refuse it.

Source: json_value in tools/server/server-common.h, and the conversions of nlohmann::json in common/json.h.
"""

from __future__ import annotations

from collections.abc import Container
from contextlib import suppress
from typing import Any, TypeVar

import orjson

from .._util.utf8 import byte_length
from ..chat.known_templates import PREFIX, is_template
from ..chat.request.json_text import kind_name
from .failures import RequestError, too_large

T = TypeVar("T")

# strings, arrays and objects of a body, each of which takes up to a hundred bytes of memory
MOST_VALUES = 1 << 20
# what an answer of our own endpoints may take: docs/server.md has these, too
MOST_TEXTS = 4096  # in one request
MOST_DOCUMENTS = 10_000  # of one query
MOST_PAIRED = 64 << 20  # bytes of a query, once for each of its documents
MOST_TRACED = 1 << 14  # bytes: in memory, a trace is about a thousand times as large
MOST_SEARCHED = 1 << 16  # bytes of a text for which causes are searched, or ids
MOST_COMPARED = 4 << 20  # bytes of a text, or ids, that are compared from the beginning
MOST_SHOWN = 4 << 20  # bytes of a text; the answer is some ten times as large
MOST_PARTS = 1 << 18  # bytes of a text, for each token by which the size of a part exceeds the overlap
MOST_OVERLAPPING = 32 << 20  # bytes of all parts of a text, which may be encoded one by one
_BOM = b"\xef\xbb\xbf"


def parsed_body(body: bytes) -> Any:
    """The JSON of a body. Numbers that do not fit 64 bits become floats; of duplicate fields, the last one counts.

    A zero byte ends the body, as in nlohmann::json: some clients in C send that of their string.

    `RequestError` 400 for what is not JSON, for numbers that no double holds, and for nesting beyond 1024 levels; 413
    for more than `MOST_VALUES` strings, arrays and objects.
    """
    if len(body) > MOST_VALUES and _has_too_many_values(body):
        raise too_large(f"the body has more than {MOST_VALUES:,} strings, arrays and objects")
    try:
        return orjson.loads(body.removeprefix(_BOM))
    except orjson.JSONDecodeError as error:
        whole, zero, _ = body.partition(b"\0")
        if zero:
            with suppress(RequestError):
                return parsed_body(whole)
        raise RequestError(400, f"the body is not JSON: {_why_not_json(body, error)}") from None


def _why_not_json(body: bytes, error: ValueError) -> str:
    """What is wrong with a body. Of one that is not UTF-8, orjson does not say where."""
    try:
        body.decode()
    except UnicodeDecodeError as wrong:
        return f"not UTF-8, {wrong.reason} at byte {wrong.start}"
    return str(error)


def _has_too_many_values(body: bytes) -> bool:
    """Whether JSON has more than `MOST_VALUES` strings, arrays and objects, found without parsing it.

    >>> _has_too_many_values(b'{"texts": ["[{ in a string: \\\\\\" ["]}')
    False
    """
    unescaped = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    strings = unescaped.count(b'"') // 2
    if strings > MOST_VALUES:
        return True
    between_strings = b"".join(unescaped.split(b'"')[::2])
    return strings + between_strings.count(b"[") + between_strings.count(b"{") > MOST_VALUES


def field(body: Any, name: str, default: T) -> T:
    """A field of the default's type; the default if it is missing, null, or of another type."""
    value = body.get(name) if isinstance(body, dict) else None
    return value if type(value) is type(default) else default


def has_field(body: Any, name: str) -> bool:
    """Whether a value is an object with this field."""
    return isinstance(body, dict) and name in body


def require_string(value: Any) -> str:
    """A value that must be a string."""
    if not isinstance(value, str):
        raise RequestError(
            400, f"[json.exception.type_error.302] type must be string, but is {kind_name(value)}"
        )
    return value


def require_ids(value: Any) -> list[int]:
    """A value that must be an array of ids; see `require_id`."""
    if not isinstance(value, list):
        raise RequestError(
            400, f"[json.exception.type_error.302] type must be array, but is {kind_name(value)}"
        )
    return list(map(require_id, value))


def require_id(value: Any) -> int:
    """An id from any number, as C++ converts it: floats are truncated, integers taken modulo 2**32.

    A float that does not fit in an int32 becomes the smallest int32, as on x86.
    """
    if not isinstance(value, (int, float)):
        raise RequestError(
            400, f"[json.exception.type_error.302] type must be number, but is {kind_name(value)}"
        )
    if isinstance(value, float):
        return int(value) if -_HALF - 1 < value < _HALF else -_HALF
    return (value + _HALF) % (2 * _HALF) - _HALF


_HALF = 2**31


def require_object(body: Any) -> dict[str, Any]:
    """A body that must be an object, in which `model`, if it is given, is a string."""
    if not isinstance(body, dict):
        raise RequestError(400, f"the body must be an object, but is {kind_name(body)}")
    if not isinstance(body.get("model"), str | None):
        raise RequestError(400, "'model' must be a string")
    return body


def given_texts(body: dict[str, Any], name: str, most: int) -> list[str]:
    """A field that is a string or an array of at most `most` strings."""
    given = body.get(name)
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise RequestError(400, f"'{name}' must be a string or an array of strings")
    if len(texts) > most:
        raise RequestError(413, f"'{name}' has {len(texts)} texts; the limit is {most}")
    return texts


def required_ids(body: dict[str, Any], name: str, most: int) -> list[int]:
    """A required array of at most `most` ids. Our own endpoints accept no other numbers in their place."""
    given = body.get(name)
    if isinstance(given, list) and len(given) > most:
        raise too_large(f"'{name}' has {len(given)} ids; the limit is {most}")
    if not isinstance(given, list) or not set(map(type, given)) <= {int}:
        raise RequestError(400, f"'{name}' is required and must be an array of ids, which are integers")
    if given and not -_HALF <= min(given) <= max(given) < _HALF:
        raise RequestError(
            400, f"'{name}' has an integer that does not fit in a signed 32-bit integer, so it is not an id"
        )
    return given


def required_text(body: dict[str, Any], name: str) -> str:
    """A required string."""
    given = body.get(name)
    if not isinstance(given, str):
        raise RequestError(400, f"'{name}' is required and must be a string")
    return given


def required_number(body: dict[str, Any], name: str, least: int = 0) -> int:
    """A required integer of `least` or more, below 2^31."""
    return _number(body.get(name), f"'{name}' is required and must be", least)


def given_number(body: dict[str, Any], name: str) -> int:
    """An integer of 0 or more, below 2^31; 0 if it is not given."""
    return _number(body.get(name, 0), f"'{name}' must be", 0)


def _number(given: object, problem: str, least: int) -> int:
    if type(given) is not int or not least <= given < 1 << 31:
        raise RequestError(400, f"{problem} an integer of {least} or more, below 2^31")
    return given


def given_choice(body: dict[str, Any], name: str, allowed: tuple[Any, ...]) -> Any:
    """One of the values `allowed`, strings and booleans; the first of them if it is not given."""
    given = body.get(name, allowed[0])
    if type(given) not in (str, bool) or given not in allowed:  # 0 equals False
        shown = ("false" if each is False else repr(each) for each in allowed)
        raise RequestError(400, f"'{name}' is one of {', '.join(shown)}")
    return given


def bounded_text(text: str, most: int) -> str:
    """The text itself. `RequestError` 413 if it has more than `most` bytes."""
    check_size(byte_length(text), most)
    return text


def check_size(size: int, most: int, what: str = "text") -> None:
    """Raise `RequestError` 413 for more than `most` bytes."""
    if size > most:
        raise too_large(f"the {what} has {size} bytes; the limit here is {most}")


def given_flags(body: dict[str, Any], add_special: bool = True) -> dict[str, bool]:
    """`add_special`, with its default, and `parse_special`, by default true."""
    defaults = {"add_special": add_special, "parse_special": True}
    return {name: given_flag(body, name, default) for name, default in defaults.items()}


def given_flag(body: dict[str, Any], name: str, default: bool) -> bool:
    """An optional boolean. Our own endpoints accept nothing else in its place."""
    given = body.get(name, default)
    if not isinstance(given, bool):
        raise RequestError(400, f"'{name}' must be true or false")
    return given


def given_template(body: dict[str, Any], names: Container[str]) -> str | None:
    """The optional field `chat_template`: the text of a template, known:NAME, or one of `names`, which the model has.

    `RequestError` 400 for anything else of one line, in the same words whether or not a file has this path.
    """
    given = body.get("chat_template")
    if given is None:
        return None
    if not isinstance(given, str):
        raise RequestError(400, "'chat_template' must be a string")
    if not (is_template(given) or given.startswith(PREFIX) or given in names):
        raise RequestError(400, "'chat_template' is neither the text of a template nor the name of one")
    return given
