"""Answers that go on and could not be the start of a model's output: which of them llama-server refuses."""

from __future__ import annotations

from typing import Any

import pytest
from recorded_chats import VOCABULARY

from ggufbpe import ChatError, Tokenizer
from ggufbpe.chat.known_templates import known_templates
from ggufbpe.chat.request.continuation_check import may_be_output, may_begin, may_begin_with_json
from ggufbpe.chat.request.messages import Request
from ggufbpe.chat.request.model_output import Output
from ggufbpe.chat.request.reasoning import Reasoning

pytestmark = pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")

USER = {"role": "user", "content": "Hi"}
JSON: dict[str, Any] = {"response_format": {"type": "json_object"}}
NO_REASONING = {"reasoning_format": "none"}
TOOLS = {"tools": [{"type": "function", "function": {"name": "get_weather", "parameters": {}}}]}
NEMO = "mistralai-Mistral-Nemo-Instruct-2407"  # no generation prompt
COHERE = "CohereForAI-c4ai-command-r7b-12-2024-tool_use"  # a mark before each answer's text
MINISTRAL = "mistralai-Ministral-3-14B-Reasoning-2512"  # a family; JSON stands in a fenced block
QWEN = "Qwen-Qwen3-0.6B"
REFUSED = "The model produced output that does not match the expected peg-native format"

# A template, the start of an answer, the rest of a request, and whether llama-server refuses it (b11549, asked live).
CASES: dict[str, tuple[str, str, dict[str, Any], bool]] = {
    "any text": (NEMO, "Text", {}, False),
    "no JSON": (NEMO, "Text", JSON, True),
    "no JSON that is echoed": (NEMO, "Text", {**JSON, "echo": True}, False),
    "no JSON behind a generation prompt": (QWEN, "Text", JSON, False),
    "no JSON behind a space": (NEMO, " Text", JSON, False),
    "an object": (NEMO, '{"a": [1, {}]}', JSON, False),
    "an object with text behind it": (NEMO, '{"a": 1} and so on', JSON, False),
    "the start of an object": (NEMO, '{"a": [tr', JSON, False),
    "an object that goes wrong": (NEMO, '{"a" 1}', JSON, True),
    "an array with a comma too many": (NEMO, "[1,]", JSON, True),
    "a number": (NEMO, "1x", JSON, False),
    "the start of a number": (NEMO, "-", JSON, False),
    "a number with two points": (NEMO, "1..", JSON, True),
    "a zero too many": (NEMO, "01", JSON, True),
    "the start of a word": (NEMO, "tru", JSON, False),
    "another word": (NEMO, "trx", JSON, True),
    "a fenced block": (NEMO, "```json\n{", JSON, False),
    "a fenced block that ends": (NEMO, "```json\n{}\n```", JSON, False),
    "a fenced block that goes on": (NEMO, "```json\n{} x", JSON, True),
    "a fenced block of text": (NEMO, "```json\nText", JSON, True),
    "a string with an escape that there is not": (NEMO, '"\\x"', JSON, True),
    "a string with a line end": (NEMO, '"a\nb', JSON, False),
    "a fenced block behind reasoning": (MINISTRAL, "Text", JSON, False),
    "reasoning where none is expected": (MINISTRAL, "Text", {**JSON, **NO_REASONING}, True),
    "a call, or marks around the text": (COHERE, "Text", TOOLS, False),
    "neither a call nor marks": (COHERE, "Text", {**TOOLS, **NO_REASONING}, True),
    "no call is to be made": (COHERE, "Text", {**TOOLS, **NO_REASONING, "tool_choice": "none"}, False),
}


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    return Tokenizer.from_gguf(VOCABULARY)


@pytest.mark.parametrize("name", CASES)
def test_answers_that_go_on(tok: Tokenizer, name: str) -> None:
    template, content, rest, is_refused = CASES[name]
    source = next(known.source for known in known_templates().values() if known.name == template)
    body = {"messages": [USER, {"role": "assistant", "content": content}], **rest}
    try:
        reason = tok.chats.prompt(body, source)[:0].decode()
    except ChatError as refusal:
        reason = refusal.reason
    assert reason == (REFUSED if is_refused else "")


_TURN = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% for call in m.tool_calls or [] %}"
_CALLS: dict[str, tuple[str, bool]] = {
    "JSON": ('{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments|tojson }}}', True),
    "an object that is written as nothing": (
        '{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments }}}',
        False,
    ),
    "an object as Python writes it": (
        '{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments|string }}}',
        False,
    ),
    "a name in JSON, without an object": (': "{{ call.function.name }}"', False),
    "no JSON, nor anything like it": ("{{ call.function.name }} {{ call.function.arguments }}", True),
}


@pytest.mark.parametrize("name", _CALLS)
def test_templates_whose_calls_are_no_json(tok: Tokenizer, name: str) -> None:
    """llama-server does not start with a template under which a call looks like JSON and is none."""
    call, is_taken = _CALLS[name]
    source = f"{_TURN}{call}{{% endfor %}}<|im_end|>\n{{% endfor %}}"
    try:
        prompt = tok.chats.prompt({"messages": [USER]}, source)
    except ChatError as refusal:
        prompt = refusal.reason.partition(": ")[0].encode()
    refused = b"Unable to generate parser for this template. Automatic parser generation failed"
    assert prompt == (b"<|im_start|>user\nHi<|im_end|>\n" if is_taken else refused)


STARTS_OF_JSON = {
    "": True,
    "[": True,
    '{"a": [1, {"b": null}], "c"': True,
    "-1.5e+": True,
    "falsy": False,
    "{1": False,
    '{"a": 1,}': False,
    "[1 2": False,
    '"\\u12': True,
    '"\\u1g': False,
    "```json [1] ``": True,
    "```json [1] x": False,
    "[" * 100_000: True,
}


@pytest.mark.parametrize("text", STARTS_OF_JSON, ids=lambda text: text[:20])
def test_may_begin_with_json(text: str) -> None:
    assert may_begin_with_json(text) is STARTS_OF_JSON[text]


def test_may_begin() -> None:
    assert [may_begin(text, "<think>") for text in ("", "<th", "<think>x", "<x")] == [True, True, True, False]


MARKS = Reasoning(True, "<t>", "</t>")
TOOL = {"type": "function", "function": {"name": "f"}}
TAGGED = Output(calls="tagged", name_start="call:", supports_calls=True)
OUTPUTS: dict[str, tuple[str, str, Reasoning, Output, dict[str, Any], bool]] = {
    "anything behind a generation prompt": ("x", "A:", Reasoning(), Output(), {"json_schema": {}}, True),
    "no JSON": ("x", "", Reasoning(), Output(), {"json_schema": {}}, False),
    "reasoning before JSON": ("<t>x", "<t>", MARKS, Output(), {"json_schema": {}}, True),
    "no reasoning, by wish": (
        "<t>x", "<t>", MARKS, Output(), {"json_schema": {}, "extracts_reasoning": False}, False,
    ),
    "a call": ("call:f(", "", Reasoning(), TAGGED, {"tools": (TOOL,)}, True),
    "a call of another function": ("call:g(", "", Reasoning(), TAGGED, {"tools": (TOOL,)}, False),
    "no call is to be made": ("x", "", Reasoning(), TAGGED, {"tools": (TOOL,), "tool_choice": "none"}, True),
    "another mark than that of answers": ("x", "", MARKS, Output(content_start="<a>"), {}, False),
}  # fmt: skip


@pytest.mark.parametrize("name", OUTPUTS)
def test_may_be_output(name: str) -> None:
    text, generation_prompt, marks, output, fields, expected = OUTPUTS[name]
    assert may_be_output(text, generation_prompt, marks, output, Request((), **fields)) is expected
