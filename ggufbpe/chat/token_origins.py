"""Groups the tokens of a prompt by origin, and finds text of messages that became special tokens.

A token belongs to the part of the prompt in which it begins.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from .._util.lazy import cached_property
from ..models.vocabulary import CONTROL
from .origins import Origin, PromptInParts, PromptPart, tool_name

if TYPE_CHECKING:
    from .prompt_tokenizer import PromptTokenizer

ADDED = Origin("added")
_ORDER = ("added", "template", "message", "tool", "argument", "generation_prompt", "unknown")
_OF_A_REQUEST = ("message", "tool", "argument")


class Share(NamedTuple):
    """The number of `tokens` in a prompt from one `origin`, such as a message, a tool, all arguments or the template.

    Of a message, `role` is the role, and `fields` counts the tokens by field: "content", "tool_calls". Otherwise,
    `role` is "".
    """

    origin: Origin
    role: str
    tokens: int
    fields: dict[str, int]

    def to_dict(self) -> dict[str, Any]:
        """The row as `--json` prints it."""
        more = {"role": self.role, "fields": self.fields} if self.origin.kind == "message" else {}
        return {**self.origin.to_dict(), "tokens": self.tokens, **more}


class Injected(NamedTuple):
    """A special token that came out of text of the request.

    `token` is its place among the ids of the prompt, from 0, and `id` the id itself. It covers the bytes from `start`
    to `end` of the prompt, which are `text`. `origin` is where that text is from, and `role` the role of the message;
    "" if it is not from a message.
    """

    token: int
    id: int
    start: int
    end: int
    text: str
    origin: Origin
    role: str

    def to_dict(self) -> dict[str, Any]:
        """The token as `--json` prints it."""
        place = {"token": self.token, "id": self.id, "start": self.start, "end": self.end, "text": self.text}
        return {**place, **self.origin.to_dict(), **({"role": self.role} if self.role else {})}

    def in_words(self) -> str:
        """What happened, in a line."""
        whose = f" of the {self.role}" if self.role and self.origin.field != "role" else ""
        return f"{self.origin.name}: {self.text!r}{whose} became the special token {self.id}"


@dataclass(frozen=True)
class ChatTokens:
    """The ids of a prompt, each with its text and origin.

    `rendered` is the prompt, in parts. `spans` are the bytes (start, end) of the prompt that each of the `ids` covers,
    and `origins` the parts of the request that each is from. `injected` are the special tokens that came out of text of
    the request.
    """

    rendered: PromptInParts
    ids: list[int]
    spans: Sequence[tuple[int, int]]
    origins: list[Origin]
    injected: list[Injected]

    @cached_property
    def shares(self) -> list[Share]:
        """How many tokens each has, also if none: messages in order, then tools."""
        request = self.rendered.request
        origins = [Origin("template")]
        origins += [Origin("message", number) for number in self.rendered.message_numbers]
        origins += [Origin("tool", number, tool_name(tool)) for number, tool in enumerate(request.tools)]
        fields: dict[Origin, Counter[str]] = {origin: Counter() for origin in origins}
        for origin in self.origins:
            whole = Origin(origin.kind, origin.index, origin.field if origin.kind == "tool" else "")
            fields.setdefault(whole, Counter())[origin.field.partition("[")[0]] += 1
        return [
            Share(origin, self.rendered.role(origin), sum(counts.values()), dict(counts))
            for origin, counts in sorted(fields.items(), key=lambda each: _ORDER.index(each[0].kind))
        ]

    def to_dict(self) -> dict[str, Any]:
        """The prompt, its ids, and where each part comes from."""
        return {
            "prompt": self.rendered.prompt.decode("utf-8", "replace"),
            "ids": self.ids,
            "count": len(self.ids),
            **self.to_origins(),
        }

    def to_origins(self) -> dict[str, Any]:
        """Only where the parts come from."""
        return {
            "parts": [part.to_dict() for part in self.rendered.parts],
            "tokens_by_origin": [share.to_dict() for share in self.shares],
            "injected": [injected.to_dict() for injected in self.injected],
        }


def chat_tokens(tokenizer: PromptTokenizer, rendered: PromptInParts) -> ChatTokens:
    """The ids of a prompt as `encode` gives them, with their origins."""
    ids, spans = tokenizer.encode_with_offsets(rendered.prompt)
    prefix_size, suffix_size = map(len, tokenizer.vocabulary.added)
    starts = [part.start for part in rendered.parts]
    origins, injected = [], []
    for number, (token, (start, end)) in enumerate(zip(ids, spans)):
        if number < prefix_size or number >= len(ids) - suffix_size:
            origins.append(ADDED)
            continue
        first = max(bisect_right(starts, start) - 1, 0)
        origins.append(rendered.parts[first].origin if rendered.parts else Origin("template"))
        if not tokenizer.vocabulary.attributes[token] & CONTROL:
            continue
        origin = _injected_by(rendered.parts[first : bisect_right(starts, max(end - 1, start))])
        if origin is not None:
            text = rendered.prompt[start:end].decode("utf-8", "replace")
            injected.append(Injected(number, token, start, end, text, origin, rendered.role(origin)))
    return ChatTokens(rendered, ids, spans, origins, injected)


def _injected_by(parts: tuple[PromptPart, ...]) -> Origin | None:
    """The origin whose text became the special token that covers these parts.

    A token that a template makes of a role, as in `'<|' + message.role + '|>'`, has none: it is only partly the role.
    """
    given = [part.origin for part in parts if part.origin.kind in _OF_A_REQUEST]
    if len(given) == len(parts) or any(origin.field != "role" for origin in given):
        return next((origin for origin in given if origin.field != "role"), given[0] if given else None)
    return None
