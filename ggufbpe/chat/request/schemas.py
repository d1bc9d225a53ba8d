"""Checks the JSON schemas of a request as llama.cpp does when it makes a grammar of them.

Only the schemas are checked that the parser of the model's output would have: of tools that may be called, and of a
`response_format`.

Source: common_chat_schema_builder in common/json-schema.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..._util.errors import ChatError
from .messages import Request


def schemas_of_tools(request: Request) -> list[Any]:
    """The parameters of the tools that may be called, but for empty ones."""
    if request.tool_choice == "none":
        return []
    schemas = (tool["function"]["parameters"] for tool in request.tools)
    return [parameters for parameters in schemas if parameters not in (None, {})]


def schemas_of_answer(request: Request) -> list[Any]:
    """The schema of the answer, if there is one."""
    return [request.json_schema] if isinstance(request.json_schema, dict) else []


def check_schema(schema: Any) -> None:
    """`ChatError` in llama.cpp's words, with the place, unless it takes the schema."""
    _Checker(schema).check(schema, "#")


def schema_kind(schema: Mapping[str, Any]) -> str:
    """What a schema that was checked is: the keyword that decides, or its type; "" if anything goes."""
    kind = schema.get("type", "")
    for keyword in ("$ref", "oneOf", "anyOf"):
        if keyword in schema:
            return keyword
    if isinstance(kind, list):
        return "type"
    for keyword in ("const", "enum"):
        if keyword in schema:
            return keyword
    kind = kind or ""
    has_properties = "properties" in schema or schema.get("additionalProperties", True) is not True
    if "allOf" in schema and (kind == "string" or (kind in ("", "object") and not has_properties)):
        return "allOf"
    if not kind and has_properties:
        return "object"
    if not kind and ("items" in schema or "prefixItems" in schema):
        return "array"
    return kind if isinstance(kind, str) else ""


def resolve_reference(reference: str, root: Any) -> Any:
    """What a `$ref` that was checked points to."""
    return _Checker(root).target(reference, "#")


def _refused(path: str, message: str) -> ChatError:
    return ChatError(f"JSON schema error at {path}: {message}")


class _Checker:
    """A walk through one schema; what a `$ref` points to is visited once."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._seen: set[str] = set()

    def check(self, schema: Any, path: str) -> None:
        if not isinstance(schema, dict):
            raise _refused(path, "schema must be an object")
        if "$ref" in schema:
            return self._reference(schema["$ref"], path)
        for several in ("oneOf", "anyOf"):
            if several in schema:
                return self._alternatives(schema[several], f"{path}/{several}")
        kind = schema.get("type")
        if isinstance(kind, list):
            if not kind:
                raise _refused(path, "type must not be empty")
            for number, one in enumerate(kind):
                self.check({**schema, "type": one}, f"{path}/type/{number}")
            return None
        if "const" in schema:
            return None
        if "enum" in schema:
            if not isinstance(schema["enum"], list) or not schema["enum"]:
                raise _refused(path, "enum must be a non-empty array")
            return None
        if kind is not None and not isinstance(kind, str):
            raise _refused(path, "type must be a string or an array of strings")
        return self._of_type(kind or "", schema, path)

    def _of_type(self, kind: str, schema: Mapping[str, Any], path: str) -> None:
        type_name = schema_kind(schema)
        if type_name == "allOf":
            self._alternatives(schema["allOf"], f"{path}/allOf")
        elif type_name == "object":
            self._object(schema, path)
        elif type_name == "array":
            self._array(schema, path)
        elif kind in ("", "string"):
            self._string(schema, path, is_typed=bool(kind))
        elif kind == "integer":
            for bounds in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
                bound = next((name for name in bounds if name in schema), None)
                if bound and (isinstance(schema[bound], bool) or not isinstance(schema[bound], (int, float))):
                    raise _refused(path, f"{bound} must be a number")
        elif kind not in ("number", "boolean", "null"):
            raise _refused(path, f"unrecognized type {kind}")

    def _object(self, schema: Mapping[str, Any], path: str) -> None:
        properties, additional = schema.get("properties", {}), schema.get("additionalProperties", True)
        if not isinstance(properties, dict):
            raise _refused(path, "properties must be an object")
        for name, member in properties.items():
            self.check(member, f"{path}/properties/{name}")
        if isinstance(additional, dict):
            self.check(additional, f"{path}/additionalProperties")
        elif not isinstance(additional, bool):
            raise _refused(path, "additionalProperties must be a boolean or a schema")

    def _array(self, schema: Mapping[str, Any], path: str) -> None:
        key = next((key for key in ("items", "prefixItems") if key in schema), None)
        items = schema[key] if key else {}
        if isinstance(items, list):
            for number, item in enumerate(items):
                self.check(item, f"{path}/{key}/{number}")
            return
        self.check(items, f"{path}/{key}")
        _check_counts(schema, path, "minItems", "maxItems")

    def _string(self, schema: Mapping[str, Any], path: str, is_typed: bool) -> None:
        """A string; without a type, anything goes unless there are keywords for strings."""
        shape = schema.get("format", "")
        if is_typed or any(name in schema for name in ("pattern", "minLength", "maxLength")):
            if not isinstance(schema.get("pattern", ""), str):
                raise _refused(path, "pattern must be a string")
            if isinstance(shape, str):
                return _check_counts(schema, path, "minLength", "maxLength")
        if not isinstance(shape, str):
            raise _refused(path, "format must be a string")
        return None

    def _alternatives(self, given: Any, path: str) -> None:
        if not isinstance(given, list):
            raise _refused(path, "must be an array of schemas")
        if not given:
            raise _refused(path, "must not be empty")
        for number, one in enumerate(given):
            self.check(one, f"{path}/{number}")

    def _reference(self, reference: Any, path: str) -> None:
        if not isinstance(reference, str):
            raise _refused(path, "$ref must be a string")
        if not reference.startswith("#/"):
            only = "only references into the same document are supported"
            raise _refused(path, f"unsupported $ref {reference}, {only}")
        if reference not in self._seen:
            self._seen.add(reference)
            self.check(self.target(reference, path), reference)

    def target(self, reference: str, path: str) -> Any:
        """What a reference points to. `ChatError` if that is nothing."""
        schema = self._root
        for name in reference.split("/")[1:]:
            if isinstance(schema, dict) and name in schema:
                schema = schema[name]
            elif isinstance(schema, list):
                digits = _INDEX.match(name)
                if not digits or int(digits[1]) >= len(schema):
                    raise _refused(path, f"cannot resolve $ref {reference}, {name} is out of range")
                schema = schema[int(digits[1])]
            else:
                raise _refused(path, f"cannot resolve $ref {reference}, {name} not found")
        return schema


_INDEX = re.compile(r"[ \t\n\v\f\r]*\+?([0-9]{1,18})(?![0-9])")  # as stoull reads it


def _check_counts(schema: Mapping[str, Any], path: str, *names: str) -> None:
    for name in names:
        value = schema.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int) or value & 0x8000_0000:  # read as an int32
            raise _refused(path, f"{name} must be a non-negative integer")
