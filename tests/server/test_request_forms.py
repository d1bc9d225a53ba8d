"""Requests of Anthropic's Messages and OpenAI's Responses API as Chat Completions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ggufbpe.server.failures import RequestError
from ggufbpe.server.request_forms import from_anthropic, from_responses


def user(*content: Any) -> dict[str, Any]:
    """A user's message."""
    return {"role": "user", "content": list(content)}


TEXT = {"type": "text", "text": "hi"}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}}
URL = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}

# Messages of a body for Anthropic's API, and those of Chat Completions.
ANTHROPIC: dict[str, tuple[list[Any], list[Any]]] = {
    "text": ([{"role": "user", "content": "a"}], [{"role": "user", "content": "a"}]),
    "an image": ([user(TEXT, IMAGE)], [user(TEXT, URL)]),
    "a call": (
        [{"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {"x": 1}}]}],
        [
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}}
                ],
            }
        ],
    ),
    "a result and a text": (
        [user({"type": "tool_result", "tool_use_id": "1", "content": [TEXT, TEXT]}, TEXT)],
        [user(TEXT), {"role": "tool", "tool_call_id": "1", "content": "hihi"}],
    ),
    "a result alone": (
        [user({"type": "tool_result", "tool_use_id": "1", "content": [TEXT, IMAGE]})],
        [{"role": "tool", "tool_call_id": "1", "content": [TEXT, URL]}],
    ),
    "reasoning": (
        [{"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, TEXT]}],
        [{"role": "assistant", "content": [TEXT], "reasoning_content": "hm"}],
    ),
    "an assistant without content": ([{"role": "assistant"}, {"role": "user"}], [{"role": "user"}]),
}


@pytest.mark.parametrize("name", ANTHROPIC)
def test_messages_of_anthropic(name: str) -> None:
    given, messages = ANTHROPIC[name]
    assert from_anthropic({"messages": given}) == {"messages": messages}


SYSTEM = [
    ("a", "a"),
    ([TEXT, {"type": "other"}, TEXT], "hihi"),
    (
        "x-anthropic-billing-header: v=1; cch=abcde; rest",
        "x-anthropic-billing-header: v=1; cch=fffff; rest",
    ),
    ("see x-anthropic-billing-header: cch=abcde;", "see x-anthropic-billing-header: cch=abcde;"),
]


@pytest.mark.parametrize(("given", "content"), SYSTEM)
def test_system_messages_of_anthropic(given: Any, content: str) -> None:
    assert from_anthropic({"system": given, "messages": []})["messages"] == [
        {"role": "system", "content": content}
    ]


@pytest.mark.parametrize(("given", "choice"), [("auto", "auto"), ("any", "required"), ("tool", "required")])
def test_tools_of_anthropic(given: str, choice: str) -> None:
    body = {
        "messages": [],
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": given},
        "stream": True,
        "max_tokens": 5,  # no prompt depends on it
    }
    function = {"name": "f", "description": "", "parameters": {"type": "object"}}
    assert from_anthropic(body) == {
        "messages": [],
        "tools": [{"type": "function", "function": function}],
        "tool_choice": choice,
        "stream": True,
    }


CALL = {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}
CALLED = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
ANSWER = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "so"}]}
REASONING = {"type": "reasoning", "summary": [], "content": [{"text": "hm"}]}
SO = {"type": "text", "text": "so"}
RESPONSES: dict[str, tuple[Any, list[Any]]] = {
    "a text": ("hi", [{"role": "user", "content": "hi"}]),
    "an item of text": ([{"role": "user", "content": "hi"}], [user(TEXT)]),
    "an image": (
        [user({"type": "input_image", "image_url": "u"})],
        [user({"type": "image_url", "image_url": {"url": "u"}})],
    ),
    "a call": ([CALL], [{"role": "assistant", "tool_calls": [CALLED]}]),
    "an answer with a call": (
        [ANSWER, CALL],
        [{"role": "assistant", "content": [SO], "tool_calls": [CALLED]}],
    ),
    "a call before an answer": (
        [CALL, ANSWER],
        [{"role": "assistant", "tool_calls": [CALLED], "content": [SO]}],
    ),
    "reasoning before an answer": (
        [REASONING, ANSWER],
        [{"role": "assistant", "content": [SO], "reasoning_content": "hm"}],
    ),
    "a result": (
        [{"type": "function_call_output", "call_id": "1", "output": "42"}],
        [{"role": "tool", "tool_call_id": "1", "content": "42"}],
    ),
}


@pytest.mark.parametrize("name", RESPONSES)
def test_items_of_responses(name: str) -> None:
    given, messages = RESPONSES[name]
    assert from_responses({"input": given}) == {"messages": messages}


def test_fields_of_responses() -> None:
    tools = [{"type": "function", "name": "f"}, {"type": "web_search"}]
    body = {"input": "a", "instructions": "be", "tools": tools, "reasoning": {"effort": "low"}, "top_p": 1}
    assert from_responses(body) == {
        "messages": [{"role": "system", "content": "be"}, {"role": "user", "content": "a"}],
        "tools": [{"type": "function", "function": {"strict": True, "name": "f"}}],
        "reasoning_effort": "low",
        "top_p": 1,
    }


def test_what_is_added_to_a_tool_comes_after_its_own_fields() -> None:
    """A refusal quotes the tools."""
    tools = [{"type": "function", "name": "f"}, {"type": "function", "strict": False, "name": "f"}]
    converted = from_responses({"input": "a", "tools": tools})["tools"]
    assert [list(tool["function"].items()) for tool in converted] == [
        [("name", "f"), ("strict", True)],
        [("strict", False), ("name", "f")],
    ]


REFUSED: list[tuple[Callable[[Any], object], Any, str]] = [
    (from_anthropic, {}, "'messages' is required"),
    (from_responses, {}, "'input' is required"),
    (from_responses, {"input": 1}, "'input' must be a string or array of objects"),
    (from_responses, {"input": "a", "previous_response_id": "x"}, "does not support 'previous_response_id'"),
    (from_responses, {"input": [{}]}, "Cannot determine type of 'item'"),
    (from_responses, {"input": [user({"type": "input_text"})]}, "'Input text' requires 'text'"),
    (from_responses, {"input": [user({"type": "input_file"})]}, "'input_file' is not supported"),
    (from_responses, {"input": [{"type": "reasoning", "summary": [], "content": []}]}, "content'] is empty"),
    (from_responses, {"input": [], "tools": {}}, "'tools' must be an array of objects"),
]


@pytest.mark.parametrize(("convert", "body", "message"), REFUSED)
def test_refused(convert: Callable[[Any], object], body: Any, message: str) -> None:
    with pytest.raises(RequestError) as refusal:
        convert(body)
    assert refusal.value.status == 400
    assert message in refusal.value.message
