"""Schemas of tools and answers that llama.cpp does not take, in its words."""

from __future__ import annotations

from typing import Any

import pytest
from recorded_chats import VOCABULARY

from ggufbpe import ChatError, Tokenizer
from ggufbpe.chat.known_templates import known_templates
from ggufbpe.chat.request.schema_patterns import check_patterns, wrong_with
from ggufbpe.chat.request.schemas import check_schema

pytestmark = pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")

# A schema, and where and why llama.cpp refuses it; "" where it does not.
SCHEMAS: dict[str, tuple[Any, str]] = {
    "an object": ({"type": "object", "properties": {"a": {"type": "string"}}}, ""),
    "nothing said": ({}, ""),
    "no schema": ("string", "#: schema must be an object"),
    "a type of Python": ({"type": "dict"}, "#: unrecognized type dict"),
    "a property without a schema": (
        {"properties": {"a": "string"}},
        "#/properties/a: schema must be an object",
    ),
    "properties in an array": ({"properties": []}, "#: properties must be an object"),
    "a type that is a number": ({"type": 3}, "#: type must be a string or an array of strings"),
    "no types": ({"type": []}, "#: type must not be empty"),
    "one of several types": ({"type": ["string", "any"]}, "#/type/1: unrecognized type any"),
    "no values": ({"enum": []}, "#: enum must be a non-empty array"),
    "values and an unknown type": ({"enum": [1], "type": "int"}, ""),
    "items without a schema": ({"type": "array", "items": "x"}, "#/items: schema must be an object"),
    "a tuple": ({"items": [{}, {"type": "int"}]}, "#/items/1: unrecognized type int"),
    "a fraction of items": (
        {"type": "array", "maxItems": 1.5},
        "#: maxItems must be a non-negative integer",
    ),
    "a negative length": ({"minLength": -1}, "#: minLength must be a non-negative integer"),
    "a bound in quotes": ({"type": "integer", "maximum": "9"}, "#: maximum must be a number"),
    "a bound of a number in quotes": ({"type": "number", "maximum": "9"}, ""),
    "a pattern that is no text": ({"pattern": 1}, "#: pattern must be a string"),
    "a format that is no text": ({"format": 1}, "#: format must be a string"),
    "no alternatives": ({"anyOf": []}, "#/anyOf: must not be empty"),
    "an alternative": ({"oneOf": [{}, {"type": "str"}]}, "#/oneOf/1: unrecognized type str"),
    "all of what is no array": ({"allOf": {}}, "#/allOf: must be an array of schemas"),
    "further members": (
        {"additionalProperties": 1},
        "#: additionalProperties must be a boolean or a schema",
    ),
    "a reference": ({"$defs": {"a": {}}, "items": {"$ref": "#/$defs/a"}}, ""),
    "a reference to itself": ({"properties": {"a": {"$ref": "#/properties"}}}, ""),
    "a reference to what is wrong": (
        {"$defs": {"a": {"type": "x"}}, "items": {"$ref": "#/$defs/a"}},
        "#/$defs/a: unrecognized type x",
    ),
    "a reference to nothing": ({"$ref": "#/a/b"}, "#: cannot resolve $ref #/a/b, a not found"),
    "a reference past the end": (
        {"$ref": "#/enum/1", "enum": [{}]},
        "#: cannot resolve $ref #/enum/1, 1 is out of range",
    ),
    "a reference elsewhere": (
        {"$ref": "a.json"},
        "#: unsupported $ref a.json, only references into the same document are supported",
    ),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas(name: str) -> None:
    schema, expected = SCHEMAS[name]
    try:
        check_schema(schema)
        reason = ""
    except ChatError as refusal:
        reason = refusal.reason.removeprefix("JSON schema error at ")
    assert reason == expected


# Patterns, and what llama.cpp says of them; "" where it takes them or leaves them out (b11549).
PATTERNS = {
    "^a+(b|c)?[d-f]{2,3}$": "",
    "^$": "",
    "(a": "",
    "^(?=a$": "",
    "^\\d($": "",
    "^a]($": "",
    "^(a$": "unbalanced parentheses",
    "^a)$": "unbalanced parentheses",
    "^(a|(b)$": "unbalanced parentheses",
    "^*a$": "nothing to repeat",
    "^(+)$": "nothing to repeat",
    "^{2}$": "nothing to repeat",
    "^{x}$": "",
    "^a[b$": "unterminated character class",
    "^[a\\]$": "unterminated character class",
    "^a\\$": "trailing backslash",
    "^" + "(" * 101 + "$": "",
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns(pattern: str) -> None:
    assert wrong_with(pattern) == PATTERNS[pattern]


_WRONG = {"type": "string", "pattern": "^(a$"}
# A schema and how many wrong patterns of it the grammar has: of all of it, and of the arguments of a tool.
PLACES: dict[str, tuple[Any, int, int]] = {
    "a string": (_WRONG, 1, 0),
    "an argument": ({"properties": {"a": _WRONG}}, 1, 0),
    "in an argument": ({"properties": {"a": {"items": _WRONG}}}, 1, 1),
    "an argument that may be a string": ({"properties": {"a": {**_WRONG, "type": ["string", "null"]}}}, 1, 0),
    "an argument by reference": ({"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": _WRONG}}, 1, 0),
    "further members": ({"additionalProperties": _WRONG}, 1, 0),
    "not used": ({"type": "object", "$defs": {"a": _WRONG}}, 0, 0),
    "values beside it": ({**_WRONG, "enum": ["a"]}, 0, 0),
    "all of": ({"allOf": [_WRONG]}, 0, 0),
    "members of all of": ({"allOf": [{"properties": {"a": _WRONG}}]}, 1, 0),
    "two": ({"anyOf": [_WRONG, {"items": _WRONG}]}, 2, 0),
}


@pytest.mark.parametrize("name", PLACES)
def test_where_patterns_are_looked_at(name: str) -> None:
    schema, *expected = PLACES[name]
    found = []
    for schemas in (([schema],), ([], [schema])):
        try:
            check_patterns(*schemas)
            found.append(0)
        except ChatError as refusal:
            found.append(refusal.reason.count("Invalid pattern ^(a$: unbalanced parentheses"))
    assert found == expected


QWEN = "Qwen-Qwen3-0.6B"
# A template, fields of a request besides a tool whose parameters are no schema, and whether they are looked at.
REQUESTS: dict[str, tuple[str, dict[str, Any], bool]] = {
    "a tool": (QWEN, {}, True),
    "a tool that may not be called": (QWEN, {"tool_choice": "none"}, False),
    "an answer in JSON": (QWEN, {"response_format": {"type": "json_object"}}, False),
    "calls in Python": ("LFM2-8B-A1B", {}, False),
    "a template without calls": ("google-gemma-2-2b-it", {}, False),
}


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    return Tokenizer.from_gguf(VOCABULARY)


@pytest.mark.parametrize("name", REQUESTS)
def test_which_schemas_are_looked_at(tok: Tokenizer, name: str) -> None:
    template, fields, is_refused = REQUESTS[name]
    source = next(known.source for known in known_templates().values() if known.name == template)
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "dict"}}}
    body = {"messages": [{"role": "user", "content": "Hi"}], "tools": [tool], **fields}
    try:
        reason = tok.chats.prompt(body, source)[:0].decode()
    except ChatError as refusal:
        reason = refusal.reason.rpartition("failed: ")[2]
    assert reason == ("JSON schema error at #: unrecognized type dict" if is_refused else "")


# A template, fields of a request besides a tool whose argument has a wrong pattern, and whether it is refused.
GRAMMARS: dict[str, tuple[str, dict[str, Any], bool]] = {
    "calls in JSON": (QWEN, {}, True),
    "a tag for each argument": ("GLM-4.6", {}, True),
    "a known template": ("Kimi-K2-Instruct", {}, True),
    "calls that begin with no mark": ("meta-llama-Llama-3.1-8B-Instruct", {}, False),
    "one that has to be called": ("meta-llama-Llama-3.1-8B-Instruct", {"tool_choice": "required"}, True),
    "a grammar without schemas": ("MiniMax-M3", {}, False),
    "an answer with a wrong one": ("MiniMax-M3", {"json_schema": _WRONG}, True),
    "an answer in a grammar for calls": ("Qwen3-Coder", {"json_schema": _WRONG}, False),
    "an answer in a grammar for no calls": (
        "deepseek-ai-DeepSeek-V3.2",
        {"json_schema": _WRONG, "tool_choice": "none"},
        False,
    ),
    "calls in a grammar for an answer": (
        "deepseek-ai-DeepSeek-V3.2",
        {"json_schema": {"type": "object"}, "tool_choice": "required"},
        False,
    ),
}


@pytest.mark.parametrize("name", GRAMMARS)
def test_whose_patterns_are_looked_at(tok: Tokenizer, name: str) -> None:
    template, fields, is_refused = GRAMMARS[name]
    source = next(known.source for known in known_templates().values() if known.name == template)
    parameters = {"type": "object", "properties": {"a": {"type": "array", "items": _WRONG}}}
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    body = {"messages": [{"role": "user", "content": "Hi"}], "tools": [tool], **fields}
    try:
        reason = tok.chats.prompt(body, source)[:0].decode()
    except ChatError as refusal:
        reason = refusal.reason.rpartition("\n")[2]
    assert reason == ("Invalid pattern ^(a$: unbalanced parentheses" if is_refused else "")
