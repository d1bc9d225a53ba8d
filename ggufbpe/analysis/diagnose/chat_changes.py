"""Lists what other tools may do to a chat on its way to a prompt: each change with its cause and its fix.

If fields of a request can express a change, they are in `request` of the cause's details: with these fields, the same
chat gives what was expected, here and from llama-server.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from ..._util.errors import printable
from ..._util.wording import counted
from ...gguf.change import Change
from .cause import Cause
from .dates import dates_in
from .message_edits import (
    SYSTEM_ROLES,
    Messages,
    adding_system,
    merging_system,
    removable_stretches,
    system_message,
    with_contents,
    without_field,
    without_stretch,
    without_system,
)

Body = Mapping[str, Any]

AS_TRANSFORMERS, AS_TRANSFORMERS_5 = "transformers", "transformers 5"


class Rendering(NamedTuple):
    """All that a prompt depends on; `body` is the body of a request."""

    body: Body
    chat_template: str | None = None  # instead of the file's
    now: datetime | None = None
    way: str = ""  # one of the two above: by jinja2, as that version of transformers runs it


class ChatChange(NamedTuple):
    """What was done, as a cause, and how to do it; `apply` returns its argument if there is nothing to do."""

    cause: Cause
    apply: Callable[[Rendering], Rendering]


def with_fields(body: Body, fields: Body) -> Body:
    """A request with `fields` set; `chat_template_kwargs` are merged, and None removes a field.

    >>> with_fields({"tools": [], "chat_template_kwargs": {"a": 1}}, {"tools": None, "chat_template_kwargs": {"b": 2}})
    {'chat_template_kwargs': {'a': 1, 'b': 2}}
    """
    given = [each.get(_KWARGS) for each in (body, fields)]
    kwargs = {name: value for each in given if isinstance(each, Mapping) for name, value in each.items()}
    found = {**body, **fields, **({_KWARGS: kwargs} if fields.get(_KWARGS) else {})}
    return {name: value for name, value in found.items() if value is not None or name not in fields}


_KWARGS = "chat_template_kwargs"


def changes(chat: Rendering, expected: str, source: str = "") -> list[ChatChange]:
    """The changes worth trying if the prompt of a chat was expected to be, or to contain, the text `expected`.

    `source` is that of the template.
    """
    written = _dates_written(source, expected)
    of_template = {moment for text in written.values() for moment in dates_in(text)}
    return [
        *_of_request(chat.body),
        *_with_tools_of(expected, chat.body),
        *_of_messages(chat.body),
        *(_date_of_template(name, text) for name, text in written.items()),
        *(_dated(moment) for moment in dates_in(expected) if moment not in of_template),
    ]


# ---- fields of the request ------------------------------------------------------------------------------


_MOST_WRITTEN = 160  # characters of JSON in a sentence


def _by_fields(cause: str, change: str, what: str, fields: Body, elsewhere: str) -> ChatChange:
    taken = [name for name, value in fields.items() if value is None]
    given = {name: value for name, value in fields.items() if value is not None}
    written = json.dumps(given)[1:-1]
    if len(written) > _MOST_WRITTEN:
        written = f'{" and ".join(map(json.dumps, given))} (see "request" in --json)'
    here = f"put {written} into the request" if given else ""
    here += " and " * bool(given and taken)
    here += f"remove {' and '.join(map(json.dumps, taken))} from the request" if taken else ""
    return ChatChange(
        Cause(
            cause, {"what": what, "change": change, "request": dict(fields)}, f"{elsewhere}; or here, {here}"
        ),
        lambda chat: chat._replace(body=with_fields(chat.body, fields)),
    )


def _of_request(body: Body) -> Iterator[ChatChange]:
    yield _by_fields(
        "generation_prompt",
        "missing",
        "the generation prompt at the end is missing",
        {"add_generation_prompt": False},
        "let the other tool add it (add_generation_prompt=True in transformers)",
    )
    yield _by_fields(
        "generation_prompt",
        "superfluous",
        "there is a generation prompt at the end, which this request does not ask for",
        {"add_generation_prompt": True},
        "let the other tool leave it out (add_generation_prompt=False)",
    )
    if body.get("tools"):
        yield _by_fields(
            "tools",
            "missing",
            "the tools are not in the prompt",
            {"tools": None},
            "give the other tool the tools (tools=... of apply_chat_template)",
        )
    for name in ("enable_thinking", "thinking"):
        for value, state in ((False, "off"), (True, "on")):
            yield _by_fields(
                "thinking",
                f"{name} {json.dumps(value)}",
                f"thinking is {state}",
                {_KWARGS: {name: value}},
                f"call the other tool's template with {name}={not value}",
            )
    for effort in ("low", "medium", "high", "none"):
        yield _by_fields(
            "thinking",
            f"reasoning_effort {effort}",
            f"the reasoning effort is {effort}",
            {"reasoning_effort": effort},
            "give the other tool the same reasoning effort",
        )
    if "reasoning_effort" in body:
        yield _by_fields(
            "thinking",
            "no reasoning_effort",
            f"the reasoning effort {printable(str(body['reasoning_effort']))} is ignored",
            {"reasoning_effort": None},
            "let the other tool pass reasoning_effort to the template",
        )
    yield _by_fields(
        "reasoning",
        "not preserved",
        "the reasoning of earlier answers is not preserved, as llama-server does by default",
        {_KWARGS: {"preserve_reasoning": False}},
        "let the other tool pass preserve_reasoning, or what the template calls it, to the template",
    )


_MOST_TOOLS, _MOST_TRIED = 100, 1000
_OF_A_TOOL = frozenset(("function", "parameters", "name"))


def _with_tools_of(expected: str, body: Body) -> Iterator[ChatChange]:
    """The tools that an expected prompt has as JSON, if the chat has none."""
    if body.get("tools"):
        return
    found: list[dict[str, Any]] = []
    decoder, at = json.JSONDecoder(), expected.find("{")
    for _ in range(_MOST_TRIED):
        if at < 0 or len(found) > _MOST_TOOLS:
            break
        end = at + 1
        try:
            value, after = decoder.raw_decode(expected, at)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict) and len(value.keys() & _OF_A_TOOL) > ("function" not in value):
            function = value.get("function", value)
            found.append({"type": "function", "function": function})
            end = after
        at = expected.find("{", end)
    if found:
        yield _by_fields(
            "tools",
            "superfluous",
            f"the prompt has {counted(len(found), 'tool')}, and this chat has none",
            {"tools": found},
            "do not give the other tool any tools",
        )


# ---- messages -------------------------------------------------------------------------------------------


def _by_messages(
    cause: str, change: str, what: str, fix: str, apply: Callable[[Messages], Messages]
) -> ChatChange:
    def applied(chat: Rendering) -> Rendering:
        messages = chat.body.get("messages")
        if not isinstance(messages, list) or not all(isinstance(each, dict) for each in messages):
            return chat
        found = apply([dict(each) for each in messages])
        return chat if found == messages else chat._replace(body={**chat.body, "messages": found})

    return ChatChange(Cause(cause, {"what": what, "change": change}, fix), applied)


_GIVE_SYSTEM = "give the other tool the system message as one of the messages"
_DEFAULTS = ("", "You are a helpful assistant.", "You are a helpful assistant")


def _of_messages(body: Body) -> Iterator[ChatChange]:
    for change, strip in (("", str.strip), ("at the beginning", str.lstrip), ("at the end", str.rstrip)):
        yield _by_messages(
            "trimmed",
            change or "both ends",
            f"white space {f'{change} of' if change else 'around'} contents is removed",
            "remove it from the contents before giving them to both tools",
            with_contents(strip),
        )
    yield _by_messages(
        "reasoning",
        "missing",
        "the reasoning of earlier answers is not in the prompt",
        'give the other tool "reasoning_content" under the name that its template reads; or remove it here',
        lambda messages: [without_field(message, "reasoning_content") for message in messages],
    )
    yield _by_messages("system", "missing", "the system message is missing", _GIVE_SYSTEM, without_system)
    for between, name in (
        ("\n\n", "an empty line"),
        ("\n", "a line break"),
        (" ", "a space"),
        ("", "nothing"),
    ):
        yield _by_messages(
            "system",
            f"merged with {name}",
            f"the system message is prepended to the first user message, with {name} between them",
            _GIVE_SYSTEM,
            merging_system(between),
        )
    yield _by_messages(
        "system",
        "of the user",
        "the system message is written as a user message",
        _GIVE_SYSTEM,
        lambda messages: [
            {**message, "role": "user"} if message.get("role") in SYSTEM_ROLES else message
            for message in messages
        ],
    )
    for text in _DEFAULTS:
        shown = printable(text) if text else "an empty text"
        yield _by_messages(
            "system",
            f"added: {text}",
            f"there is a system message, {shown}, which is not in this chat",
            f"let the other tool add none; or add it to the messages here: {json.dumps(system_message(text))}",
            adding_system(text),
        )
    messages = body.get("messages")
    for start, end in removable_stretches(messages) if isinstance(messages, list) else ():
        one = f"message {start}" if end - start == 1 else f"messages {start} to {end - 1}"
        yield _by_messages(
            "messages",
            f"without {one}",
            f"{one} of the chat, counted from 0, {'is' if end - start == 1 else 'are'} missing",
            "give both tools the same messages",
            without_stretch(start, end),
        )


# ---- dates ----------------------------------------------------------------------------------------------

_SET = re.compile(r"""\bset\s+(\w+)\s*=\s*(?:"([^"{}%]{1,60})"|'([^'{}%]{1,60})')""")


def _dates_written(source: str, expected: str) -> dict[str, str]:
    """The dates that are written in a template and in the expected prompt, by the name of the variable.

    >>> _dates_written('{%- set date_string = "26 Jul 2024" %}', "Today Date: 26 Jul 2024")
    {'date_string': '26 Jul 2024'}
    """
    found = ((match[1], match[2] or match[3]) for match in _SET.finditer(source))
    return {name: text for name, text in found if text in expected and dates_in(text)}


def _date_of_template(name: str, text: str) -> ChatChange:
    return _by_fields(
        "date",
        f"written in the template: {text}",
        f"the other tool gave no {name}, so the prompt has the date that is written in the template, {printable(text)}",
        {_KWARGS: {name: text}},
        f"give the other tool's template a {name} (in transformers, apply_chat_template(..., {name}=...))",
    )


def _dated(moment: datetime) -> ChatChange:
    arguments = ", ".join(map(str, moment.timetuple()[:3]))
    day = moment.strftime("%Y-%m-%d")
    return ChatChange(
        Cause(
            "date",
            {"what": f"the prompt was made on {day}", "change": "date", "now": moment.isoformat()},
            f"make both on the same day; or here, in Python, apply_chat_template(..., now=datetime({arguments}))",
        ),
        lambda chat: chat._replace(now=moment),
    )


# ---- templates ------------------------------------------------------------------------------------------


def other_template(name: str, source: str, fix: str, change: Change | None = None) -> ChatChange:
    """Another template instead of the one of this chat; `change` makes it the file's."""
    detail: dict[str, object] = {"what": f"the template is {name}", "change": name, "template": source}
    return ChatChange(
        Cause("template", detail, fix, change or Change()),
        lambda chat: chat._replace(chat_template=source),
    )


def as_transformers() -> Iterator[ChatChange]:
    """Run the chat's template with plain jinja2; transformers 5 passes reasoning under several names."""
    fix = "make the prompt with `ggufbpe chat`, with ggufbpe's apply_chat_template, or with llama-server"
    for way, more in ((AS_TRANSFORMERS, ""), (AS_TRANSFORMERS_5, " from version 5 on")):
        what = (
            f"the template was run by plain jinja2, as transformers does{more}, without what llama.cpp does to "
            "messages, tools and prompt"
        )
        yield ChatChange(Cause("plain_jinja", {"what": what, "change": way}, fix), _by(way))


def _by(way: str) -> Callable[[Rendering], Rendering]:
    return lambda chat: chat._replace(way=way)
