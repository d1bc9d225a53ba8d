"""Converts requests to Anthropic's Messages and OpenAI's Responses API to Chat Completions, which `chat/` renders.

Only the fields on which the prompt depends are converted: no limits, no sampling.

Source: server_chat_convert_anthropic_to_oai and server_chat_convert_responses_to_chatcmpl in
tools/server/server-chat.cpp.
"""

from __future__ import annotations

import re
from typing import Any

from ..chat.request.json_text import dumped
from .failures import RequestError
from .request_body import field, has_field

Object = dict[str, Any]

# ---- Anthropic ------------------------------------------------------------------------------------------

_BILLING = re.compile(rb"(x-anthropic-billing-header:.*?cch=).{5}(?=;)", re.DOTALL)
_FIRST_STAMP = re.compile(rb"x-anthropic-billing-header:(?:(?!cch=).)*cch=.{5};", re.DOTALL)


def from_anthropic(body: Any) -> Object:
    """A body for `/v1/messages/count_tokens`, converted to Chat Completions."""
    messages = _system_messages(body)
    if not has_field(body, "messages"):
        raise RequestError(400, "'messages' is required")
    given = body["messages"]
    for message in given if isinstance(given, list) else ():
        messages += _anthropic_messages(message)
    converted: Object = {"messages": messages}
    if isinstance(body.get("tools"), list):
        converted["tools"] = [_anthropic_tool(tool) for tool in body["tools"]]
    choice = field(body.get("tool_choice"), "type", "")
    if choice in _CHOICES:
        converted["tool_choice"] = _CHOICES[choice]
    return {**converted, **{name: body[name] for name in _CARRIED if name in body}}


_CHOICES = {"auto": "auto", "any": "required", "tool": "required"}
_CARRIED = ("stream", "chat_template_kwargs")


def _system_messages(body: Any) -> list[Object]:
    given = body.get("system") if isinstance(body, dict) else None
    if given is None:
        return []
    content = ""
    if isinstance(given, str):
        content = _without_stamp(given)
    elif isinstance(given, list):
        texts = (field(block, "text", "") for block in given if field(block, "type", "") == "text")
        content = "".join(map(_without_stamp, texts))
    return [{"role": "system", "content": content}]


def _without_stamp(text: str) -> str:
    """The text with the five bytes that a client changes in each request set to a constant.

    Source: normalize_anthropic_billing_header.
    """
    data = text.encode()
    if not _FIRST_STAMP.match(data):
        return text
    return _BILLING.sub(rb"\1fffff", data, count=1).decode("utf-8", "replace")


def _anthropic_messages(message: Any) -> list[Object]:
    """A message, followed by a message for each tool result in it."""
    role = field(message, "role", "")
    if not has_field(message, "content"):
        return [] if role == "assistant" else [message]
    if not isinstance(message["content"], list):
        return [message]
    content: list[Any] = []
    calls: list[Object] = []
    results: list[Object] = []
    reasoning = ""
    for block in message["content"]:
        kind = field(block, "type", "")
        if kind == "text":
            content.append(block)
        elif kind == "thinking":
            reasoning += field(block, "thinking", "")
        elif kind == "image":
            content += _image(block)
        elif kind == "tool_use":
            calls.append(_call(block))
        elif kind == "tool_result":
            results.append(_result(block))
    if not content and not calls and not reasoning:
        return results
    made: Object = {"role": role, "content": content or ""}
    if calls:
        made["tool_calls"] = calls
    if reasoning:
        made["reasoning_content"] = reasoning
    return [made, *results]


def _image(block: Any) -> list[Object]:
    source: Object = field(block, "source", {})
    kind = field(source, "type", "")
    if kind == "base64":
        media, data = field(source, "media_type", "image/jpeg"), field(source, "data", "")
        return [{"type": "image_url", "image_url": {"url": f"data:{media};base64,{data}"}}]
    if kind == "url":
        return [{"type": "image_url", "image_url": {"url": field(source, "url", "")}}]
    return []


def _call(block: Any) -> Object:
    arguments = block.get("input")
    return {
        "id": field(block, "id", ""),
        "type": "function",
        "function": {
            "name": field(block, "name", ""),
            "arguments": dumped({} if arguments is None else arguments),
        },
    }


def _result(block: Any) -> Object:
    given = block.get("content")
    content: Any = given if isinstance(given, str) else ""
    if isinstance(given, list):
        parts: list[Object] = []
        for part in given:
            kind = field(part, "type", "")
            if kind == "text":
                parts.append({"type": "text", "text": field(part, "text", "")})
            elif kind == "image":
                parts += _image(part)
        has_images = any(field(part, "type", "") == "image" for part in given)
        content = parts if has_images else "".join(part["text"] for part in parts)
    return {"role": "tool", "tool_call_id": field(block, "tool_use_id", ""), "content": content}


def _anthropic_tool(tool: Any) -> Object:
    return {
        "type": "function",
        "function": {
            "name": field(tool, "name", ""),
            "description": field(tool, "description", ""),
            "parameters": tool["input_schema"] if has_field(tool, "input_schema") else {},
        },
    }


# ---- Responses ------------------------------------------------------------------------------------------


def from_responses(body: Any) -> Object:
    """A body for `/v1/responses/input_tokens`, converted to Chat Completions."""
    if not has_field(body, "input"):
        raise RequestError(400, "'input' is required")
    if field(body, "previous_response_id", ""):
        raise RequestError(400, "llama.cpp does not support 'previous_response_id'.")
    given = body["input"]
    converted = {name: value for name, value in body.items() if name not in _REPLACED}
    messages: list[Object] = []
    if "instructions" in body:
        messages.append({"role": "system", "content": field(body, "instructions", "")})
    if isinstance(given, str):
        messages.append({"role": "user", "content": given})
    elif isinstance(given, list):
        for item in given:
            _add_item(messages, item)
    else:
        raise RequestError(400, "'input' must be a string or array of objects")
    converted["messages"] = messages
    if "tools" in body:
        tools = _response_tools(body["tools"])
        if tools:
            converted["tools"] = tools
    if has_field(body.get("reasoning"), "effort"):
        converted["reasoning_effort"] = body["reasoning"]["effort"]
    return converted


_REPLACED = ("input", "instructions", "tools", "max_output_tokens", "reasoning")


def _is(item: Any, name: str, kind: type) -> bool:
    return isinstance(item, dict) and isinstance(item.get(name), kind)


def _add_item(messages: list[Object], item: Any) -> None:
    """Add a message for an item, or extend the assistant's message before it."""
    if _is(item, "content", str):
        item = {**item, "content": [{"text": item["content"], "type": "input_text"}]}
    kind = item.get("type") if _is(item, "type", str) else None
    role = item.get("role") if _is(item, "role", str) else None
    if _is(item, "content", list) and role in ("user", "system", "developer"):
        content = [_input_part(part) for part in item["content"]]
        messages.append({**_but(item, "type", "status"), "content": content})
    elif role == "assistant" and kind == "message":
        content = [_output_part(part) for part in item["content"]] if _is(item, "content", list) else []
        if _ends_with_assistant(messages):
            _own_list(messages[-1], "content").extend(content)
        else:
            messages.append({**_but(item, "type", "status"), "content": content})
    elif kind == "function_call" and all(_is(item, name, str) for name in ("arguments", "call_id", "name")):
        call = {
            "function": {"arguments": item["arguments"], "name": item["name"]},
            "id": item["call_id"],
            "type": "function",
        }
        if _ends_with_assistant(messages):
            _own_list(messages[-1], "tool_calls").append(call)
        else:
            messages.append({"role": "assistant", "tool_calls": [call]})
    elif (
        kind == "function_call_output"
        and _is(item, "call_id", str)
        and (_is(item, "output", str) or _is(item, "output", list))
    ):
        output = item["output"]
        told = output if isinstance(output, str) else [_call_output(part) for part in output]
        messages.append({"content": told, "role": "tool", "tool_call_id": item["call_id"]})
    elif kind == "reasoning" and _is(item, "summary", list):
        text = _reasoning(item)
        if _ends_with_assistant(messages):
            messages[-1]["reasoning_content"] = text
        else:
            messages.append({"role": "assistant", "content": [], "reasoning_content": text})
    else:
        raise RequestError(400, "Cannot determine type of 'item'")


def _ends_with_assistant(messages: list[Object]) -> bool:
    return bool(messages) and messages[-1].get("role") == "assistant"


def _own_list(message: Object, name: str) -> list[Any]:
    """A field of a message as an array, added if missing."""
    if not isinstance(message.get(name), list):
        message[name] = []
    items: list[Any] = message[name]
    return items


def _but(item: Object, *names: str) -> Object:
    return {name: value for name, value in item.items() if name not in names}


def _input_part(part: Any) -> Object:
    kind = field(part, "type", "")
    if kind == "input_text":
        if "text" not in part:
            raise RequestError(400, "'Input text' requires 'text'")
        return {"text": part["text"], "type": "text"}
    if kind == "input_image":
        if "image_url" not in part:
            raise RequestError(400, "'image_url' is required")
        return {"image_url": {"url": part["image_url"]}, "type": "image_url"}
    if kind == "input_file":
        raise RequestError(400, "'input_file' is not supported by llamacpp at this moment")
    raise RequestError(400, "'type' must be one of 'input_text', 'input_image', or 'input_file'")


def _output_part(part: Any) -> Object:
    kind = field(part, "type", "")
    if kind in ("output_text", "input_text"):
        if not _is(part, "text", str):
            raise RequestError(400, "'Output text' requires 'text'")
        return {"text": part["text"], "type": "text"}
    if kind == "refusal":
        if not _is(part, "refusal", str):
            raise RequestError(400, "'Refusal' requires 'refusal'")
        return {"refusal": part["refusal"], "type": "refusal"}
    raise RequestError(400, "'type' must be one of 'output_text' or 'refusal'")


def _call_output(part: Any) -> Object:
    if not has_field(part, "type"):
        raise RequestError(400, "Output of tool call missing 'type' field")
    converted: Object = dict(part)
    if converted["type"] == "input_text":
        converted["type"] = "text"
    elif converted["type"] == "input_image":
        if "image_url" not in converted:
            raise RequestError(400, "'image_url' is required")
        converted |= {"type": "image_url", "image_url": {"url": converted["image_url"]}}
    else:
        raise RequestError(400, "Output of tool call should be 'Input text' or 'Input image'")
    return converted


def _reasoning(item: Object) -> str:
    if not _is(item, "content", list):
        raise RequestError(400, "item['content'] is not an array")
    if not item["content"]:
        raise RequestError(400, "item['content'] is empty")
    if not _is(item["content"][0], "text", str):
        raise RequestError(400, "item['content']['text'] is not a string")
    text: str = item["content"][0]["text"]
    return text


def _response_tools(given: Any) -> list[Object]:
    if not isinstance(given, list):
        raise RequestError(400, "'tools' must be an array of objects")
    return [
        {"type": "function", "function": {**_but(tool, "type"), "strict": tool.get("strict", True)}}
        for tool in given
        if field(tool, "type", "") == "function"
    ]
