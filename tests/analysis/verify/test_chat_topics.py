"""What in a chat two programs render differently: parts that have to be left out for equal prompts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ggufbpe.analysis.oracles.chat_answers import ChatAnswer, Prompt, Refused
from ggufbpe.analysis.verify.chat_topics import Two, topics

ASKED = {"role": "user", "content": "Hi"}
CALLED = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}
TOOLS = [{"type": "function", "function": {"name": "f"}}]
ENDS = frozenset({b"<s>", b"</s>"})


def as_json(body: Any) -> ChatAnswer:
    return Prompt(json.dumps(body, sort_keys=True).encode())


def without_key(*keys: str) -> Any:
    """A program that does not see some keys, wherever they are."""

    def seen(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: seen(each) for key, each in value.items() if key not in keys}
        return list(map(seen, value)) if isinstance(value, list) else value

    return lambda body: as_json(seen(body))


def answering(*answers: str) -> Any:
    """Two programs that answer two texts to everything."""
    made = [lambda body, text=text: Prompt(text.encode()) for text in answers]
    return Two(*made, ENDS)


PARTS: dict[str, tuple[Any, dict[str, Any], list[str]]] = {
    "tools": (without_key("tools"), {"messages": [ASKED], "tools": TOOLS}, ["tools"]),
    "calls": (
        without_key("tool_calls"),
        {"messages": [ASKED, CALLED, ASKED], "tools": TOOLS},
        ["tool_calls"],
    ),
    "both": (
        without_key("tool_calls", "tools"),
        {"messages": [ASKED, CALLED, ASKED], "tools": TOOLS},
        ["tools", "tool_calls"],
    ),
    "reasoning": (
        without_key("reasoning_content"),
        {"messages": [{**ASKED, "reasoning_content": "so"}], "tools": TOOLS},
        ["thinking"],
    ),
    "thinking": (
        without_key("enable_thinking"),
        {"messages": [ASKED], "chat_template_kwargs": {"enable_thinking": True}},
        ["thinking"],
    ),
    "arguments": (
        without_key("a"),
        {"messages": [ASKED], "chat_template_kwargs": {"a": 1, "enable_thinking": True}},
        ["arguments"],
    ),
    "fields": (without_key("name"), {"messages": [{**ASKED, "name": "Ada"}]}, ["fields"]),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts(name: str) -> None:
    other, body, expected = PARTS[name]
    assert [topic.id for topic in topics(body, Two(as_json, other))] == expected


def refusing(is_refused: Any) -> Any:
    return lambda body: Refused("no") if is_refused(body["messages"]) else as_json(body["messages"][-1])


REFUSED: dict[str, tuple[Any, list[dict[str, Any]], list[str]]] = {
    "continuation": (
        lambda chat: chat[-1]["role"] == "assistant",
        [ASKED, {**ASKED, "role": "assistant"}],
        ["continuation"],
    ),
    "parts": (
        lambda chat: isinstance(chat[-1]["content"], list),
        [{**ASKED, "content": [{"type": "text", "text": "Hi"}]}],
        ["parts"],
    ),
    "null": (lambda chat: chat[-1]["content"] is None, [{**ASKED, "content": None}], ["empty"]),
    "white space": (
        lambda chat: chat[-1]["content"].startswith(" "),
        [{**ASKED, "content": " Hi"}],
        ["trimmed"],
    ),
    "developer": (
        lambda chat: chat[0]["role"] == "developer",
        [{"role": "developer", "content": "Be terse."}, ASKED],
        ["developer"],
    ),
    "system": (
        lambda chat: chat[0]["role"] in ("developer", "system"),
        [{"role": "system", "content": "Be terse."}, ASKED],
        ["system"],
    ),
    "a role": (
        lambda chat: chat[0]["role"] == "critic",
        [{"role": "critic", "content": "Meh."}, ASKED],
        ["roles"],
    ),
    "a character": (lambda chat: "&" in chat[-1]["content"], [{**ASKED, "content": "a & b"}], ["characters"]),
    "turns": (lambda chat: len(chat) > 1, [ASKED, ASKED], ["turns"]),
    "all chats": (lambda chat: True, [ASKED], ["other"]),
    "no messages": (lambda chat: not chat, [], ["no_messages"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_chats_that_one_refuses(name: str) -> None:
    is_refused, messages, expected = REFUSED[name]
    two = Two(refusing(is_refused), refusing(lambda chat: False))
    assert [topic.id for topic in topics({"messages": messages}, two)] == expected


TEXTS = {
    "BOS": (("<s>user", "user"), ["bos_eos"]),
    "EOS between turns": (("a</s>b", "ab"), ["bos_eos"]),
    "a date": (("Today: 26 Jul 2024.", "Today: 2026-11-26."), ["date"]),
    "a line break": (("user\nHi", "user\n\nHi"), ["whitespace"]),
    "two of them": (("<s>user Hi", "user\nHi"), ["bos_eos", "whitespace"]),
    "another word": (("user", "human"), ["other"]),
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name: str) -> None:
    prompts, expected = TEXTS[name]
    assert [topic.id for topic in topics({"messages": [ASKED]}, answering(*prompts))] == expected


@pytest.mark.parametrize("messages", [None, "Hi", [], [1], {}, [[]]])
def test_what_is_no_chat(messages: Any) -> None:
    found = topics({"messages": messages}, answering("a", "b"))
    assert [topic.id for topic in found] == ["other" if messages else "no_messages"]
