"""The changes of a chat that together give an expected prompt."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from small_models import CHATML, small_tokenizer

from ggufbpe.analysis.diagnose import chat_search
from ggufbpe.analysis.diagnose.chat_changes import Rendering, other_template
from ggufbpe.analysis.diagnose.chat_search import Causes, ChatSearch
from ggufbpe.chat.known_templates import known_template

TOKENIZER = small_tokenizer()
SYSTEM = {"role": "system", "content": "Be terse."}
USER = {"role": "user", "content": "What is 2 + 2? "}
ANSWER = {"role": "assistant", "content": "Four."}
AGAIN = {"role": "user", "content": "And 3 + 3?"}
CHAT: dict[str, Any] = {"messages": [SYSTEM, USER, ANSWER, AGAIN]}
STRIPPED = {"messages": [SYSTEM, {**USER, "content": USER["content"].strip()}, ANSWER, AGAIN]}
WITHOUT_END = {"add_generation_prompt": False}
BARE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
GEMMA = known_template("google-gemma-2-2b-it")


def prompt(body: dict[str, Any], template: str = CHATML) -> bytes:
    return TOKENIZER.chats.prompt(body, template)


def equal(expected: bytes) -> Any:
    """Fits a prompt that is the expected one."""

    def fits(made: bytes, changed: int) -> list[Causes]:
        return [()] if made == expected else []

    return fits


def search(expected: bytes, body: dict[str, Any] = CHAT) -> ChatSearch:
    bare = other_template("the bare one", BARE, "use one template")
    return ChatSearch(TOKENIZER, Rendering(body, CHATML), expected, [bare])


@pytest.mark.parametrize(
    ("expected", "causes"),
    [
        (prompt(CHAT), [[]]),
        (prompt({**CHAT, **WITHOUT_END}), [["generation_prompt"]]),
        (prompt(STRIPPED), [["trimmed"]]),
        (prompt({**STRIPPED, **WITHOUT_END}), [["generation_prompt", "trimmed"]]),
        (prompt({"messages": [USER, ANSWER, AGAIN]}), [["system"]]),
        (prompt({"messages": [SYSTEM, AGAIN]}), [["messages"]]),
        (prompt(CHAT, BARE), [["template"]]),
        (prompt(STRIPPED, BARE), [["trimmed", "template"]]),
    ],
)
def test_the_smallest_sets_of_changes(expected: bytes, causes: list[list[str]]) -> None:
    found = search(expected).found(equal(expected))
    assert [[cause.id for cause in each] for each, _ in found] == causes
    assert all(made == expected for _, made in found)


def test_one_of_llama_cpps_templates() -> None:
    body = {"messages": [USER, ANSWER, AGAIN]}
    expected = prompt(body, GEMMA.source)
    [([cause], made)] = search(expected, body).found(equal(expected))
    assert (cause.id, made) == ("template", expected)
    assert GEMMA.name in str(cause.detail["what"])


def test_what_else_a_caller_explains_counts() -> None:
    """A caller that explains any prompt by one cause more."""
    expected = prompt({**CHAT, **WITHOUT_END})
    [by_search] = search(expected).found(equal(expected))
    [(causes, made)] = search(expected).found(lambda made, changed: [by_search[0]])
    assert (causes, made) == (by_search[0], prompt(CHAT))  # no change of the chat is needed


def test_the_nearest_prompt() -> None:
    expected = prompt({**STRIPPED, **WITHOUT_END}).replace(b"terse", b"kind")
    searched = search(expected)
    assert searched.found(equal(expected)) == []
    nearest = searched.nearest()
    assert [cause.id for cause in nearest.causes] == ["generation_prompt"]
    assert nearest.prompt == prompt({**CHAT, **WITHOUT_END})


def test_refusals() -> None:
    assert search(b"x").refusal == ""
    refusing = Rendering(CHAT, "{{ raise_exception('not so') }}")
    searched = ChatSearch(TOKENIZER, refusing, b"x")
    assert "not so" in searched.refusal
    assert searched.own.prompt is None


def test_a_search_that_has_no_time_left_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_search, "SECONDS", -1.0)
    expected = prompt(STRIPPED)
    assert search(expected).found(equal(expected)) == []


def test_of_two_dates_the_one_that_the_prompt_was_made_on_is_told() -> None:
    template = '{{ strftime_now("%Y-%m-%d") }}, known up to 2023-12-01. ' + BARE
    chat = Rendering(CHAT, template, datetime(2026, 1, 15))
    expected = TOKENIZER.chats.prompt(STRIPPED, template, datetime(2024, 7, 26))
    found = ChatSearch(TOKENIZER, chat, expected).found(equal(expected))
    assert [[cause.detail.get("now") for cause in each] for each, _ in found] == [
        ["2024-07-26T00:00:00", None]
    ]
