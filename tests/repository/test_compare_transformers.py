"""How what is said about chats that transformers renders otherwise is judged (scripts/compare_transformers.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from chat_server import Answer
from compare_transformers import Comparison, Result
from record_transformers import model_with
from recorded_transformers import RecordedTransformers

TEMPLATE = "{{ strftime_now('%Y') }}{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": " Hi "}], "add_generation_prompt": False}


class Trimming(RecordedTransformers):
    """Renders `TEMPLATE` without the spaces around contents."""

    def answer(self, question: Mapping[str, Any]) -> Any:
        turns = (f"<{each['role']}>{each['content'].strip()}" for each in question["conversation"])
        return {"prompt": f"{question['now'][:4]}{''.join(turns)}", "ids": []}


class Server:
    """Answers at the beginning of 2001, with the prompts of llama.cpp or with `prompt`."""

    def __init__(self, prompt: str) -> None:
        self._prompt = prompt

    def ask_at(self, request: dict[str, Any]) -> tuple[Answer, int]:
        turns = (f"<{each['role']}>{each['content']}" for each in request["messages"])
        return Answer(self._prompt or f"2001{''.join(turns)}", 1), 978_307_200 + 86_400


@pytest.mark.parametrize(
    ("prompt", "totals"),
    [
        ("", {"chats": 1, "differ": 1, "explained": 1}),
        ("2001<user>Hi", {"chats": 1, "differ": 1, "explained": 1, "untrue": 1}),
    ],
)
def test_what_is_said_is_true_where_the_prompts_are_as_it_says(prompt: str, totals: dict[str, int]) -> None:
    tokenizer, result = model_with(TEMPLATE), Result()
    server: Any = Server(prompt)
    Comparison("trimming", server, tokenizer, Trimming(tokenizer, TEMPLATE), result).compare(CHAT, 0)
    assert result.totals == totals
    assert result.by_topic == {"whitespace": 1}
