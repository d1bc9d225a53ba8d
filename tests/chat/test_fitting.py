"""`fit_chat` leaves out the fewest turns, as trying every number of them shows, with few renderings."""

from __future__ import annotations

import random
from datetime import datetime
from typing import Any

import pytest
from conftest import GPT2

from ggufbpe import ChatError, Tokenizer
from ggufbpe.chat.fitting import FitPolicy

TOK = Tokenizer.from_gguf(GPT2)
NOW = datetime(2026, 1, 1)
TEMPLATES = ("known:Qwen-Qwen3-0.6B", "known:google-gemma-2-2b-it", "known:chatml")
WORDS = ("the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "and", "runs", "away")


def text(dice: random.Random, words: int) -> str:
    return " ".join(dice.choices(WORDS, k=words))


def random_chat(dice: random.Random, tools: bool) -> list[dict[str, Any]]:
    found = [{"role": "system", "content": text(dice, 9)}] if dice.random() < 0.5 and tools else []
    for number in range(dice.randint(1, 6)):
        found.append({"role": "user", "content": text(dice, dice.randint(1, 30))})
        if tools and dice.random() < 0.4:
            call = {
                "type": "function",
                "id": f"call{number:05}",
                "function": {"name": "f", "arguments": "{}"},
            }
            found.append({"role": "assistant", "content": "", "tool_calls": [call]})
            content = text(dice, dice.choice((2, 40, 100)))
            found.append({"role": "tool", "tool_call_id": call["id"], "content": content})
        found.append({"role": "assistant", "content": text(dice, dice.randint(1, 30))})
    return [*found, {"role": "user", "content": "end"}]


def count(messages: list[dict[str, Any]], template: str) -> int:
    return len(TOK.apply_chat_template(messages, chat_template=template, now=NOW))


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_fewest_turns_are_left_out(template: str) -> None:
    dice = random.Random(template)
    for _ in range(25):
        chat = random_chat(dice, tools="gemma" not in template)
        limit = dice.randint(10, count(chat, template) + 2)
        users = [number for number, message in enumerate(chat) if message["role"] == "user"]
        system = [message for message in chat if message["role"] == "system"]
        fitting = [
            number
            for number in users
            if count(chat if number == users[0] else [*system, *chat[number:]], template) <= limit
        ]
        if not fitting:
            with pytest.raises(ChatError, match="the chat does not fit"):
                TOK.fit_chat(chat, limit, chat_template=template, now=NOW)
            continue
        fitted = TOK.fit_chat(chat, limit, chat_template=template, now=NOW)
        assert fitted.messages == [*system, *chat[fitting[0] :]]
        assert fitted.dropped == tuple(range(len(system), fitting[0]))
        assert fitted.count == count(fitted.messages, template) <= limit
        assert fitted.renderings <= 12


def test_the_fewest_results_are_cut() -> None:
    dice = random.Random(3)
    keep = {"shorten": ["tool"], "shorten_to": 10}
    for _ in range(25):
        chat = random_chat(dice, tools=True)
        full = count(chat, TEMPLATES[0])
        limit = dice.randint(full // 2, full)
        try:
            fitted = TOK.fit_chat(chat, limit, keep=keep, chat_template=TEMPLATES[0], now=NOW)
        except ChatError:
            continue
        without = TOK.fit_chat(chat, full, chat_template=TEMPLATES[0], now=NOW)
        assert fitted.count <= limit <= without.count
        for number in fitted.shortened:
            [cut] = [
                m["content"] for m in fitted.messages if m.get("tool_call_id") == chat[number]["tool_call_id"]
            ]
            assert TOK.fits(cut, 10)
        if fitted.shortened:  # with one less, it does not fit
            last = fitted.shortened[-1]
            more = [
                chat[last] if m.get("tool_call_id") == chat[last]["tool_call_id"] else m
                for m in fitted.messages
            ]
            assert count(more, TEMPLATES[0]) > limit


def test_a_long_chat_takes_few_renderings() -> None:
    dice = random.Random(1)
    roles = ("user", "assistant")
    chat = [{"role": roles[n % 2], "content": text(dice, dice.randint(5, 200))} for n in range(200)]
    fitted = TOK.fit_chat([*chat, {"role": "user", "content": "end"}], 4096, chat_template=TEMPLATES[0])
    assert fitted.count <= 4096
    assert fitted.renderings <= 12


POLICIES: list[tuple[dict[str, Any], tuple[int, ...]]] = [
    ({}, (1, 2, 3, 4)),
    ({"keep_last": 2}, (1, 2)),
    ({"keep_first": 1}, (3, 4)),
    ({"keep_roles": []}, (0, 1, 2, 3, 4)),
]


@pytest.mark.parametrize(("keep", "dropped"), POLICIES)
def test_what_stays(keep: dict[str, Any], dropped: tuple[int, ...]) -> None:
    chat = [
        {"role": "system", "content": "S"},
        *[{"role": "user", "content": "u"}, {"role": "assistant", "content": "a"}] * 2,
    ]
    chat.append({"role": "user", "content": "last"})
    kept = [message for number, message in enumerate(chat) if number not in dropped]
    limit = count(kept, TEMPLATES[2])
    fitted = TOK.fit_chat(chat, limit, keep=keep, chat_template=TEMPLATES[2])
    assert (fitted.dropped, fitted.messages) == (dropped, kept)
    assert (
        TOK.fit_chat(chat, limit + 100, answer=100, keep=FitPolicy.of(keep), chat_template=TEMPLATES[2])
        == fitted
    )


def test_a_note_takes_their_place() -> None:
    chat = [
        {"role": "user", "content": "a " * 100},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"},
    ]
    fitted = TOK.fit_chat(chat, 50, keep={"note": "[{dropped} left out]"}, chat_template="known:chatml")
    assert fitted.messages == [{"role": "user", "content": "[2 left out]\n\nc"}]


def test_the_tokens_of_each_part() -> None:
    fitted = TOK.fit_chat([{"role": "user", "content": "hello"}], 50, chat_template="known:chatml")
    row = fitted.to_dict()
    assert row["count"] == sum(share["tokens"] for share in row["tokens_by_origin"]) == len(fitted.tokens.ids)
    assert (row["dropped"], row["shortened"], row["limit"]) == ([], [], 50)


REFUSED = [
    ({"limit": -1}, ValueError, "limit and answer must be 0 or more"),
    ({"limit": 3}, ChatError, "the chat does not fit 3 tokens: what must stay has"),
    ({"limit": 50, "keep": {"last": 1}}, ValueError, "keep has no field 'last'"),
    ({"limit": 50, "keep": {"keep_last": True}}, ValueError, "keep_last must be of type integer"),
    ({"limit": 50, "keep": {"keep_last": -1}}, ValueError, "keep_last must be 0 or more"),
    ({"limit": 50, "keep": {"side": "top"}}, ValueError, "side must be"),
    ({"limit": 50, "messages": "a"}, ChatError, "messages"),
]


@pytest.mark.parametrize(("arguments", "error", "problem"), REFUSED)
def test_what_is_refused(arguments: dict[str, Any], error: type[Exception], problem: str) -> None:
    given = {"messages": [{"role": "user", "content": "hello"}], "chat_template": "known:chatml", **arguments}
    with pytest.raises(error, match=problem):
        TOK.fit_chat(**given)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"keep_last": -1}, "keep_last must be 0 or more"),
        ({"keep_roles": "system"}, "keep_roles must be of type array of strings"),
    ],
)
def test_a_policy_is_checked_when_it_is_made(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        FitPolicy(**fields)


def test_a_marker_that_is_too_long_matters_only_where_contents_are_cut() -> None:
    messages = [{"role": "user", "content": "hi"}, {"role": "tool", "content": "x y z " * 400}]
    keep = {"shorten": ["tool"], "shorten_to": 1, "keep_last": 1}
    given: dict[str, Any] = {"keep": keep, "chat_template": "known:chatml"}
    assert TOK.fit_chat(messages, 100_000, **given).messages == messages
    with pytest.raises(ValueError, match="the marker alone has more than 1 tokens"):
        TOK.fit_chat(messages, 100, **given)
