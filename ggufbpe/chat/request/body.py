"""The body of a request out of a chat in one of the forms in which chats are kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def body_with_fields(chat: Any, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a request: a copy of `chat` if it is an object, else a body with `chat` as its messages.

    `fields` replace the body's own; of `chat_template_kwargs`, only the names that are given.

    >>> body_with_fields([{"role": "user"}], {"add_generation_prompt": False})
    {'messages': [{'role': 'user'}], 'add_generation_prompt': False}
    """
    body = dict(chat) if isinstance(chat, Mapping) else {"messages": chat}
    own, given = body.get("chat_template_kwargs"), fields.get("chat_template_kwargs")
    body.update(fields)
    if isinstance(own, dict) and given is not None:
        body["chat_template_kwargs"] = {**own, **given}
    return body
