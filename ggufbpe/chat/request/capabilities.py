"""Finds what a template supports by running it on small chats and watching what it reads.

A template does not declare whether it takes content in parts, a system role or tools. llama.cpp runs it with marked
values and notes which of them are read, and how; messages are then changed into what the template takes.

Source: common/jinja/caps.cpp, and value_t::stats_t in runtime.cpp.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..._util.errors import ChatError
from ..template.call_arguments import Builtin, Scope
from ..template.functions import methods_for
from ..template.runtime import Runtime
from ..template.values import Undefined, Value

if TYPE_CHECKING:
    from ..template.environment import Template


@dataclass(frozen=True)
class Capabilities:
    """What a template takes, in llama.cpp's words (`chat_template_caps` of `/props`)."""

    supports_string_content: bool = True
    supports_typed_content: bool = False
    supports_tools: bool = True
    supports_tool_calls: bool = True
    supports_parallel_tool_calls: bool = True
    supports_system_role: bool = True
    supports_preserve_reasoning: bool = False
    supports_reasoning_effort: bool = False
    supports_object_arguments: bool = False


class _Watched:
    """A value that remembers whether it was read, and by what."""

    used = False

    def __init__(self, *_: Any) -> None:
        self.operations: set[str] = set()

    def touch(self, *operations: str) -> None:
        self.used = True
        self.operations.update(operations)


class _Text(_Watched, str):
    __hash__ = str.__hash__


class _Array(_Watched, list[Value]):
    def __init__(self, items: list[Value]) -> None:
        list.__init__(self, items)
        _Watched.__init__(self)


class _Object(_Watched, dict[str, Value]):
    def __init__(self, members: dict[str, Value]) -> None:
        dict.__init__(self, members)
        _Watched.__init__(self)


def _watched(value: Any) -> Value:
    if isinstance(value, str):
        return _Text(value)
    if isinstance(value, list):
        return _Array([_watched(item) for item in value])
    if isinstance(value, dict):
        return _Object({key: _watched(item) for key, item in value.items()})
    return value


def _touch(value: Value, *operations: str) -> None:
    if isinstance(value, _Watched):
        value.touch(*operations)


class _WatchingRuntime(Runtime):
    """A run that notes what is read."""

    def name(self, scope: Scope, name: str) -> Value:
        value = super().name(scope, name)
        _touch(value)
        return value

    def method(self, value: Value, name: str) -> Value:
        _touch(value, name)
        return super().method(value, name)

    def attribute(self, value: Value, name: str) -> Value:
        _touch(value, name)
        value_read = super().attribute(value, name)
        if name not in methods_for(value) and not isinstance(value, Undefined):
            _touch(value, "object_access")
            _touch(value_read)
        return value_read

    def call_method(self, scope: Scope, arguments: list[Value], value: Value, name: str) -> Value:
        return self.call(scope, arguments, self.attribute(value, name))

    def item(self, value: Value, key: Value) -> Value:
        member = super().item(value, key)
        if not isinstance(key, Undefined) and not isinstance(value, Undefined):
            by_number = isinstance(key, int) and not isinstance(value, dict)
            _touch(value, "array_access" if by_number else "object_access")
            _touch(member)
            _touch(key)
        return member

    def slice(self, value: Value, **bounds: Value) -> Value:
        _touch(value, "slice")
        return super().slice(value, **bounds)

    def filter_of(self, value: Value, name: str) -> Builtin:
        _touch(value, name)
        return super().filter_of(value, name)

    def test(self, name: str, arguments: list[Value]) -> Value:
        _touch(arguments[0], "test_is_" + name)
        return super().test(name, arguments)

    def rows(self, value: Value, names: int) -> list[Value]:
        _touch(value, "array_access", *(("object_access",) if isinstance(value, dict) else ()))
        return super().rows(value, names)

    def look_at_all(self, value: Value) -> None:
        stack, seen = [value], set()
        while stack:
            value = stack.pop()
            _touch(value)
            if isinstance(value, (list, tuple, dict)) and id(value) not in seen:
                seen.add(id(value))
                self.step(len(value))
                stack.extend(value.values() if isinstance(value, dict) else value)


def _used(value: Value) -> bool:
    # a value that the template itself makes is not watched
    return bool(getattr(value, "used", False))


def _operations(value: Value) -> set[str]:
    return value.operations if isinstance(value, _Watched) else set()


def _looked_at(value: Value, *way: str | int) -> Value:
    """A value inside the given ones. `ChatError` if the template has removed it."""
    try:
        for key in way:
            value = value[key]
    except (IndexError, KeyError, TypeError):
        raise ChatError("the chat template takes messages away from the chat") from None
    return value


@dataclass
class _Probe:
    """The outcome of one run."""

    messages: Value
    tools: Value
    names: Scope
    text: str
    success: bool


def _probe(
    template: Template,
    messages: list[dict[str, Any]],
    tools: list[Any] | None = None,
    names: Scope | None = None,
) -> _Probe:
    while True:
        scope: Scope = {
            "messages": _watched(messages),
            "tools": _watched(tools or []),
            "bos_token": _watched(""),
            "eos_token": _watched(""),
            "add_generation_prompt": True,
            **(names or {}),
        }
        try:
            text, success = template.render_by(_WatchingRuntime(time.localtime()), scope), True
        except ChatError as error:
            if isinstance(error.__context__, RecursionError):  # of who asks, maybe, and not of the template
                raise
            text, success = "", False
        silent = [m for m in messages if m["role"] == "assistant" and "reasoning_content" not in m]
        if success or not silent:  # some templates require reasoning in every answer
            return _Probe(scope["messages"], scope["tools"], scope, text, success)
        messages = [{**m, "reasoning_content": ""} if m in silent else m for m in messages]


_USER = {"role": "user", "content": "User message"}
_MARKER = "STRING_MARKER"
_REASONING = "<REASONING_CONTENT_PLACEHOLDER>"
_TOOLS = [
    {
        "name": "tool",
        "type": "function",
        "function": {
            "name": "tool1",
            "description": "Tool description",
            "parameters": {
                "type": "object",
                "properties": {"arg": {"type": "string", "description": "Arg description"}},
                "required": ["arg"],
            },
        },
    }
]


def _tool_chat(arguments: Any, calls: int = 1) -> list[dict[str, Any]]:
    made = [
        {
            "id": f"call0000{number + 1}",
            "type": "function",
            "function": {"name": "tool1", "arguments": arguments},
        }
        for number in range(calls)
    ]
    return [
        _USER,
        {"role": "assistant", "content": "", "tool_calls": made},
        {"role": "tool", "content": "Tool response", "tool_call_id": "call00001"},
        {"role": "assistant", "content": "The tool response was 'tool response'"},
        _USER,
    ]


@lru_cache(maxsize=8)  # models that are compared have the same templates
def detect_capabilities(template: Template) -> Capabilities:
    """What a template supports."""
    abilities: dict[str, bool] = {}
    for look in (_content, _system_role, _tools, _parallel_calls, _reasoning):
        abilities |= look(template, abilities)
    return Capabilities(**abilities)


def _content(template: Template, abilities: dict[str, bool]) -> dict[str, bool]:
    def as_array(content: Value) -> bool:
        return not _operations(content).isdisjoint(("selectattr", "array_access"))

    out = {}
    probe = _probe(template, [{"role": "user", "content": _MARKER}])
    content = _looked_at(probe.messages, 0, "content")
    if as_array(content):
        out["supports_typed_content"] = True
    if not probe.success or (as_array(content) and _MARKER not in probe.text):
        out["supports_string_content"] = False
    if "test_is_string" in _operations(content):
        probe = _probe(template, [{"role": "user", "content": []}])
        if probe.success and as_array(_looked_at(probe.messages, 0, "content")):
            out["supports_typed_content"] = True
    return out


def _system_role(template: Template, abilities: dict[str, bool]) -> dict[str, bool]:
    probe = _probe(template, [{"role": "system", "content": "System message"}, _USER])
    return {"supports_system_role": _used(_looked_at(probe.messages, 0, "content"))}


def _tools(template: Template, abilities: dict[str, bool]) -> dict[str, bool]:
    out: dict[str, bool] = {}
    probe = _probe(template, _tool_chat({"arg": "value"}), _TOOLS)
    if probe.success:
        out |= _tools_used(probe)
        if out.get("supports_tool_calls", True):
            argument = _looked_at(probe.messages, 1, "tool_calls", 0, "function", "arguments", "arg")
            out["supports_object_arguments"] = _used(argument)
    if not out.get("supports_object_arguments"):
        probe = _probe(template, _tool_chat('{"arg": "value"}'), _TOOLS)
        if probe.success:
            out |= _tools_used(probe)
        else:
            out |= {"supports_tool_calls": False, "supports_tools": False}
    return out


def _tools_used(probe: _Probe) -> dict[str, bool]:
    """What is not used of tools and calls; what is used stays as it was."""
    used = {
        "supports_tools": _used(_looked_at(probe.tools, 0, "function", "name")),
        "supports_tool_calls": _used(_looked_at(probe.messages, 1, "tool_calls")),
    }
    return {name: False for name, is_used in used.items() if not is_used}


def _parallel_calls(template: Template, abilities: dict[str, bool]) -> dict[str, bool]:
    arguments: Any = {"arg": "value"} if abilities.get("supports_object_arguments") else '{"arg": "value"}'
    probe = _probe(template, _tool_chat(arguments, calls=2), _TOOLS)
    used = probe.success and _used(_looked_at(probe.messages, 1, "tool_calls", 1, "function"))
    return {"supports_parallel_tool_calls": used}


def _reasoning(template: Template, abilities: dict[str, bool]) -> dict[str, bool]:
    answer = {"role": "assistant", "content": "Assistant message"}
    chat = [
        _USER,
        {**answer, "reasoning_content": _REASONING},
        _USER,
        {**answer, "reasoning_content": "Reasoning content"},
        _USER,
    ]
    probe = _probe(template, chat, names={"enable_thinking": True, **preserving_names(True)})
    effort = _watched("low")
    _probe(template, [_USER], names={"enable_thinking": True, **dict.fromkeys(EFFORT_NAMES, effort)})
    return {
        "supports_preserve_reasoning": _REASONING in probe.text,
        "supports_reasoning_effort": _used(effort),
    }


EFFORT_NAMES = ("reasoning_effort", "reasoning_strength")


def preserving_names(enabled: bool) -> dict[str, bool]:
    """The names under which templates ask whether to keep the reasoning of earlier answers."""
    forgetting = ("clear_thinking", "truncate_history_thinking", "drop_thinking")
    return {"preserve_thinking": enabled, **dict.fromkeys(forgetting, not enabled)}
