"""Templates that llama.cpp handles specially: how they are known, and what is done to their messages."""

from __future__ import annotations

from typing import Any

import pytest

from ggufbpe.chat.request.chat_message import Message
from ggufbpe.chat.request.messages import Request
from ggufbpe.chat.request.template_families import HANDLINGS, Handling, find_handling

HARMONY = "<|channel|>"
GEMMA_4 = "'<|tool_call>call:'"
MISTRAL = "[SYSTEM_PROMPT][TOOL_CALLS][ARGS]"
LFM = "<|tool_list_start|><|tool_list_end|>"
DSML = "dsml_token DSML tool_calls"
TRANSLATOR = "[source_lang_code][target_lang_code]"

STARTS = {
    HARMONY: "<|start|>assistant<|channel|>analysis<|message|>",
    MISTRAL: "[THINK]",
    MISTRAL + "[CALL_ID]": None,  # an excluded text
    LFM: "<|im_start|>assistant\n<think>",
    "List of tools: [": "<|im_start|>assistant\n<think>",
    TRANSLATOR: "<start_of_turn>model\n",
    "chat_format=llm-jp-harmony-v1": "<|start|>assistant<|channel|>analysis<|message|>",
    "<|im_start|>": None,
}


@pytest.mark.parametrize("source", STARTS)
def test_find_handling(source: str) -> None:
    handling = find_handling(source)
    assert (handling and handling.start) == STARTS[source]


def test_the_first_that_fits_counts() -> None:
    both = find_handling("chat_format=llm-jp-harmony-v1 <|channel|>")
    assert both is HANDLINGS[1]
    assert both.opening == "<|start|>"


CALL = {"id": "1", "function": {"name": "f", "arguments": "{}"}}
OTHER = {"id": "2", "function": {"name": "g", "arguments": "{}"}}
ASKED: dict[
    str, tuple[str, list[dict[str, Any]], list[dict[str, Any]]]
] = {  # a source, messages before and after
    "reasoning as thinking": (
        LFM,
        [{"role": "assistant", "content": "a", "reasoning_content": "r"}],
        [{"role": "assistant", "content": "a", "reasoning_content": "r", "thinking": "r"}],
    ),
    "no content beside calls": (
        HARMONY,
        [{"role": "assistant", "content": "", "reasoning_content": "r", "tool_calls": [CALL]}],
        [{"role": "assistant", "reasoning_content": "r", "thinking": "r", "tool_calls": [CALL]}],
    ),
    "blocks": (
        MISTRAL,
        [{"role": "user", "content": "u"}, {"role": "assistant", "content": "a", "reasoning_content": "r"}],
        [
            {"role": "user", "content": "u"},
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "r"}, {"type": "text", "text": "a"}],
            },
        ],
    ),
    "results beside their calls": (
        GEMMA_4,
        [
            {"role": "assistant", "tool_calls": [CALL, OTHER]},
            {"role": "tool", "content": '{"x": 1}'},
            {"role": "tool", "content": "text"},
            {"role": "assistant", "content": "so"},
            {"role": "user", "content": "u"},
        ],
        [
            {
                "role": "assistant",
                "tool_calls": [CALL, OTHER],
                "tool_responses": [{"name": "f", "response": {"x": 1}}, {"name": "g", "response": "text"}],
                "content": "so",
            },
            {"role": "user", "content": "u"},
        ],
    ),
    "results in the order of their calls": (
        DSML,
        [
            {"role": "assistant", "tool_calls": [CALL, OTHER]},
            {"role": "tool", "tool_call_id": "2", "content": "g"},
            {"role": "user", "content": "u"},
            {"role": "tool", "tool_call_id": "1", "content": "f"},
        ],
        [
            {"role": "assistant", "tool_calls": [CALL, OTHER]},
            {"role": "tool", "tool_call_id": "1", "content": "f"},
            {"role": "user", "content": "u"},
            {"role": "tool", "tool_call_id": "2", "content": "g"},
        ],
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_messages_are_changed(name: str) -> None:
    source, before, after = ASKED[name]
    handling = find_handling(source)
    assert handling is not None
    assert handling.adjust is not None
    assert handling.adjust(before, {}) == after


def test_languages_of_a_translation() -> None:
    handling = find_handling(TRANSLATOR)
    assert handling is not None
    assert handling.adjust is not None
    [message] = handling.adjust(
        [{"role": "user", "content": [{"text": "a"}, {"text": "b"}]}], {"target_lang_code": "fr"}
    )
    part = {"type": "text", "text": "a\nb", "source_lang_code": "en-GB", "target_lang_code": "fr"}
    assert message == {"role": "user", "content": [part]}


LAST = Message("assistant", "so", reasoning="hm")


@pytest.mark.parametrize(
    ("handling", "continuation", "prefill"),
    [
        (Handling((), start="<t>", middle="</t>"), "content", "<t>hm</t>so"),
        (Handling((), start="<t>", middle="</t>"), "reasoning", "<t>hm"),
        (Handling((), start="A:", plain=True), "reasoning", "A:so"),
    ],
)
def test_prefill(handling: Handling, continuation: Any, prefill: str) -> None:
    assert handling.prefill(LAST, Request((LAST,), continuation=continuation)) == prefill


def test_what_an_answer_may_begin_with() -> None:
    handling = Handling((), start="<t>", opening="A:", json_openings=("{",))
    plain, json = Request(()), Request((), json_schema={})
    assert [handling.may_begin_with(text, plain) for text in ("A: x", "A", "x", "{")] == [
        True,
        True,
        False,
        False,
    ]
    assert [handling.may_begin_with(text, json) for text in ("{}", "A: x", "<t>x")] == [True, False, True]
