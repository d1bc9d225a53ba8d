"""`fit_chat` leaves out the fewest turns, as trying every number of them shows, with few renderings."""

from __future__ import annotations

import copy
import json
import pickle
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from budget_cases import CHATS as TOK
from budget_cases import NOW, TEMPLATES, chat_count, check_fit_chat, random_chat, random_words

from ggufbpe import ChatError, ChatTooLongError, GGUFWarning
from ggufbpe.chat.fitting import FitPolicy, FittedChat


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_fewest_turns_are_left_out(template: str) -> None:
    dice = random.Random(template)
    for _ in range(100):
        check_fit_chat(template, dice)


def test_the_fewest_results_are_cut() -> None:
    dice = random.Random(3)
    keep = {"shorten": ["tool"], "shorten_to": 10}
    for _ in range(25):
        chat = random_chat(dice, tools=True)
        full = chat_count(chat, TEMPLATES[0])
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
            assert chat_count(more, TEMPLATES[0]) > limit


def test_a_long_chat_takes_few_renderings() -> None:
    dice = random.Random(1)
    roles = ("user", "assistant")
    chat = [{"role": roles[n % 2], "content": random_words(dice, dice.randint(5, 200))} for n in range(200)]
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
    limit = chat_count(kept, TEMPLATES[2])
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


def test_messages_are_numbered_as_in_the_chat_that_was_given() -> None:
    roles = ("system", "user", "assistant", "user")
    chat = [{"role": role, "content": "word " * 20 + role} for role in roles[:3]]
    chat.append({"role": "user", "content": "Why <|endoftext|>?"})
    fitted = TOK.fit_chat(chat, 80, chat_template="known:chatml")
    assert fitted.dropped == (1, 2)
    shares = {row.get("index"): row for row in fitted.to_dict()["tokens_by_origin"]}
    assert (shares[0]["role"], shares[3]["role"], shares.keys()) == ("system", "user", {None, 0, 3})
    found = fitted.tokens
    assert [share.origin.name for share in found.shares if share.role] == ["messages[0]", "messages[3]"]
    assert {part.origin.index for part in found.rendered.parts} == {None, 0, 3}
    [injected] = found.injected
    assert injected.in_words().startswith("messages[3].content: '<|endoftext|>' of the user became")


def test_arguments_for_the_template_by_name() -> None:
    given: dict[str, Any] = {"chat_template": "known:Qwen-Qwen3-0.6B"}
    chat = [{"role": "user", "content": "Hi"}]
    by_name = TOK.fit_chat(chat, 60, **given, enable_thinking=False)
    assert by_name == TOK.fit_chat(chat, 60, **given, chat_template_kwargs={"enable_thinking": False})
    assert by_name.count > TOK.fit_chat(chat, 60, **given).count


def test_what_does_not_fit_can_be_reacted_to() -> None:
    chat = [{"role": "system", "content": "Be terse."}, {"role": "user", "content": "word " * 100}]
    with pytest.raises(ChatTooLongError) as caught:
        TOK.fit_chat(chat, 120, answer=20, chat_template="known:chatml")
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.count, error.limit) == (chat_count(chat, "known:chatml"), 100)
    assert "messages[1] alone has more, and is cut with a keep such as {" in str(error)


@pytest.mark.parametrize("limit", range(0, 120, 3))
def test_the_remedy_of_a_chat_that_is_too_long_mends_it(limit: int) -> None:
    """And there is none where the marker of the cut would not fit, or no message is too long by itself."""
    chat = [{"role": "system", "content": "Be terse."}, {"role": "user", "content": "word " * 100}]
    keep = {"marker": "[…]", "shorten": ["tool"]}
    with pytest.raises(ChatTooLongError) as caught:
        TOK.fit_chat(chat, limit, chat_template="known:chatml", keep=keep)
    least = chat_count([chat[0], {"role": "user", "content": "[…]"}], "known:chatml")
    if remedy := caught.value.remedy:
        policy = json.loads(remedy.partition("such as ")[2])
        assert (policy, caught.value.message) == (json.loads(json.dumps(caught.value.keep)), 1)
        assert (policy["marker"], policy["shorten"]) == ("[…]", ["tool", "user"])
        assert TOK.fit_chat(chat, limit, chat_template="known:chatml", keep=policy).shortened == (1,)
    else:
        assert limit < least + 16 or TOK.fits(chat[1]["content"], limit)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda fitted: pickle.loads(pickle.dumps(fitted))])
def test_a_result_can_be_copied_and_pickled(copied: Callable[[FittedChat], FittedChat]) -> None:
    fitted = TOK.fit_chat([{"role": "user", "content": "hi"}], 50, chat_template="known:chatml", now=NOW)
    assert fitted.tokens is fitted.tokens
    again = copied(fitted)
    assert (again, again.tokens, again.to_dict()) == (fitted, fitted.tokens, fitted.to_dict())
    assert len(pickle.dumps(again)) < 5_000  # without the tokenizer


@pytest.mark.parametrize("now", ["2026-07-01", 0])
def test_a_time_of_another_type_is_refused(now: Any) -> None:
    with pytest.raises(TypeError, match=r"^now must be a datetime or None, not (str|int)$"):
        TOK.fit_chat([{"role": "user", "content": "hi"}], 50, chat_template="known:chatml", now=now)


def test_contents_in_parts_are_cut_and_advised_like_texts() -> None:
    text = "word " * 100
    chat = [
        {"role": "user", "content": [{"type": "text", "text": text}]},
        {"role": "user", "content": "And now?"},
    ]
    as_texts = [{"role": "user", "content": text}, chat[1]]
    keep = {"shorten": ["user"], "shorten_to": 10, "keep_last": 2}
    fitted, same = (
        TOK.fit_chat(given, 60, chat_template="known:chatml", keep=keep) for given in (chat, as_texts)
    )
    assert (fitted.shortened, fitted.count, fitted.prompt) == ((0,), same.count, same.prompt)
    with pytest.raises(ChatTooLongError) as caught:
        TOK.fit_chat(chat, 60, chat_template="known:chatml", keep={"keep_last": 2})
    assert caught.value.message == 0
    assert TOK.fit_chat(chat, 60, chat_template="known:chatml", keep=caught.value.keep).shortened == (0,)


@pytest.mark.parametrize("limit", [90, 95, 100])
def test_a_remedy_cuts_no_less_than_what_was_asked_for(limit: int) -> None:
    """The user's text and a result of a tool are too long together, and the tool's is cut already."""
    chat = [
        {"role": "user", "content": "word " * 100},
        {"role": "assistant", "content": "I look."},
        {"role": "tool", "content": "line " * 400},
    ]
    keep = {"shorten": ["tool"], "shorten_to": 10}
    with pytest.raises(ChatTooLongError) as caught:
        TOK.fit_chat(chat, limit, chat_template="known:chatml", keep=keep)
    advised = caught.value.keep
    assert advised is not None
    assert advised["shorten_to"] <= 10
    assert TOK.fit_chat(chat, limit, chat_template="known:chatml", keep=advised).count <= limit


def test_there_is_no_remedy_if_the_template_is_too_long() -> None:
    """It does not show the message, so that cutting that would help nobody."""
    chat = [{"role": "system", "content": "s " * 100}]
    with pytest.raises(ChatTooLongError) as caught:
        TOK.fit_chat(chat, 8, chat_template="{{ 'much text of its own, again and again and again' }}")
    assert (caught.value.remedy, caught.value.keep) == ("", None)


def test_warnings_are_those_of_apply_chat_template() -> None:
    chat = [{"role": "user", "content": "Hi"}]
    tools = [{"type": "function", "function": {"name": "f"}}]
    with pytest.warns(GGUFWarning, match="the model has no chat template, so this prompt is ChatML"):
        TOK.fit_chat(chat, 50)
    with pytest.warns(GGUFWarning, match="the chat template does not show the tools"):
        TOK.fit_chat(chat, 50, tools=tools, chat_template="known:chatml")


def test_repr_is_one_line() -> None:
    chat = [{"role": role, "content": "word " * 20} for role in ("user", "assistant", "user")]
    fitted = TOK.fit_chat(chat, 50, chat_template="known:chatml")
    assert repr(fitted) == f"<FittedChat: 1 message, 2 dropped; {fitted.count} of 50 tokens>"


REFUSED = [
    ({"limit": -1}, ValueError, "limit must be 0 or more, not -1"),
    ({"limit": 10.5}, TypeError, "limit must be an integer, not float"),
    ({"limit": 40, "answer": -1}, ValueError, "answer must be 0 or more, not -1"),
    ({"limit": 40, "answer": 100}, ValueError, "the answer alone exceeds the limit: 100 tokens of 40"),
    ({"limit": 3}, ChatTooLongError, "the chat does not fit in 3 tokens: what must stay has"),
    ({"limit": 40, "keep": "system"}, TypeError, "keep must be a FitPolicy or a mapping .* not str"),
    ({"limit": 40, "keep_last": 2}, TypeError, r"^fit_chat\(\) has no argument 'keep_last', and"),
    ({"limit": 40, "messages": ["hi"]}, ChatError, r"messages\[0\] is of type str; a message is a mapping"),
    ({"limit": 50, "keep": {"last": 1}}, ValueError, "keep has no field 'last'"),
    ({"limit": 50, "keep": {"keep_last": True}}, ValueError, "keep_last must be of type integer"),
    ({"limit": 50, "keep": {"keep_last": -1}}, ValueError, "keep_last must be 0 or more"),
    ({"limit": 50, "keep": {"side": "top"}}, ValueError, "side must be"),
    ({"limit": 50, "messages": "a"}, ChatError, "messages"),
    ({"limit": 50, "messages": ""}, ChatError, "messages"),
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
        ({"keep_last": np.array([1, 2])}, "keep_last must be of type integer"),
        ({"keep_last": None}, "keep_last must be of type integer"),
    ],
)
def test_a_policy_is_checked_when_it_is_made(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        FitPolicy(**fields)


def test_a_policy_takes_lists_and_integers_of_numpy() -> None:
    policy = FitPolicy(keep_roles=["system"], keep_last=np.int64(2))  # type: ignore[arg-type]
    assert policy == FitPolicy(keep_roles=("system",), keep_last=2)
    assert type(policy.keep_last) is int


def test_a_marker_that_is_too_long_matters_only_where_contents_are_cut() -> None:
    messages = [{"role": "user", "content": "hi"}, {"role": "tool", "content": "x y z " * 400}]
    keep = {"shorten": ["tool"], "shorten_to": 1, "keep_last": 1}
    given: dict[str, Any] = {"keep": keep, "chat_template": "known:chatml"}
    assert TOK.fit_chat(messages, 100_000, **given).messages == messages
    with pytest.raises(ValueError, match="the marker alone has more than 1 tokens"):
        TOK.fit_chat(messages, 100, **given)
