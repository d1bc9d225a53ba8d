"""What Ollama gives to a template: messages, calls and tools, with Go's types.

Source: templateMessage and convertToolsForTemplate in Ollama's template/template.go, ToolProperty in api/types.go; the
form of OpenAI's messages in openai/openai.go (FromChatRequest).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from .._util.errors import ChatError
from .go_values import Named, Struct, go_json_text
from .template.values import TemplateError, Value, viewed


class _Tools(Named, list[Value]):
    """The tools of a request."""


class _NoTools(Named, list[Value]):
    """A request without tools: a nil slice."""

    def go_json(self) -> Value:
        return None


class _Object(Named, dict[str, Value]):
    """Arguments of a call, or properties of a function."""


class _NoObject(Named, dict[str, Value]):
    """None of those: a nil map, which prints as an empty one."""

    def go_text(self) -> str:
        return "{}"

    def go_json(self) -> Value:
        return None


class _Types(Named, list[Value]):
    """The type of a property, or several."""

    def go_text(self) -> str:
        return f"[{' '.join(self)}]" if len(self) > 1 else "".join(self)

    def go_json(self) -> Value:
        return self[0] if len(self) == 1 else list(self)


class _Ordered(Named, list[tuple[str, Value]]):
    """The properties of a property, which keep their order, and of which a template can only make JSON."""

    def go_text(self) -> str:
        raise TemplateError("Go prints an address here, which is another in each run")

    def go_json(self) -> Value:
        return Struct(dict(self))

    def __bool__(self) -> bool:
        return True


def messages_of(given: object) -> list[dict[str, Any]]:
    """The messages of a request, which are in the form of Ollama's API or OpenAI's, with the fields of Ollama's."""
    if not isinstance(given, list) or not all(isinstance(message, Mapping) for message in given):
        raise ChatError("'messages' must be an array of objects")
    return [found for message in given for found in _messages(message, given)]


def _messages(message: Mapping[str, Any], given: list[Any]) -> Iterator[dict[str, Any]]:
    """A message; one for each part where its content has parts."""
    role, content = _text(message, "role").lower(), message.get("content")
    thinking = _text(message, "thinking") or _text(message, "reasoning")
    name, call_id = _text(message, "tool_name"), _text(message, "tool_call_id")
    if role == "tool":
        called = (
            call for other in given for call in _objects(other, "tool_calls") if call.get("id") == call_id
        )
        of_call = [_text(_object(call, "function"), "name") for call in called] if call_id else []
        name = name or _text(message, "name") or (of_call[-1] if of_call else "")
    calls = tuple(map(_call, _objects(message, "tool_calls")))
    if message.get("images") or (isinstance(content, list) and any(_is_media(part) for part in content)):
        raise ChatError("images and audio are not rendered as Ollama renders them")
    parts = [part.get("text") for part in content] if isinstance(content, list) else [content or ""]
    if not all(isinstance(part, str) for part in parts):
        raise ChatError("the content of a message must be a text or an array of texts")
    for number, part in enumerate(parts):
        is_whole = number == len(parts) - 1 if calls else not isinstance(content, list)
        yield {
            "Role": role,
            "Content": viewed(part),
            "Thinking": thinking if is_whole else "",
            "Images": (),
            "ToolCalls": calls if is_whole else (),
            "ToolName": name if is_whole else "",
            "ToolCallID": call_id if is_whole else "",
        }


def _is_media(part: object) -> bool:
    return not isinstance(part, Mapping) or part.get("type") != "text"


def _call(call: Mapping[str, Any]) -> Struct:
    function = _object(call, "function")
    arguments, index = function.get("arguments"), function.get("index")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            raise ChatError("invalid tool call arguments") from None
    if not isinstance(arguments, Mapping | None):
        raise ChatError("the arguments of a call must be an object")
    made = {
        "Index": index if type(index) is int else 0,
        "Name": _text(function, "name"),
        "Arguments": _NoObject() if arguments is None else _Object(_any(arguments)),
    }
    return Struct({"ID": _text(call, "id"), "Function": Struct(made)})


def tools_of(given: object) -> Value:
    """The tools of a request. `ChatError` if they are no array of objects."""
    if given is None:
        return _NoTools()
    if not isinstance(given, list) or not all(isinstance(tool, Mapping) for tool in given):
        raise ChatError("'tools' must be an array of objects")
    return _Tools(map(_tool, given))


def _tool(tool: Mapping[str, Any]) -> Struct:
    function = _object(tool, "function")
    parameters = _object(function, "parameters")
    properties = parameters.get("properties")
    fields = {
        "Type": _text(parameters, "type"),
        "Defs": _any(parameters.get("$defs")),
        "Items": _any(parameters.get("items")),
        "Required": _texts(parameters, "required"),
        "Properties": _NoObject() if properties is None else _Object(_properties(parameters)),
    }
    described = {
        "Name": _text(function, "name"),
        "Description": _text(function, "description"),
        "Parameters": Struct(fields, _names(fields, ("Defs", "Items", "Required"))),
    }
    made = Struct(described, _names(described))
    shown = {"Type": _text(tool, "type"), "Items": _any(tool.get("items")), "Function": made}
    whole = Struct(shown, _names(shown, ("Items",)))
    whole.methods = {"String": lambda: go_json_text(whole)}
    return whole


def _names(fields: Mapping[str, Value], optional: Collection[str] = ()) -> dict[str, str]:
    """The names in JSON of the fields that are written: of optional ones, those that are not empty."""
    written = {
        name: value is not None if name in ("Items", "Defs") else bool(value)
        for name, value in fields.items()
    }
    keys = {"Defs": "$defs", "AnyOf": "anyOf"}
    return {name: keys.get(name, name.lower()) for name in fields if written[name] or name not in optional}


def _properties(holder: Mapping[str, Any]) -> dict[str, Value]:
    return {viewed(name): _property(each) for name, each in _object(holder, "properties").items()}


def _property(given: object) -> Struct:
    if not isinstance(given, Mapping):
        raise ChatError("the properties of a function must be objects")
    kind, enum = given.get("type"), given.get("enum") or []
    if not isinstance(enum, list):
        raise ChatError("'enum' must be an array")
    fields = {
        "AnyOf": tuple(map(_property, _objects(given, "anyOf"))),
        "Type": _Types([viewed(kind)] if isinstance(kind, str) else _texts(given, "type")),
        "Items": _any(given.get("items")),
        "Description": _text(given, "description"),
        "Enum": tuple(map(_any, enum)),
        "Properties": None if given.get("properties") is None else _Ordered(_properties(given).items()),
        "Required": _texts(given, "required"),
    }
    made = Struct(fields, _names(fields, fields))
    made.methods = {"ToTypeScriptType": lambda: typescript_type(made)}
    return made


def typescript_type(value: Value) -> str:
    """The type of a property in TypeScript; "any" for other values."""
    if not (isinstance(value, Struct) and "ToTypeScriptType" in value.methods):
        return "any"
    types = [typescript_type(each) for each in value.fields["AnyOf"]]
    return " | ".join(types or [_TYPESCRIPT.get(name, "any") for name in value.fields["Type"]]) or "any"


_TYPESCRIPT = {
    **{name: name for name in ("string", "number", "boolean", "null")},
    "integer": "number",
    "array": "any[]",
    "object": "Record<string, any>",
}


def _any(value: Any) -> Value:
    """JSON as Go reads it without knowing its type: all numbers are floats."""
    if isinstance(value, Mapping):
        return {viewed(name): _any(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return list(map(_any, value))
    return float(value) if type(value) is int else viewed(value)


def _text(holder: Mapping[str, Any], name: str) -> str:
    given = holder.get(name)
    if given is not None and not isinstance(given, str):
        raise ChatError(f"{name!r} must be a string")
    text: str = viewed(given or "")
    return text


def _texts(holder: Mapping[str, Any], name: str) -> tuple[str, ...]:
    given = holder.get(name) or ()
    if not isinstance(given, (list, tuple)) or not all(isinstance(each, str) for each in given):
        raise ChatError(f"{name!r} must be an array of strings")
    return tuple(map(viewed, given))


def _object(holder: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    given = holder.get(name)
    if given is not None and not isinstance(given, Mapping):
        raise ChatError(f"{name!r} must be an object")
    return given or {}


def _objects(holder: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    given = holder.get(name) or []
    if not isinstance(given, list) or not all(isinstance(each, Mapping) for each in given):
        raise ChatError(f"{name!r} must be an array of objects")
    return given
