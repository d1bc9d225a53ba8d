"""What Ollama gives to templates: messages collated, in both APIs' forms, turns, and tools as Go writes them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from ggufbpe import ChatError
from ggufbpe.chat.ollama_prompt import OllamaTemplate
from ggufbpe.chat.ollama_values import messages_of, tools_of

CHAT = [
    {"role": "system", "content": "S"},
    {"role": "user", "content": "a"},
    {"role": "user", "content": "b"},
    {"role": "assistant", "content": "c"},
    {"role": "user", "content": "d"},
]
OLD = "{{ if .System }}[{{ .System }}]{{ end }}<{{ .Prompt }}>{{ .Response }};"


def prompt(source: str, messages: list[dict[str, Any]] = CHAT, **body: Any) -> str:
    return OllamaTemplate(source).prompt({"messages": messages, **body}, datetime(2026, 7, 1)).decode()


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (
            "{{ range .Messages }}{{ .Role }}={{ .Content }};{{ end }}",
            "system=S;user=a\n\nb;assistant=c;user=d;",
        ),
        ("{{ .System }}{{ range .Messages }}.{{ end }}", "S...."),
        (OLD, "[S]<a\n\nb>c;<d>"),
        ("<{{ .Prompt }}>", "<a\n\nb>c<d>"),  # .Response is added
        ("{{ .Prompt }}{{ if .Response }}({{ .Response }}){{ end }}!", "a\n\nb(c)!d"),
        ("{{ currentDate }} {{ yesterdayDate }}{{ .Messages | len }}", "2026-07-01 2026-06-304"),
        ("{{ .Think }}{{ .ThinkLevel }}{{ .IsThinkSet }}{{ len .Messages }}", "falsefalse4"),
    ],
)
def test_a_chat(source: str, text: str) -> None:
    assert prompt(source) == text


def test_thinking_and_filling_in() -> None:
    source = "{{ len .Messages }}{{ .Think }}{{ .ThinkLevel }}"
    assert prompt(source, think=True) == "4truemedium"
    assert prompt(source, think="high") == "4truehigh"
    assert prompt("{{ .Prompt }}|{{ .Suffix }}|{{ .Response }}", prompt="a", suffix="b") == "a|b|"
    with pytest.raises(ChatError, match="'think' must be true"):
        prompt(source, think="loud")


def test_what_a_newer_kind_of_template_crashes_ollama_with() -> None:
    with pytest.raises(ChatError, match="Ollama crashes on this template"):
        prompt("{{ if .Prompt }}{{ .Response }}{{ else }}x{{ end }}")
    with pytest.raises(ChatError, match=r"Ollama refuses \{\{ template"):
        OllamaTemplate('{{ define "t" }}x{{ end }}{{ template "t" }}')
    with pytest.raises(ChatError, match='"json" is not a defined function'):
        prompt("{{ json .Prompt }}{{ .Response }}")  # the last turn runs without Ollama's functions


def test_the_form_of_openai_and_that_of_ollama_are_the_same() -> None:
    call = {"name": "f", "arguments": {"b": 1, "a": [1.5]}}
    source = (
        "{{ range .Messages }}{{ .Role }}{{ range .ToolCalls }}{{ .Function.Name }}{{ .Function.Arguments }}"
    )
    source += "{{ end }}{{ .Content }}{{ .Thinking }}{{ .ToolName }};{{ end }}"
    ours = [
        {"role": "assistant", "content": "", "thinking": "t", "tool_calls": [{"id": "1", "function": call}]},
        {"role": "tool", "content": "r", "tool_name": "f", "tool_call_id": "1"},
    ]
    openai = [
        {
            "role": "Assistant",
            "content": None,
            "reasoning": "t",
            "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": '{"b": 1, "a": [1.5]}'}}],
        },
        {"role": "tool", "content": "r", "tool_call_id": "1"},
    ]
    assert prompt(source, ours) == prompt(source, openai) == 'assistantf{"a":[1.5],"b":1}t;toolrf;'
    parts = [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]
    assert prompt("{{ range .Messages }}{{ .Content }}{{ end }}", parts) == "a\n\nb"


def test_values_that_are_none() -> None:
    deep: Any = {}
    for _ in range(5000):
        deep = {"a": deep}
    call = {"function": {"name": "f", "arguments": deep}}
    with pytest.raises(ChatError, match="the chat is nested too deeply"):
        prompt("{{ json .Messages }}", [{"role": "user", "content": "", "tool_calls": [call]}])
    with pytest.raises(ChatError, match="lone surrogate"):
        prompt("{{ .Messages }}", [{"role": "user", "content": "\ud800"}])
    with pytest.raises(ChatError, match="Go prints an address here"):
        prompt("{{ .Messages }}")


def test_tools() -> None:
    properties = {"z": {"type": ["string", "null"], "description": "<z>"}, "a": {"type": "integer"}}
    function = {"name": "f", "parameters": {"type": "object", "properties": properties}}
    tools = [{"type": "function", "function": function}]
    source = "{{ range .Tools }}{{ range $n, $p := .Function.Parameters.Properties }}{{ $n }}:{{ $p.Type }} "
    source += "{{ toTypeScriptType $p }};{{ end }}{{ end }}{{ .Tools }}{{ len .Messages }}"
    text = (
        'a:integer number;z:[string null] string | null;[{"type":"function","function":{"name":"f","description":"",'
        '"parameters":{"type":"object","properties":{"a":{"type":"integer"},"z":{"type":["string","null"],'
        '"description":"\\u003cz\\u003e"}}}}}]4'
    )
    assert prompt(source, tools=tools) == text
    assert prompt("{{ .Tools }}{{ len .Messages }}") == "null4"


@pytest.mark.parametrize(
    ("messages", "tools", "words"),
    [
        ("x", None, "'messages' must be an array of objects"),
        ([1], None, "'messages' must be an array of objects"),
        ([{"role": 1}], None, "'role' must be a string"),
        ([{"role": "user", "content": 1}], None, "the content of a message must be a text"),
        ([{"role": "user", "content": "x", "images": ["a"]}], None, "images and audio are not rendered"),
        ([{"role": "user", "content": [{"type": "image_url"}]}], None, "images and audio are not rendered"),
        (
            [{"role": "user", "content": "", "tool_calls": 1}],
            None,
            "'tool_calls' must be an array of objects",
        ),
        ([{"role": "user", "tool_calls": [{"function": 1}]}], None, "'function' must be an object"),
        (
            [{"role": "user", "tool_calls": [{"function": {"arguments": "{"}}]}],
            None,
            "invalid tool call arguments",
        ),
        ([{"role": "user", "tool_calls": [{"function": {"arguments": "[]"}}]}], None, "must be an object"),
        ([], 1, "'tools' must be an array of objects"),
        ([], [{"function": {"parameters": {"properties": {"a": 1}}}}], "must be objects"),
        ([], [{"function": {"parameters": {"properties": {"a": {"anyOf": 1}}}}}], "'anyOf' must be an array"),
        (
            [],
            [{"function": {"parameters": {"properties": {"a": {"type": 1}}}}}],
            "'type' must be an array of strings",
        ),
    ],
)
def test_requests_that_are_none(messages: Any, tools: Any, words: str) -> None:
    with pytest.raises(ChatError, match=words):
        messages_of(messages), tools_of(tools)
