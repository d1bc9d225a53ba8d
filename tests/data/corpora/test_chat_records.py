"""The forms in which chats are published, and the messages that become of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ggufbpe.data.corpora.chat_records import (
    ChatRecord,
    chat_of_record,
    normalized_messages,
    request_body_of,
)

USER, ANSWER = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}
SYSTEM = {"role": "system", "content": "Be kind."}
TOOL = {"type": "function", "function": {"name": "f", "description": "", "parameters": {}}}

FORMS: list[tuple[str, dict[str, Any], ChatRecord]] = [
    ("messages", {"messages": [USER, ANSWER]}, ChatRecord([USER, ANSWER])),
    ("messages as JSON", {"messages": json.dumps([USER, ANSWER])}, ChatRecord([USER, ANSWER])),
    ("keys of other messages", {"messages": [{**USER, "tool_calls": None}]}, ChatRecord([USER])),
    ("columns of other records", {"messages": [USER, ANSWER], "prompt": None}, ChatRecord([USER, ANSWER])),
    (
        "ShareGPT",
        {
            "conversations": [
                {"from": "system", "value": "Be kind."},
                {"from": "human", "value": "Hi"},
                {"from": "gpt", "value": "Hello", "weight": 1},
            ]
        },
        ChatRecord([SYSTEM, USER, ANSWER]),
    ),
    (
        "ShareGPT with calls",
        {
            "conversations": [
                {"from": "Human", "value": "Hi"},
                {"from": "function_call", "value": '{"name": "f", "arguments": {"a": 1}}'},
                {"from": "observation", "value": "2"},
                {"from": "gpt", "value": "Hello"},
            ],
            "tools": json.dumps([TOOL]),
            "system": "Be kind.",
        },
        ChatRecord(
            [
                SYSTEM,
                USER,
                {
                    "role": "assistant",
                    "content": "",
                    "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": {"a": 1}}}],
                },
                {"role": "tool", "content": "2"},
                ANSWER,
            ],
            [TOOL],
        ),
    ),
    ("ShareGPT's field, OpenAI's messages", {"conversations": [USER, ANSWER]}, ChatRecord([USER, ANSWER])),
    ("Alpaca", {"instruction": "Hi", "input": "", "output": "Hello"}, ChatRecord([USER, ANSWER])),
    (
        "Alpaca with an input",
        {"instruction": "Add.", "input": "1, 2", "output": "Hello"},
        ChatRecord([{"role": "user", "content": "Add.\n\n1, 2"}, ANSWER]),
    ),
    (
        "Alpaca with turns before",
        {"instruction": "Hi", "output": "Hello", "history": [["Hi", "Hello"]], "system": "Be kind."},
        ChatRecord([SYSTEM, USER, ANSWER, USER, ANSWER]),
    ),
    ("texts", {"prompt": "Hi", "completion": "Hello"}, ChatRecord([USER, ANSWER], answer=1)),
    (
        "lists of messages",
        {"prompt": [USER, ANSWER, USER], "completion": [ANSWER], "system": "Be kind."},
        ChatRecord([SYSTEM, USER, ANSWER, USER, ANSWER], answer=4),
    ),
]


@pytest.mark.parametrize(("record", "chat"), [case[1:] for case in FORMS], ids=[case[0] for case in FORMS])
def test_forms(record: dict[str, Any], chat: ChatRecord) -> None:
    assert chat_of_record(record) == chat


OTHER = {"role": "assistant", "content": "Go away"}
PAIRS: list[tuple[str, dict[str, Any], int]] = [
    ("texts", {"prompt": "Hi", "chosen": "Hello", "rejected": "Go away"}, 1),
    ("messages", {"prompt": [USER], "chosen": [ANSWER], "rejected": [OTHER]}, 1),
    ("the prompt in both", {"chosen": [USER, ANSWER], "rejected": [USER, OTHER]}, 1),
    ("a text and lists of the answer", {"prompt": "Hi", "chosen": [ANSWER], "rejected": [OTHER]}, 1),
    (
        "a text and ShareGPT's answers",
        {
            "prompt": "Hi",
            "chosen": [{"from": "gpt", "value": "Hello"}],
            "rejected": [{"from": "gpt", "value": "Go away"}],
        },
        1,
    ),
    (
        "and once more",
        {"prompt": "Hi", "chosen": [USER, ANSWER], "rejected": [USER, OTHER], "messages": []},
        1,
    ),
]


@pytest.mark.parametrize(("record", "answer"), [case[1:] for case in PAIRS], ids=[case[0] for case in PAIRS])
def test_pairs(record: dict[str, Any], answer: int) -> None:
    assert chat_of_record(record, "chosen") == ChatRecord([USER, ANSWER], answer=answer)
    assert chat_of_record(record, "rejected") == ChatRecord([USER, OTHER], answer=answer)
    with pytest.raises(ValueError, match="preference='chosen' or preference='rejected'"):
        chat_of_record(record)


def test_equal_answers_of_a_pair_are_answers() -> None:
    assert chat_of_record({"chosen": [USER, ANSWER], "rejected": [USER, ANSWER]}, "chosen").answer == 1


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, "no known form of a chat.*it has none of these fields"),
    ({"text": "Hi"}, "its fields are 'text'"),
    ({"prompt": "Hi"}, "no known form"),
    ({"instruction": "Hi", "output": None}, "no known form"),
    ({"messages": "x"}, "the column 'messages': not JSON"),
    ({"messages": "[" * 100_000}, "not JSON"),
    ({"messages": {"role": "user"}}, "the column 'messages' has no chat"),
    ({"conversations": [{"from": "narrator", "value": "x"}]}, "message 1 is from 'narrator'"),
    ({"conversations": [{"from": 5, "value": "x"}]}, "message 1 is from '5'"),
    ({"conversations": [{"from": "function_call", "value": "f()"}]}, "message 1 is no function call"),
    ({"prompt": 5, "completion": "x"}, "'prompt' is neither a text nor a list"),
    ({"prompt": "x", "completion": {"a": 1}}, "'completion' is neither"),
    ({"prompt": "x", "completion": "y", "label": False}, "rated"),
    ({"instruction": ["x"], "output": "y"}, "'instruction' is not a text"),
    ({"instruction": "x", "output": 5}, "'output' is not a text"),
    ({"instruction": "x", "output": "y", "history": [["x"]]}, "'history' is not a list of pairs"),
    ({"instruction": "x", "output": "y", "history": 5}, "'history' is not a list of pairs"),
    ({"messages": [], "system": 5}, "'system' is not a text"),
    ({"messages": [], "tools": "x"}, "the column 'tools': not JSON"),
    ({"chosen": "x", "rejected": "y"}, "without a prompt"),
    ({"chosen": [], "rejected": 5}, "without a prompt"),
    ({"prompt": "p", "chosen": "x", "rejected": 5}, "'rejected' is neither"),
    ({"chosen": [], "rejected": []}, "no answer"),
]


@pytest.mark.parametrize(("record", "reason"), REFUSED)
def test_what_fits_no_form(record: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        chat_of_record(record, "chosen")


def test_what_is_no_message_is_left_to_the_chat_template() -> None:
    given = [5, {"from": "human"}, {"from": "function_call", "value": None}]
    assert normalized_messages(given, "messages") == [5, {"from": "human"}, {"from": "function_call"}]


def test_fields_of_a_request_stay_in_its_body() -> None:
    """Those that no form reads."""
    fields = {"tool_choice": "none", "chat_template_kwargs": {"enable_thinking": False}}
    for record in (
        {"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]},
        {"instruction": "Hi", "input": "", "output": "Hello"},
        {"messages": [USER, ANSWER]},
    ):
        assert request_body_of({**record, **fields}) == {"messages": [USER, ANSWER], **fields}
