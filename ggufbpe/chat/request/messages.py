"""Parses a request in OpenAI's form, and refuses what llama-server refuses, in the same order.

A field of the wrong type is mostly ignored, and its default used. Refusals are in llama-server's words.

Source: oaicompat_chat_params_parse in tools/server/server-common.cpp; common_chat_msgs_parse_oaicompat
and common_chat_tools_parse_oaicompat in common/chat.cpp.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from ..._util.errors import ChatError
from ..template.run_limits import ChatSize, measure_chat, size_in_bytes
from .chat_message import MEDIA_MARKER, Message
from .json_text import dumped, kind_name

Continuation = Literal["", "auto", "content", "reasoning"]


class Media(Protocol):
    """What takes the images and recordings of a request, in order."""

    @property
    def marker(self) -> str:
        """The text that stands for an image or a recording in the prompt."""

    @property
    def kinds(self) -> Set[str]:
        """The types of parts that are taken: "image_url", "input_audio"."""

    def begin(self) -> None:
        """Forget what was taken before: the messages are read from the first."""

    def load(self, part: Mapping[str, Any]) -> None:
        """Take the image or recording of a part; `ChatError` where llama-server refuses it."""


@dataclass(frozen=True)
class Request:
    """Everything in a request that the prompt, or a refusal, depends on."""

    messages: tuple[Message, ...]
    tools: tuple[dict[str, Any], ...] = ()
    add_generation_prompt: bool = True
    continuation: Continuation = ""
    enable_thinking: bool = True
    json_schema: Any = None
    template_arguments: Mapping[str, Any] = field(default_factory=dict)
    tool_choice: str = "auto"
    extracts_reasoning: bool = True
    echo: bool = False  # whether an answer that goes on is left unread

    def size(self) -> ChatSize:
        """The size of what templates get of the request, by which their limits grow."""
        rest = measure_chat([*self.tools, self.template_arguments])
        texts = (text for each in self.messages for text in each.texts())
        return ChatSize(
            rest.messages + sum(1 + len(each.parts) + len(each.calls) for each in self.messages),
            rest.bytes + sum(map(size_in_bytes, texts)),
        )


class _Body:
    """The fields of a request; a default stands in for one that is missing, null or of the wrong type."""

    def __init__(self, body: Any) -> None:
        self.fields: Mapping[str, Any] = body if isinstance(body, dict) else {}

    def get(self, name: str, default: Any) -> Any:
        value = self.fields.get(name)
        return value if value is not None and isinstance(value, type(default)) else default

    def any(self, name: str) -> Any:
        return self.fields.get(name)

    def __contains__(self, name: str) -> bool:
        return name in self.fields


def parse_request(
    body: Mapping[str, Any], supports_thinking: bool, media: Media | None = None, whole: bool = False
) -> Request:
    """The request in the body of `/apply-template`. `ChatError` where llama-server refuses it.

    `supports_thinking`, whether the template knows about thinking, is the default of `enable_thinking`. `media` takes
    images and audio; without it, a request with these is refused. A `whole` chat is over, so it may end with any
    message: nothing is continued, and no answer begun.
    """
    fields = _Body(body)
    tool_choice = fields.get("tool_choice", "auto")
    schema = _schema(fields)
    if "messages" not in fields:
        raise ChatError("'messages' is required")
    given = fields.any("messages")
    if not isinstance(given, list):
        raise ChatError("Expected 'messages' to be an array")
    if media is not None:
        media.begin()
    for message in given:
        _check_content(message, media)
    messages = _messages(given, "" if media is None else media.marker)
    tools = _tools(fields.any("tools"))
    if tool_choice not in ("auto", "none", "required"):
        raise ChatError(f"Invalid tool_choice: {tool_choice}")
    continuation: Continuation = ""
    add_prompt = not whole and fields.get("add_generation_prompt", True)
    if not whole:
        continuation, add_prompt = _continuation(fields, messages, add_prompt)
    if "reasoning_format" in fields:
        _check_reasoning_format(fields.any("reasoning_format"))
    if tools and tool_choice != "none" and "grammar" in fields:
        raise ChatError("Cannot use custom grammar constraints with tools.")
    thinking, arguments = _template_arguments(fields, supports_thinking)
    return Request(
        messages=messages,
        tools=tools,
        add_generation_prompt=add_prompt,
        continuation=continuation,
        enable_thinking=thinking,
        json_schema=schema,
        template_arguments=arguments,
        tool_choice=tool_choice,
        extracts_reasoning=fields.any("reasoning_format") != "none",
        echo=fields.get("echo", False),
    )


def check_rest(body: Mapping[str, Any]) -> None:
    """What llama-server refuses after it has made the prompt."""
    fields = _Body(body)
    if fields.get("logprobs", False):
        if fields.get("tools", []) and fields.get("stream", False):
            raise ChatError("logprobs is not supported with tools + stream")
    elif fields.any("top_logprobs") is not None:
        raise ChatError("top_logprobs requires logprobs to be set to true")


def _schema(fields: _Body) -> Any:
    schema = fields.any("json_schema")
    if schema is not None and fields.get("grammar", ""):
        raise ChatError("Cannot use both json_schema and grammar")
    if "response_format" in fields:
        wanted = _Body(fields.get("response_format", {}))
        kind = wanted.get("type", "")
        if kind == "json_object":
            if "schema" in wanted or schema in (None, {}, []):
                schema = {} if wanted.any("schema") is None else wanted.any("schema")
        elif kind == "json_schema":
            inner = wanted.any("json_schema")
            found = inner.get("schema") if isinstance(inner, dict) else None
            schema = {} if found is None else found
        elif kind and kind != "text":
            raise ChatError(f'response_format type must be one of "text" or "json_object", but got: {kind}')
    return {"type": "object"} if schema == {} and isinstance(schema, dict) else schema


def _check_content(message: Any, media: Media | None) -> None:
    fields = _Body(message)
    role = fields.get("role", "")
    if role != "assistant" and "content" not in fields:
        raise ChatError("All non-assistant messages must contain 'content'")
    if role == "assistant" and "content" not in fields:
        if "tool_calls" not in fields:
            raise ChatError("Assistant message must contain either 'content' or 'tool_calls'!")
        return
    content = fields.any("content")
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, list):
        raise ChatError("Expected 'content' to be a string or an array")
    for part in content:
        kind = _Body(part).get("type", "")
        if media is not None and kind in media.kinds:
            media.load(part)
            continue
        if media is not None and _MEDIA.get(kind) == "video":
            raise ChatError("video is not counted here, with a projector or without")
        if kind in _MEDIA:
            raise ChatError(
                f"{_MEDIA[kind]} input is not supported - hint: if this is unexpected, "
                "you may need to provide the mmproj"
            )
        if kind != "text":
            raise ChatError("unsupported content[].type")


BOTH_SET = "Cannot set both add_generation_prompt and continue_final_message to true."
_MEDIA = {"image_url": "image", "input_audio": "audio", "input_video": "video", "video_url": "video"}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ChatError(f"[json.exception.type_error.302] type must be string, but is {kind_name(value)}")
    return value


def _member(fields: Any, name: str) -> Any:
    if not isinstance(fields, dict):
        raise ChatError(f"[json.exception.type_error.304] cannot use at() with {kind_name(fields)}")
    if name not in fields:
        raise ChatError(f"[json.exception.out_of_range.403] key '{name}' not found")
    return fields[name]


def _messages(given: list[Any], marker: str) -> tuple[Message, ...]:
    try:
        return tuple(_message(each, marker) for each in given)
    except ChatError as error:
        raise ChatError(f"Failed to parse messages: {error.reason}") from None


def _message(given: Any, marker: str) -> Message:
    if not isinstance(given, dict):
        raise ChatError(f"Expected 'message' to be an object, got {dumped(given)}")
    if "role" not in given:
        raise ChatError(f"Missing 'role' in message: {dumped(given)}")
    role = _text(given["role"])
    content = given.get("content")
    parts: tuple[tuple[str, str], ...] = ()
    if isinstance(content, list):
        parts = tuple(
            (MEDIA_MARKER, marker) if part["type"] in _MEDIA else (part["type"], _text(_member(part, "text")))
            for part in content
        )
    calls = tuple(map(_call, _each(given.get("tool_calls"))))
    return Message(
        role,
        content if isinstance(content, str) else "",
        parts,
        calls,
        _text(given.get("reasoning_content", "")),
        _text(given.get("name", "")),
        _text(given.get("tool_call_id", "")),
    )


def _each(value: Any) -> Iterator[Any]:
    """What a loop over an nlohmann::json visits: for anything but arrays, objects and null, the value itself."""
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value
    elif value is not None:
        yield value


def _function_of(given: Any, what: str) -> Any:
    """The function of a tool or tool call, which have no other type."""
    fields = _Body(given)
    if "type" not in fields:
        raise ChatError(f"Missing {what} type: {dumped(given)}")
    if fields.any("type") != "function":
        raise ChatError(f"Unsupported {what} type: {dumped(given)}")
    if "function" not in fields:
        raise ChatError(f"Missing {what} function: {dumped(given)}")
    return fields.any("function")


def _call(given: Any) -> tuple[str, str, str]:
    function = _function_of(given, "tool call")
    if not isinstance(function, dict) or "name" not in function:
        raise ChatError(f"Missing tool call name: {dumped(given)}")
    name = _text(function["name"])
    arguments = _member(function, "arguments")
    identity = _text(given.get("id", ""))
    return name, arguments if isinstance(arguments, str) else dumped(arguments), identity


def _tools(given: Any) -> tuple[dict[str, Any], ...]:
    if given is None:
        return ()
    try:
        if not isinstance(given, list):
            raise ChatError(f"Expected 'tools' to be an array, got {dumped(given)}")
        return tuple(map(_tool, given))
    except ChatError as error:
        raise ChatError(f"Failed to parse tools: {error.reason}; tools = {dumped(given, 2)}") from None


def _tool(given: Any) -> dict[str, Any]:
    function = _function_of(given, "tool")
    return {
        "type": "function",
        "function": {
            "name": _text(_member(function, "name")),
            "description": _text(function.get("description", "")),
            "parameters": function.get("parameters", {}),
        },
    }


def _continuation(
    fields: _Body, messages: tuple[Message, ...], add_prompt: bool
) -> tuple[Continuation, bool]:
    continuation: Continuation = ""
    if "continue_final_message" in fields:
        continuation = named_continuation(fields.any("continue_final_message"))
    last = messages[-1] if messages else None
    if not continuation and last is not None and last.role == "assistant":
        if len(messages) > 1 and messages[-2].role == "assistant":
            raise ChatError("Cannot have 2 or more assistant messages at the end of the list.")
        continuation, add_prompt = "auto", False
    if continuation and add_prompt:
        raise ChatError(BOTH_SET)
    if continuation and last is not None and last.role == "assistant" and last.calls:
        raise ChatError("Cannot continue an assistant message that contains tool calls.")
    if continuation == "auto" and last is not None:
        continuation = "reasoning" if last.reasoning and not last.content and not last.parts else "content"
    return continuation, add_prompt


def named_continuation(value: Any) -> Continuation:
    """Return what `continue_final_message` asks for; "" if nothing. `ChatError` for a value that is not allowed."""
    if value is None or value is False:
        return ""
    if value is True:
        return "auto"
    if value == "content":
        return "content"
    if value == "reasoning_content":
        return "reasoning"
    raise ChatError('Invalid continue_final_message: expected a boolean, "content" or "reasoning_content"')


def _check_reasoning_format(value: Any) -> None:
    if _text(value) not in ("none", "auto", "deepseek", "deepseek-legacy"):
        raise ChatError(f"Unknown reasoning format: {value}")


def _template_arguments(fields: _Body, supports_thinking: bool) -> tuple[bool, dict[str, Any]]:
    """Whether to think, and further arguments for the template; llama-server keeps reasoning by default."""
    given = fields.any("chat_template_kwargs")
    arguments: dict[str, Any] = {"preserve_reasoning": True, **(given if isinstance(given, dict) else {})}
    thinking = arguments.get("enable_thinking")
    if isinstance(thinking, str):
        raise ChatError('invalid type for "enable_thinking" (expected boolean, got string)')
    enabled = thinking if isinstance(thinking, bool) else supports_thinking
    effort = fields.get("reasoning_effort", "")
    if effort == "none":
        enabled = False
        arguments.pop("reasoning_effort", None)
    elif effort:
        arguments["reasoning_effort"] = effort
    return enabled, arguments
