"""Finds regular expressions in the schemas of a request that llama.cpp refuses.

llama.cpp makes a grammar of each `pattern` that begins with `^` and ends with `$`. One that it cannot express is left
out; one that is no regular expression is an error. The patterns of a template's tools are looked at where the grammar
has them: in all of a tool's schema if calls are JSON, and if each argument has a tag of its own, in the arguments that
cannot be a string.

Source: common_chat_schema_converter in common/json-schema-to-grammar.cpp; may_be_string in common/json-schema.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from ..._util.errors import ChatError
from .schemas import resolve_reference, schema_kind

_DEEPEST = 100  # parentheses
_SPECIAL = frozenset("|.()[]{}*+?^$")
_ESCAPE = re.compile(r'\\(?:[trn\\"\[\]-]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})')
_REPEATED = re.compile(r"\s*[+-]?[0-9]{1,9}(?![0-9])")  # as stoi reads it


class _NotExpressedError(Exception):
    """A pattern that a grammar cannot express."""


def check_patterns(whole: Iterable[Any], tools: Iterable[Any] = ()) -> None:
    """`ChatError` in llama.cpp's words if a pattern is no regular expression.

    `whole` are schemas that are in the grammar as they are, `tools` those of tools whose arguments are, one by one.
    """
    patterns = [pattern for schema in whole for pattern in _patterns(schema, schema, set())]
    for schema in tools:
        patterns += [pattern for each in _arguments(schema) for pattern in _patterns(each, schema, set())]
    wrong = [
        f"Invalid pattern {pattern}: {reason}" for pattern in patterns if (reason := wrong_with(pattern))
    ]
    if wrong:
        raise ChatError("\n".join(["JSON schema conversion failed:", *wrong]))


# ---- which patterns there are ------------------------------------------------------------------


def _arguments(schema: Any) -> list[Any]:
    """The schemas of a tool's arguments that cannot be a string."""
    if schema_kind(schema) != "object":
        return []
    return [each for each in schema.get("properties", {}).values() if not _may_be_string(each, schema, ())]


def _patterns(schema: Any, root: Any, seen: set[str]) -> Iterator[str]:
    kind = schema_kind(schema)
    if kind == "$ref":
        if schema[kind] not in seen:
            seen.add(schema[kind])
            yield from _patterns(resolve_reference(schema[kind], root), root, seen)
    elif kind in ("", "string"):
        if schema.get("pattern"):
            yield schema["pattern"]
    else:
        for part in _parts(schema, kind, root):
            yield from _patterns(part, root, seen)


def _parts(schema: Any, kind: str, root: Any) -> Iterator[Any]:
    """The schemas that one is made of."""
    if kind in ("oneOf", "anyOf"):
        yield from schema[kind]
    elif kind == "type":
        yield from ({**schema, "type": one} for one in schema["type"])
    elif kind == "allOf":
        for part in schema[kind]:
            several = schema_kind(part)
            for one in part[several] if several in ("oneOf", "anyOf") else [part]:
                yield from _members(one, root)
    elif kind == "object":
        yield from schema.get("properties", {}).values()
        further = schema.get("additionalProperties")
        yield from [further] if isinstance(further, dict) else []
    elif kind == "array":
        items = schema.get("items", schema.get("prefixItems", {}))
        yield from items if isinstance(items, list) else [items]


def _members(schema: Any, root: Any) -> Iterator[Any]:
    """The members that a part of `allOf` adds."""
    seen = set()
    while schema_kind(schema) == "$ref" and schema["$ref"] not in seen:
        seen.add(schema["$ref"])
        schema = resolve_reference(schema["$ref"], root)
    if schema_kind(schema) == "object":
        yield from schema.get("properties", {}).values()


def _may_be_string(schema: Any, root: Any, seen: tuple[str, ...]) -> bool:
    kind = schema_kind(schema)
    if kind == "$ref":
        reference = schema[kind]
        return reference not in seen and _may_be_string(
            resolve_reference(reference, root), root, (*seen, reference)
        )
    if kind == "const":
        return isinstance(schema[kind], str)
    if kind == "enum":
        return any(isinstance(value, str) for value in schema[kind])
    if kind in ("oneOf", "anyOf", "type"):
        return any(_may_be_string(part, root, seen) for part in _parts(schema, kind, root))
    if kind == "allOf":
        parts = [part for part in schema[kind] if not _is_anything(part)]
        return bool(parts) and all(_may_be_string(part, root, seen) for part in parts)
    return kind in ("", "string") and not _is_anything(schema)


def _is_anything(schema: Any) -> bool:
    keywords = ("pattern", "minLength", "maxLength")
    known = schema.get("format") in ("uuid", "date", "time", "date-time")
    return schema_kind(schema) == "" and not known and not any(name in schema for name in keywords)


# ---- what is wrong with one --------------------------------------------------------------------


def wrong_with(pattern: str) -> str:
    """Why a pattern is no regular expression; "" if it is one, or one that llama.cpp ignores.

    >>> [wrong_with(pattern) for pattern in ("^(a|b)+$", "^(a$", "^*$", "(a", "^(?=a$")]
    ['', 'unbalanced parentheses', 'nothing to repeat', '', '']
    """
    if len(pattern) < 2 or pattern[0] != "^" or pattern[-1] != "$":
        return ""
    try:
        return _wrong_with(pattern[1:-1])
    except _NotExpressedError:
        return ""


def _wrong_with(text: str) -> str:
    at, items = 0, [0]  # how many items there are in each group that is open
    while at < len(text):
        character = text[at]
        if character in "*+?{":
            if character == "{":
                at = _after_count(text, at)
            if not items[-1]:
                return "nothing to repeat"
            at += character != "{"
            continue
        if character == "(":
            if text[at + 1 : at + 2] == "?" and text[at + 2 : at + 3] != ":":
                raise _NotExpressedError
            at += 3 if text[at + 1 : at + 2] == "?" else 1
            items.append(0)
            if len(items) - 1 > _DEEPEST:
                raise _NotExpressedError
            continue
        if character == ")":
            if len(items) == 1:
                return "unbalanced parentheses"
            items.pop()
            at += 1
        elif character in "^$":
            raise _NotExpressedError
        elif character == "[":
            at = _after_class(text, at)
            if at < 0:
                return "unterminated character class"
        elif character in ".|":
            at += 1
        else:
            at = _after_literal(text, at)
            if at < 0:
                return "trailing backslash"
        items[-1] += 1
    return "unbalanced parentheses" if len(items) > 1 else ""


def _after_count(text: str, at: int) -> int:
    end = text.find("}", at)
    counts = text[at + 1 : end].split(",")
    if end < 0 or len(counts) > 2:
        raise _NotExpressedError
    for count in counts:
        if not _REPEATED.match(count) and (count or len(counts) == 1):
            raise _NotExpressedError
    return end + 1


def _after_class(text: str, at: int) -> int:
    at += 1
    while at < len(text) and text[at] != "]":
        at = _after_escape(text, at) if text[at] == "\\" else at + 1
    return at + 1 if at < len(text) else -1


def _after_escape(text: str, at: int) -> int:
    match = _ESCAPE.match(text, at)
    if not match:
        raise _NotExpressedError
    return match.end()


def _after_literal(text: str, at: int) -> int:
    """Characters that stand for themselves; the last of several is left to what repeats it."""
    start = at
    while at < len(text):
        if text[at] == "\\":
            if at == len(text) - 1:
                return -1
            at = at + 2 if text[at + 1] in _SPECIAL else _after_escape(text, at)
        elif text[at] == '"' or (
            text[at] not in _SPECIAL
            and (at in (len(text) - 1, start) or text[at + 1] == "." or text[at + 1] not in _SPECIAL)
        ):
            at += 1
        else:
            break
    if at == start:  # a bracket that closes nothing
        raise _NotExpressedError
    return at
