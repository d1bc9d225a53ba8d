"""Shows the result of `verify` as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text as Line

from ..._util.wording import counted, percent
from ..verify.result import (
    ComparedText,
    Difference,
    DifferenceExample,
    FailureGroup,
    ShownToken,
    Verification,
)
from . import terminal
from .cause_lines import cause_lines, proposal_lines
from .chat_report_lines import chat_parts
from .drawing import ROW, beside, drawn, indented, piece, styled, uncut
from .report_page import by_span, goes_on, rate, verdict

_SHOWN = 10  # differences printed on a terminal; --json and --html have all
_TEXT_SHOWN = 200  # bytes of a text to print


class ReportLines:
    """The result in lines for people."""

    def __init__(self, color: bool, width: int | None, models: tuple[str, str] | None = None) -> None:
        """`models`: the names of two compared models, in place of ggufbpe and an oracle."""
        self._color = color
        self._width = width or ROW
        self._terminal = width
        self._models = models = models and (terminal.one_line(models[0]), terminal.one_line(models[1]))
        self._sides = models or ("ours", "theirs")
        self._label = min(1 + max(7, *map(len, self._sides)), self._width // 3)

    def lines(self, result: Verification, note: str) -> Iterator[str]:
        """The result, line by line."""
        return drawn(self._parts(result, note), self._color, self._terminal)

    def _parts(self, result: Verification, note: str) -> Iterator[RenderableType]:
        if result.chats is not None:
            yield from chat_parts(result.chats, self._sides, result.oracle)
            if not result.texts:
                return
            yield ""
        yield from self._summary(result, note)
        for number, difference in enumerate(result.differences[:_SHOWN], 1):
            yield ""
            yield from self._difference(number, difference)
        more = len(result.differences) - _SHOWN
        if more > 0:
            yield from ("", f"and {counted(more, 'more difference')}: --json and --html show all")
        if result.other_places:
            yield from ("", f"and {counted(result.other_places, 'more place')}, which were only counted")
        for group in result.failures:
            yield ""
            yield from self._failure(group)
        if result.proposal is not None:
            yield ""
            yield from proposal_lines(result.proposal)

    def _summary(self, result: Verification, note: str) -> Iterator[RenderableType]:
        text, oracle = verdict(result), terminal.one_line(result.oracle)
        if places := sum(difference.places for difference in result.differences) + result.other_places:
            text += f", in {counted(places, 'place')}"
        good = result.compared and not result.different
        yield Line(text, "green" if good else "bold red")
        if result.failed:
            yield Line(f"{oracle} failed on {counted(result.failed, 'text')}", "bold red")
        if result.refused:
            yield f"{counted(result.refused, 'text')} not compared, since {oracle} does not accept them"
        own = self._models[0] if self._models else "ggufbpe"
        rows = [
            ("compared", counted(result.texts, "text"), counted(result.bytes, "byte")),
            (own, counted(result.tokens, "token"), rate(result.bytes, result.seconds)),
            (oracle, counted(result.oracle_tokens, "token"), rate(result.bytes, result.oracle_seconds)),
        ]
        first, second = (max(len(row[column]) for row in rows) for column in (0, 1))
        if first + second > self._width - 16:
            yield from (f"  {name}: {', '.join(filter(None, rest))}" for name, *rest in rows)
        else:
            yield from (
                f"  {name:{first}}  {number:>{second}}  {last}".rstrip() for name, number, last in rows
            )
        if note:
            yield beside("  ", note)

    def _difference(self, number: int, difference: Difference) -> Iterator[RenderableType]:
        first = difference.first
        places = f": {counted(difference.places, 'place')}"
        yield Line.assemble((f"{number}. {difference.step}", "bold"), places)
        yield from self._causes(difference)
        yield uncut(f"   first in {where(first.text, first.start)}")
        yield from self._rows(first)
        if difference.smallest is not None and difference.smallest.text.data != first.text.data:
            yield beside("   smallest text: ", _shown_text(difference.smallest.text.data))
            yield from self._rows(difference.smallest)

    def _causes(self, difference: Difference) -> Iterator[RenderableType]:
        if not difference.causes:
            if self._models is None:  # for two models that differ, their differences say more
                yield "   cause: not found"
            return
        for cause in difference.causes:
            yield from cause_lines(cause, 3, f"cause: {cause.id}: ")
        if difference.explains < 1.0:
            yield f"   this explains {percent(difference.explains)} of the ids"

    def _failure(self, group: FailureGroup) -> Iterator[RenderableType]:
        yield Line.assemble((group.kind, "bold"), f": {terminal.one_line(group.detail)}")
        yield uncut(f"   {counted(group.texts, 'text')}, first {where(group.first, 0)}")
        yield beside("   ", _shown_text(group.first.data))

    # ---- two rows, aligned ----------------------------------------------------------------------

    def _rows(self, example: DifferenceExample) -> Iterator[RenderableType]:
        """Ours above theirs, each token over its id, in as many blocks as the width requires."""
        room = self._width - 6 - self._label
        before, rest = goes_on(example)
        stretches = [_gap(0)] * before + [_stretch(*sides, room) for sides in by_span(example)]
        stretches += [] if rest is None else [_gap(rest)]
        while stretches:
            used = 0
            block: list[_Stretch] = []
            while stretches and (not block or used + stretches[0].width <= room):
                used += stretches[0].width + 2
                block.append(stretches.pop(0))
            ours, theirs = self._sides
            table = Table.grid(padding=(0, 2, 0, 0))
            table.add_column(width=self._label - 1, no_wrap=True, overflow="ellipsis")
            for stretch in block:
                table.add_column(width=stretch.width, no_wrap=True)
            table.add_row("at byte", *(styled(str(stretch.start), "dim") for stretch in block))
            table.add_row(ours, *(stretch.ours for stretch in block))
            table.add_row(theirs, *(stretch.theirs for stretch in block))
            if not self._color and any(stretch.differs for stretch in block):
                table.add_row("", *("^" * stretch.width * stretch.differs for stretch in block))
            yield indented(table, 5)


class _Stretch(NamedTuple):
    """A part of the text where both sides begin and end a token; each side is a line of pieces over one of ids."""

    start: int  # byte
    differs: bool
    ours: Table
    theirs: Table
    width: int  # columns


def _gap(start: int) -> _Stretch:
    """What stands for text whose tokens are not shown."""
    more = Table.grid()
    more.add_row("…")
    return _Stretch(start, False, more, more, len(str(start)))


def _stretch(
    ours: Sequence[ShownToken], theirs: Sequence[ShownToken], left_out: tuple[int, int], room: int
) -> _Stretch:
    """A stretch with as many tokens of each side as fit in `room` columns."""
    differs = any(token.differs for token in [*ours, *theirs])
    start = min(token.start for token in [*ours, *theirs])
    for most in range(max(len(ours), len(theirs)), 0, -1):
        sides = [
            _side(tokens[:most], more + max(len(tokens) - most, 0), differs)
            for tokens, more in zip((ours, theirs), left_out)
        ]
        width = max(len(str(start)), *(columns for _, columns in sides))
        if width <= room:
            break
    return _Stretch(start, differs, sides[0][0], sides[1][0], min(width, room))


def _side(tokens: Sequence[ShownToken], left_out: int, differs: bool) -> tuple[Table, int]:
    """Pieces over their ids, and how many columns they take."""
    style = "bold red" if differs else ""
    pieces = [piece(token.piece, style) for token in tokens] or [styled("∅", style)]
    ids = [str(token.id) for token in tokens] or [""]
    if left_out:
        pieces.append(styled(f"… and {left_out} more", style))
        ids.append("")
    grid = Table.grid(padding=(0, 1, 0, 0))
    for _ in pieces:
        grid.add_column(no_wrap=True)
    grid.add_row(*pieces)
    if any(ids):  # else an empty line would stand below "∅"
        grid.add_row(*(styled(number, "dim") for number in ids))
    widths = [max(shown.cell_len, len(number)) for shown, number in zip(pieces, ids)]
    return grid, sum(widths) + len(widths) - 1


def _shown_text(data: bytes) -> str:
    return f"{terminal.shown_text(data, _TEXT_SHOWN)} ({counted(len(data), 'byte')})"


def where(text: ComparedText, start: int) -> str:
    """The place of a byte of a text."""
    return f"{terminal.one_line(text.source)}, byte {text.offset + start}"
