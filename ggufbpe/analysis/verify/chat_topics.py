"""Names what in a chat two programs render differently: what has to be left out so that both make the same prompt.

A topic is a finding, not a guess: both programs have rendered the chat without it. Differences that only concern BOS
and EOS, dates or white space are told by the two prompts alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from ..diagnose.dates import without_dates
from ..diagnose.message_edits import SYSTEM_ROLES
from ..oracles.chat_answers import Body, ChatAnswer, Prompt

Message = dict[str, Any]


class Topic(NamedTuple):
    """A part of a chat, in words, and how to leave it out; a body that lacks it is returned as it is."""

    id: str
    words: str
    without: Callable[[Body], Body] = lambda body: body


class Two(NamedTuple):
    """Two programs that render chats; `ends` are the texts of BOS and EOS."""

    one: Callable[[Body], ChatAnswer]
    other: Callable[[Body], ChatAnswer]
    ends: frozenset[bytes] = frozenset()


def topics(body: Body, two: Two) -> list[Topic]:
    """Return the fewest topics found without which both make the same prompt; `OTHER` if no part is at fault.

    `body` is a chat for which their answers differ.
    """
    if not body.get("messages"):
        return [_NO_MESSAGES]
    textual = _textual(body, two)
    if textual is not None:
        return textual
    for topic in _PARTS[:-1]:  # the last one takes most of a chat, so that it would stand for several others
        alone = topic.without(body)
        textual = _textual(alone, two) if alone != body else None
        if textual is not None:
            return [topic, *textual]
    removed: list[Topic] = []
    for topic in _PARTS:
        smaller = without(body, [*removed, topic])
        if smaller != without(body, removed):
            removed.append(topic)
            textual = _textual(smaller, two)
            if textual is not None:
                break
    if textual is None:
        return [OTHER]
    for topic in removed[:-1]:
        others = [each for each in removed if each is not topic]
        fewer = _textual(without(body, others), two)
        if fewer is not None and len(fewer) <= len(textual):
            removed, textual = others, fewer
    return [*removed, *textual]


def _textual(body: Body, two: Two) -> list[Topic] | None:
    """What must be disregarded in the texts of two prompts so that they are the same; None if that is not enough."""
    one, other = two.one(body), two.other(body)
    if not isinstance(one, Prompt) or not isinstance(other, Prompt):
        return None
    for count in range(len(_DISREGARDED) + 1):
        for chosen in combinations(_DISREGARDED, count):
            if without_all(one.text, chosen, two) == without_all(other.text, chosen, two):
                return list(chosen)
    return None


def without_all(text: bytes, chosen: Sequence[Topic], two: Two) -> bytes:
    """The text of a prompt without what those of the topics stand for that are about texts."""
    for topic in chosen:
        text = _DISREGARDED[topic](text, two) if topic in _DISREGARDED else text
    return text


def _without_ends(text: bytes, two: Two) -> bytes:
    for end in two.ends:
        text = text.replace(end, b"")
    return text


OTHER = Topic("other", "something that no part of the chat explains")
_NO_MESSAGES = Topic("no_messages", "a chat without messages")
_DISREGARDED: dict[Topic, Callable[[bytes, Two], bytes]] = {
    Topic("bos_eos", "BOS and EOS within the prompt"): _without_ends,
    Topic("date", "dates"): lambda text, two: without_dates(text),
    Topic("whitespace", "white space"): lambda text, two: b"".join(text.split()),
}


# ---- parts of a chat ----------------------------------------------------------------------------------------


def without(body: Body, removed: Iterable[Topic]) -> Body:
    """The body of a request without those of the topics that are parts of a chat."""
    for topic in removed:
        body = topic.without(body)
    return body


def _fields(*names: str) -> Callable[[Body], Body]:
    return lambda body: {name: value for name, value in body.items() if name not in names}


def _messages(change: Callable[[list[Message]], list[Message]]) -> Callable[[Body], Body]:
    """A change of the messages; one that leaves none is not made."""

    def changed(body: Body) -> Body:
        messages = body.get("messages")
        if not isinstance(messages, list) or not all(isinstance(each, dict) for each in messages):
            return body
        found = change(messages)
        return body if not found or found == messages else {**body, "messages": found}

    return changed


def _each(change: Callable[[Message], Message]) -> Callable[[Body], Body]:
    return _messages(lambda messages: list(map(change, messages)))


def _but(is_left_out: Callable[[Message], bool]) -> Callable[[Body], Body]:
    return _messages(lambda messages: [message for message in messages if not is_left_out(message)])


def _texts(change: Callable[[str], str]) -> Callable[[Body], Body]:
    def changed(message: Message) -> Message:
        content = message.get("content")
        return {**message, "content": change(content)} if isinstance(content, str) else message

    return _each(changed)


def _joined(message: Message) -> Message:
    content = message.get("content")
    if not isinstance(content, list):
        return message
    texts = [part.get("text") for part in content if isinstance(part, dict)]
    return {**message, "content": "\n".join(text for text in texts if isinstance(text, str))}


def _without_thinking(body: Body) -> Body:
    kwargs = body.get(_KWARGS)
    if isinstance(kwargs, Mapping):
        kept = {name: value for name, value in kwargs.items() if name not in _OF_THINKING}
        body = {**body, _KWARGS: kept} if kept else _fields(_KWARGS)(body)
    body = _fields(*_OF_THINKING)(body)
    return _each(lambda message: {key: value for key, value in message.items() if key not in _OF_THINKING})(
        body
    )


def _with_thinking(body: Body) -> Body:
    kwargs = body.get(_KWARGS)
    given = kwargs if isinstance(kwargs, Mapping) else {}
    return {**body, _KWARGS: {"enable_thinking": True, **given}}


def _of_known_names(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a request, or of a message, that other topics are about."""
    return {name: value for name, value in fields.items() if name in _KNOWN or name in _OF_THINKING}


def _without_arguments(body: Body) -> Body:
    kwargs = body.get(_KWARGS)
    is_said = isinstance(kwargs, Mapping) and "enable_thinking" in kwargs
    rest = _fields(_KWARGS)(body)
    return {**rest, _KWARGS: {"enable_thinking": kwargs["enable_thinking"]}} if is_said else rest  # type: ignore[index]


def _before_last_answer(messages: list[Message]) -> list[Message]:
    end = len(messages)
    while end and messages[end - 1].get("role") == "assistant":
        end -= 1
    return messages[:end]


def _of_last_user(messages: list[Message]) -> list[Message]:
    return [message for message in messages if message.get("role") == "user"][-1:]


_KWARGS = "chat_template_kwargs"
_OF_THINKING = (
    *("reasoning_content", "reasoning", "thinking", "enable_thinking", "preserve_reasoning"),
    *("reasoning_effort", "reasoning_format", "reasoning_budget", "thinking_budget_tokens"),
    "thinking_forced_open",
)
_OF_TOOLS = ("tools", "tool_choice", "parallel_tool_calls")
_OF_END = ("add_generation_prompt", "continue_final_message")
_KNOWN = ("messages", "role", "content", "tool_calls", "tool_call_id", _KWARGS, *_OF_TOOLS, *_OF_END)
_PARTS = (
    Topic("tools", "the tools", _fields(*_OF_TOOLS)),
    Topic(
        "tool_calls",
        "tool calls and their results",
        _but(lambda message: bool(message.get("tool_calls")) or message.get("role") == "tool"),
    ),
    Topic("thinking", "reasoning and its switches", _without_thinking),
    # llama-server tells templates to think unless a request says otherwise; transformers tells them nothing
    Topic("thinking_default", "a request that does not say whether to think", _with_thinking),
    Topic("continuation", "the answer that is to be continued", _messages(_before_last_answer)),
    Topic("parts", "contents in parts", _each(_joined)),
    Topic(
        "empty",
        "contents that are null or missing",
        _each(lambda message: message if message.get("content") is not None else {**message, "content": ""}),
    ),
    Topic("trimmed", "white space around contents", _texts(str.strip)),
    Topic(
        "developer",
        "the role developer",
        _each(
            lambda message: {**message, "role": "system"} if message.get("role") == "developer" else message
        ),
    ),
    Topic(
        "roles",
        "other roles",
        _but(lambda message: message.get("role") not in (*SYSTEM_ROLES, "user", "assistant", "tool")),
    ),
    Topic("system", "the system message", _but(lambda message: message.get("role") in SYSTEM_ROLES)),
    Topic("arguments", "other arguments of the template", _without_arguments),
    Topic("generation_prompt", "the generation prompt", _fields(*_OF_END)),
    Topic(
        "fields",
        "other fields of the request or of messages",
        lambda body: _each(_of_known_names)(_of_known_names(body)),
    ),
    Topic("characters", "the characters of contents", _texts(lambda text: "x")),
    Topic("turns", "the earlier messages", _messages(_of_last_user)),
)
