"""Shows a prompt coloured by where its parts come from, and a table of its tokens, which is the legend."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rich.console import RenderableType
from rich.text import Text

from ...chat.origins import Origin
from ...chat.token_origins import ChatTokens, Share
from . import terminal
from .drawing import columns, drawn, uncut

INJECTED = "bold white on red"
_OF_ROLES = {
    "system": "magenta",
    "developer": "magenta",
    "user": "cyan",
    "assistant": "green",
    "tool": "yellow",
}
_OF_KINDS = {
    "template": "dim",
    "tool": "blue",
    "argument": "bright_blue",
    "generation_prompt": "bold",
    "added": "dim",
}
_OTHER = "bright_cyan"  # roles of other names, and what could not be told
_NAMES = {
    "template": "the template",
    "argument": "arguments of the template",
    "generation_prompt": "generation prompt",
    "added": "added by the tokenizer",
    "unknown": "not told apart",
}


def origin_style(origin: Origin, role: str) -> str:
    """The style of what comes from an origin."""
    return (
        _OF_ROLES.get(role, _OTHER)
        if role or origin.kind == "unknown"
        else _OF_KINDS.get(origin.kind, _OTHER)
    )


def row_name(share: Share) -> str:
    """What a row of the table is of."""
    if share.origin.kind == "message":
        return f"{share.origin.name} {terminal.one_line(share.role)}{_fields(share)}"
    if share.origin.kind == "tool":
        return f"{share.origin.name} {terminal.one_line(share.origin.field)}".rstrip()
    return _NAMES[share.origin.kind]


def _fields(share: Share) -> str:
    """The tokens of a message's fields, where it has others than its content."""
    if not share.fields.keys() - {"role", "content"}:
        return ""
    counts = (f"{name} {count}" for name, count in share.fields.items())
    return f" ({', '.join(counts)})"


class ColoredPart(NamedTuple):
    """Bytes of a prompt that are drawn in one way."""

    text: bytes
    origin: Origin
    role: str
    is_injected: bool


def colored_parts(tokens: ChatTokens) -> Iterator[ColoredPart]:
    """All of the prompt, in parts that are cut where text was injected."""
    prompt, next_one = tokens.rendered.prompt, 0
    for part in tokens.rendered.parts:
        at, role = part.start, tokens.rendered.role(part.origin)
        while next_one < len(tokens.injected) and tokens.injected[next_one].start < part.end:
            start, end = tokens.injected[next_one].start, tokens.injected[next_one].end
            if at < start:
                yield ColoredPart(prompt[at:start], part.origin, role, False)
                at = start
            yield ColoredPart(prompt[at : min(end, part.end)], part.origin, role, True)
            at = min(end, part.end)
            if end > part.end:  # it goes on in the next part
                break
            next_one += 1
        if at < part.end:
            yield ColoredPart(prompt[at : part.end], part.origin, role, False)


def prompt_lines(tokens: ChatTokens) -> Iterator[Text]:
    """The prompt line by line, safe and coloured."""
    line = uncut("")
    for part in colored_parts(tokens):
        style = INJECTED if part.is_injected else origin_style(part.origin, part.role)
        first, *others = part.text.split(b"\n")
        line.append(terminal.visible(first), style)
        for text in others:
            yield line
            line = uncut("").append(terminal.visible(text), style)
    yield line


def table(chat: ChatTokens) -> RenderableType:
    """How many tokens each message has, the template and all else; in the colours of the prompt."""
    total = len(chat.ids)
    rows: list[tuple[str | Text, ...]] = [("tokens", "share", "of")]
    for share in chat.shares:
        style = origin_style(share.origin, share.role)
        percent = f"{100 * share.tokens / total:.0f}%" if total else "-"
        rows.append((str(share.tokens), percent, Text(row_name(share), style)))
    return columns([*rows, (str(total), "", "in all")], 2)


def chat_lines(chat: ChatTokens, *, prompt: bool, color: bool, width: int | None) -> Iterator[str]:
    """The prompt, if it is wanted, and the table."""

    def parts() -> Iterator[RenderableType]:
        if prompt:
            yield from prompt_lines(chat)
            yield ""
        yield table(chat)

    return drawn(parts(), color, width)
