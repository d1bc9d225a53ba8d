"""The body of a request out of a chat and the fields of flags."""

from __future__ import annotations

from ggufbpe.chat.request.body import body_with_fields


def test_what_is_given_replaces_what_the_body_has() -> None:
    body = {"messages": [], "tools": [1], "chat_template_kwargs": {"a": 1, "b": 2}}
    found = body_with_fields(body, {"tools": [2], "chat_template_kwargs": {"b": 3}})
    assert found == {"messages": [], "tools": [2], "chat_template_kwargs": {"a": 1, "b": 3}}
    assert body["tools"] == [1]


def test_what_is_wrong_in_a_body_is_left_to_the_template_engine() -> None:
    assert body_with_fields("text", {}) == {"messages": "text"}
    body = {"messages": [], "chat_template_kwargs": 5}
    assert body_with_fields(body, {}) == body
    assert body_with_fields(body, {"chat_template_kwargs": {"a": 1}})["chat_template_kwargs"] == {"a": 1}
