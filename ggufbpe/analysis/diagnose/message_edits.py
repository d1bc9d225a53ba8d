"""Edits of the messages of a chat that other tools make: system messages merged, added or left out, texts stripped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Messages = list[Any]

SYSTEM_ROLES = ("system", "developer")
_MOST_MESSAGES = 40


def removable_stretches(messages: Messages) -> Iterator[tuple[int, int]]:
    """(first, end) of messages that may be missing: single ones, the beginning of the chat, or its end."""
    roles = [message.get("role") if isinstance(message, dict) else None for message in messages]
    begin, count = sum(role in SYSTEM_ROLES for role in roles[:1]), len(messages)
    for start in range(begin, count):
        for end in range(start + 1, count + 1):
            some = end - start < count - begin
            if some and (
                end - start == 1 or ((start == begin) != (end == count) and count <= _MOST_MESSAGES)
            ):
                yield start, end


def system_message(text: str) -> dict[str, str]:
    """A system message."""
    return {"role": "system", "content": text}


def without_field(message: dict[str, Any], name: str) -> dict[str, Any]:
    """A copy of a message without a field."""
    return {key: value for key, value in message.items() if key != name}


def with_contents(change: Callable[[str], str]) -> Callable[[Messages], Messages]:
    """A function that changes each text of the contents of messages."""

    def changed(message: dict[str, Any]) -> dict[str, Any]:
        content = message.get("content")
        if isinstance(content, str):
            return {**message, "content": change(content)}
        if isinstance(content, list):
            parts = [
                {**part, "text": change(part["text"])}
                if isinstance(part, dict) and isinstance(part.get("text"), str)
                else part
                for part in content
            ]
            return {**message, "content": parts}
        return message

    return lambda messages: list(map(changed, messages))


def without_system(messages: Messages) -> Messages:
    """The messages without those of the system."""
    return [message for message in messages if message.get("role") not in SYSTEM_ROLES]


def merging_system(between: str) -> Callable[[Messages], Messages]:
    """A function that puts the first system message before the text of the next message, with `between` after it."""

    def merged(messages: Messages) -> Messages:
        if len(messages) < 2 or messages[0].get("role") not in SYSTEM_ROLES:
            return messages
        system, first, *rest = messages
        texts = [message.get("content") for message in (system, first)]
        if not all(isinstance(text, str) for text in texts):
            return messages
        return [{**first, "content": between.join(map(str, texts))}, *rest]

    return merged


def adding_system(text: str) -> Callable[[Messages], Messages]:
    """A function that puts a system message before messages that have none."""

    def added(messages: Messages) -> Messages:
        has_one = any(message.get("role") in SYSTEM_ROLES for message in messages)
        return messages if has_one else [system_message(text), *messages]

    return added


def without_stretch(start: int, end: int) -> Callable[[Messages], Messages]:
    """A function that removes the messages from number `start` to before `end`."""
    return lambda messages: [*messages[:start], *messages[end:]]
