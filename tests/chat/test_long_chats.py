"""Chats of ten thousand messages: every template of llama.cpp's collection renders them within its limits."""

from __future__ import annotations

from typing import Any

import pytest
from record_chats import read_chats
from recorded_chats import VOCABULARY, template_names

from ggufbpe import Tokenizer

pytestmark = pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")

COUNT = 10_001


def body_of(count: int) -> dict[str, Any]:
    """A chat of short turns that ends with a question."""
    turns = [
        {"role": ("user", "assistant")[number % 2], "content": f"Message {number}."}
        for number in range(count)
    ]
    return {"messages": turns}


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    return Tokenizer.from_gguf(VOCABULARY)


@pytest.mark.slow
@pytest.mark.parametrize("name", template_names())
def test_ten_thousand_messages(tok: Tokenizer, name: str) -> None:
    prompt = tok.chats.prompt(body_of(COUNT), read_chats("templates")[name] or None)
    assert [prompt.count(b"Message %d." % number) for number in (0, COUNT // 2, COUNT - 1)] == [1, 1, 1]


@pytest.mark.slow
def test_hundreds_of_tool_calls(tok: Tokenizer) -> None:
    """Cohere's template counts, for each call and each result, the calls of the whole chat in one variable."""
    messages: list[dict[str, Any]] = []
    for number in range(400):
        function = {"name": "weather", "arguments": '{"city": "Paris"}'}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        messages += [
            {"role": "user", "content": f"Message {number}."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": f"Result {number}."},
            {"role": "assistant", "content": "Sunny."},
        ]
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}}
    tool = {"type": "function", "function": {"name": "weather", "parameters": parameters}}
    body = {"messages": messages, "tools": [tool]}
    prompt = tok.chats.prompt(body, read_chats("templates")["Cohere2MoE"])
    assert [prompt.count(b"Result %d." % number) for number in (0, 200, 399)] == [1, 1, 1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["google-gemma-4-31B-it", "Reka-Edge", "Kimi-K3"])
def test_the_origins_of_two_thousand_messages(tok: Tokenizer, name: str) -> None:
    """By a run over texts that know their origins, which is slower and makes more."""
    found = tok.chats.parts(body_of(2001), read_chats("templates")[name])
    assert {part.origin.index for part in found.parts if part.origin.kind == "message"} == set(range(2001))
