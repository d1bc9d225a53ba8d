"""Shows what `verify` found in chats, as lines for a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text as Line

from ..._util.wording import counted, percent
from ..verify.chat_comparison import ChatDifference, ChatExample, ChatResult
from . import terminal
from .cause_lines import cause_lines
from .chat_words import both_sides, chat_verdict, difference_title
from .drawing import beside, uncut

_SHOWN = 10  # differences printed on a terminal; --json and --html have all
_REASONS = 3  # examples of refusals for different reasons
_MOST_JSON = 1000  # characters of a chat


def chat_parts(result: ChatResult, sides: tuple[str, str], oracle: str) -> Iterator[RenderableType]:
    """The verdict on the chats, and what differs. `sides` are what ours and theirs are called."""
    yield Line(chat_verdict(result), "green" if result.same else "bold red")
    if result.refused:
        yield f"  {counted(result.refused, 'chat')} refused by both"
    for number, difference in enumerate(result.differences[:_SHOWN], 1):
        yield ""
        yield from _difference(number, difference, sides, oracle)
    if len(result.differences) > _SHOWN:
        yield from ("", f"and {len(result.differences) - _SHOWN} more: --json and --html show all")
    if result.reasons:
        yield ""
        yield f"refused by both, for different reasons: {counted(result.reasons, 'chat')}"
        for example in result.other_reasons[:_REASONS]:
            yield beside("   ", terminal.one_line(example.chat.source))
            yield from _sides(example, sides)
    for failure, source in result.failures:
        yield ""
        yield Line.assemble((failure.kind, "bold"), f": {terminal.one_line(failure.detail)}")
        yield uncut(f"   first in {terminal.one_line(source)}")


def _difference(
    number: int, difference: ChatDifference, sides: tuple[str, str], oracle: str
) -> Iterator[RenderableType]:
    title = difference_title(difference, terminal.one_line(oracle))
    yield Line.assemble((f"{number}. {title}", "bold"), f": {counted(difference.chats, 'chat')}")
    for cause in difference.causes:
        yield from cause_lines(cause, 3, f"cause: {cause.id}: ")
    if difference.causes and difference.explains < 1.0:
        yield f"   this explains {percent(difference.explains)} of the prompt"
    yield uncut(f"   first in {terminal.one_line(difference.first.chat.source)}")
    yield from _sides(difference.first, sides)
    if difference.smallest is not None:
        body = json.dumps(difference.smallest.chat.body, ensure_ascii=False)
        if len(body) > _MOST_JSON:
            yield "   the smallest chat that differs is long: --json has it"
            return
        yield uncut(f"   smallest chat: {terminal.one_line(body)}")
        yield from _sides(difference.smallest, sides)


def _sides(example: ChatExample, sides: tuple[str, str]) -> Iterator[RenderableType]:
    """Both answers, of prompts the place where they part."""
    where, *answers = both_sides(example)
    if where:
        yield f"     {where}"
    width = max(map(len, sides)) + 2
    for name, (before, differs, behind) in zip(sides, answers):
        shown = Line.assemble(before, (differs, "bold red"), behind)
        yield beside(f"     {name:{width}}", shown)
