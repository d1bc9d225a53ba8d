"""Numbers the texts of a request, so that a prompt can be divided by the message or field that each part comes from."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from .request.chat_message import Message
from .request.messages import Request
from .template.attributed_text import NOBODY, Attributed, attributed, origins_of, with_one_origin

Kind = Literal["template", "message", "tool", "argument", "generation_prompt", "added", "unknown"]


@dataclass(frozen=True)
class Origin:
    """What a part of a prompt comes from.

    `kind` is "template", "generation_prompt", "message", "tool", "argument", "added" for tokens that the tokenizer
    adds, or "unknown" for what could not be determined. `index` is the number of the message in the given chat, or of
    the tool, from 0; otherwise None. `field` names the field of a message as the request has it ("content",
    "content[1].text", "tool_calls[0].function.arguments"), the function of a tool, or the argument; otherwise "".
    """

    kind: Kind
    index: int | None = None
    field: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The kind, and whatever else is set."""
        row: dict[str, Any] = {"origin": self.kind}
        if self.index is not None:
            row["index"] = self.index
        if self.field:
            row["field"] = self.field
        return row

    @property
    def name(self) -> str:
        """The origin's name, such as `messages[2].content`."""
        if self.kind == "message":
            return f"messages[{self.index}]{'.' if self.field else ''}{self.field}"
        if self.kind == "tool":
            return f"tools[{self.index}]"
        return self.field if self.kind == "argument" else self.kind.replace("_", " ")


class PromptPart(NamedTuple):
    """The bytes from `start` to `end` of a prompt, and their `origin`."""

    start: int
    end: int
    origin: Origin

    def to_dict(self) -> dict[str, Any]:
        """The part as an object of JSON."""
        return {"start": self.start, "end": self.end, **self.origin.to_dict()}


class PromptInParts(NamedTuple):
    """The UTF-8 of a request's `prompt`, and the consecutive `parts` that make it up.

    `request` is the request as it was read, and `numbers` are the numbers of its messages in the given chat; None for
    0, 1 and so on. `blocks` are the bytes (start, end) that `{% generation %}` blocks of the template wrote; None if
    unknown.
    """

    prompt: bytes
    parts: tuple[PromptPart, ...]
    request: Request
    blocks: tuple[tuple[int, int], ...] | None = None
    numbers: Sequence[int] | None = None

    @property
    def message_numbers(self) -> Sequence[int]:
        """The number of each message in the chat that was given."""
        return range(len(self.request.messages)) if self.numbers is None else self.numbers

    def role(self, origin: Origin) -> str:
        """The role of an origin's message; "" if it is not a message."""
        if origin.kind != "message" or origin.index is None:
            return ""
        return self.request.messages[self.message_numbers.index(origin.index)].role


class Origins:
    """The origins in one request, by their numbers, which are kept as characters."""

    def __init__(self, numbers: Sequence[int] | None = None) -> None:
        """Make numbers for the origins; `numbers` are those of the messages, None for 0, 1 and so on."""
        self._numbers = numbers
        self._known = [Origin("template"), Origin("generation_prompt")]

    def new(self, kind: Kind, index: int | None = None, field: str = "") -> str:
        """The number of a new origin; the last possible number stands for all that follow."""
        if len(self._known) < sys.maxunicode:
            self._known.append(Origin(kind, index, field))
        else:
            self._known[-1] = Origin("unknown")
        return chr(len(self._known) - 1)

    def kind(self, number: str) -> Kind:
        """What kind of origin a number stands for."""
        return self._known[ord(number)].kind

    def of_request(self, request: Request) -> Request:
        """A copy of the request with attributed texts."""
        numbers = range(len(request.messages)) if self._numbers is None else self._numbers
        return replace(
            request,
            messages=tuple(map(self._of_message, numbers, request.messages)),
            tools=tuple(
                with_one_origin(tool, self.new("tool", index, tool_name(tool)))
                for index, tool in enumerate(request.tools)
            ),
            json_schema=with_one_origin(request.json_schema, self.new("argument", field="response_format")),
            template_arguments={
                name: with_one_origin(value, self.new("argument", field=name))
                for name, value in request.template_arguments.items()
            },
        )

    def _of_message(self, index: int, message: Message) -> Message:
        def of(field: str, text: str) -> str:
            return attributed(text, self.new("message", index, field)) if text else text

        return Message(
            of("role", message.role),
            of("content", message.content),
            tuple(
                (kind, of(f"content[{number}].text", text))
                for number, (kind, text) in enumerate(message.parts)
            ),
            tuple(
                (
                    of(f"tool_calls[{number}].function.name", name),
                    of(f"tool_calls[{number}].function.arguments", arguments),
                    of(f"tool_calls[{number}].id", identity),
                )
                for number, (name, arguments, identity) in enumerate(message.calls)
            ),
            of("reasoning_content", message.reasoning),
            of("name", message.name),
            of("tool_call_id", message.call_id),
        )

    def parts(self, prompt: str) -> tuple[PromptPart, ...]:
        """The consecutive parts that make up a prompt."""
        parts, at = [], 0
        for text, number in Attributed(prompt, origins_of(prompt)).runs():
            parts.append(PromptPart(at, at := at + len(text), self._known[ord(number)]))
        return tuple(parts)


def tool_name(tool: Mapping[str, Any]) -> str:
    """The name of a tool's function."""
    return str(tool["function"]["name"])


GENERATION_PROMPT = "\1"


def generated(text: str, start: int = 0) -> Attributed:
    """The text with the template's own parts from `start` on marked as the generation prompt."""
    origins = origins_of(text)
    return Attributed(text, origins[:start] + origins[start:].replace(NOBODY, GENERATION_PROMPT))
