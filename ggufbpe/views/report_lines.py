"""What `verify` found, as lines for a terminal.

verification/ -> Result -> [this file] -> cli/verify.py
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..verification.result import Difference, Example, FailureGroup, Result, Shown, Text
from ..wording import counted
from . import terminal
from .report import all_fixes, by_span, verdict

_SHOWN = 10  # differences printed on a terminal; --json and --html have all
_TELLING = 100_000  # bytes from which on the time for them says something
_TEXT_SHOWN = 200  # bytes of a text that are printed
_MARK, _GOOD, _BAD = "\x1b[1;31m", "\x1b[32m", "\x1b[31m"


class ReportLines:
    """The result in lines for people."""

    def __init__(self, color: bool, width: int, models: tuple[str, str] | None = None) -> None:
        """`models`: the names of two models that are compared, in place of ggufbpe and an oracle."""
        self._color = color
        self._width = width
        self._models = models
        self._sides = models or ("ours", "theirs")
        self._label = min(max(8, *map(len, self._sides)), width // 3)

    def lines(self, result: Result, note: str) -> Iterator[str]:
        yield from self._summary(result, note)
        for number, difference in enumerate(result.differences[:_SHOWN], 1):
            yield ""
            yield from self._difference(number, difference)
        if fix := all_fixes(result):
            yield from ("", f"all fixes in one: {terminal.one_line(fix)}")
        more = len(result.differences) - _SHOWN
        if more > 0:
            yield from ("", f"and {more} more difference{'s' * (more > 1)}, which --json and --html have")
        if result.other_places:
            yield from ("", f"and {result.other_places} more places, which were only counted")
        for group in result.failures:
            yield ""
            yield from self._failure(group)

    def _summary(self, result: Result, note: str) -> Iterator[str]:
        text = verdict(result)
        if result.different:
            places = sum(difference.places for difference in result.differences) + result.other_places
            text += f", in {counted(places, 'place')}"
        good = result.compared and not result.different
        yield self._colored(text, _GOOD if good else _BAD)
        if result.failed:
            yield self._colored(f"{result.oracle} failed on {counted(result.failed, 'text')}", _BAD)
        if result.refused:
            yield f"{counted(result.refused, 'text')} not compared, which {result.oracle} cannot take"
        own = self._models[0] if self._models else "ggufbpe"
        rows = [
            ("texts", str(result.texts), f"{result.bytes} bytes"),
            (own, counted(result.tokens, "token"), rate(result.bytes, result.seconds)),
            (
                result.oracle,
                counted(result.oracle_tokens, "token"),
                rate(result.bytes, result.oracle_seconds),
            ),
        ]
        first, second = (max(len(row[column]) for row in rows) for column in (0, 1))
        if first + second > self._width - 16:
            yield from (f"  {name}: {', '.join(rest)}" for name, *rest in rows)
        else:
            yield from (
                f"  {name:{first}}  {number:>{second}}  {last}".rstrip() for name, number, last in rows
            )
        if note:
            yield self._wrapped(f"  {note}", 2)

    def _difference(self, number: int, difference: Difference) -> Iterator[str]:
        places = counted(difference.places, "place")
        first = difference.first
        yield self._wrapped(f"{self._colored(f'{number}. {difference.step}', terminal.BOLD)}: {places}", 3)
        yield from self._causes(difference)
        yield self._wrapped(f"   first in {where(first.text, first.start)}", 5)
        yield from self._rows(first)
        if difference.smallest is not None:
            yield self._wrapped(f"   smallest text: {_shown_text(difference.smallest.text.data)}", 5)
            yield from self._rows(difference.smallest)

    def _causes(self, difference: Difference) -> Iterator[str]:
        if not difference.causes:
            if self._models is None:  # of two models that differ, their differences say more
                yield "   cause: not found"
            return
        share = "" if difference.explains == 1.0 else f" (explains {difference.explains:.0%} of the ids)"
        for cause in difference.causes:
            what = terminal.one_line(str(cause.detail.get("what", "")))
            yield self._wrapped(f"   cause: {cause.id}{': ' * bool(what)}{what}{share}", 5)
            if cause.fix:
                yield f"   fix: {terminal.one_line(cause.fix)}"  # in one piece, to be copied

    def _failure(self, group: FailureGroup) -> Iterator[str]:
        kind = self._colored(group.kind, terminal.BOLD)
        yield self._wrapped(f"{kind}: {terminal.one_line(group.detail)}", 3)
        yield self._wrapped(f"   {counted(group.texts, 'text')}, first {where(group.first, 0)}", 5)
        yield self._wrapped(f"   {_shown_text(group.first.data)}", 5)

    def _wrapped(self, text: str, indent: int) -> str:
        return terminal.wrapped(text, self._width, indent, start=0)

    def _colored(self, text: str, color: str) -> str:
        return f"{color}{text}{terminal.RESET}" if self._color else text

    # ---- two rows, aligned ----------------------------------------------------------------------

    def _rows(self, example: Example) -> Iterator[str]:
        """Ours above theirs, each token over its id, in as many blocks as the width asks for."""
        room = self._width - 6 - self._label
        columns = [_column(ours, theirs, left_out, room) for ours, theirs, left_out in by_span(example)]
        while columns:
            used = 0
            block: list[_Column] = []
            while columns and (not block or used + columns[0].width <= room):
                used += columns[0].width + 2
                block.append(columns.pop(0))
            ours, theirs = self._sides
            for label, line in (("at byte", 0), (ours, 1), ("", 2), (theirs, 3), ("", 4)):
                cells = [self._cell(column, line) for column in block]
                yield f"     {label[: self._label]:{self._label}} {'  '.join(cells)}".rstrip()
            if not self._color:
                marks = ["^" * column.width if column.differs else " " * column.width for column in block]
                if any(column.differs for column in block):
                    yield f"     {'':{self._label}} {'  '.join(marks)}".rstrip()

    def _cell(self, column: _Column, line: int) -> str:
        text, width = column.lines[line]
        padded = text + " " * (column.width - width)
        if not self._color:
            return padded
        if line in (0, 2, 4):
            return f"{terminal.DIM}{padded}{terminal.RESET}"
        return f"{_MARK}{padded}{terminal.RESET}" if column.differs else padded


class _Column(NamedTuple):
    """A stretch of the text where both rows begin and end a token.

    `lines` are its first byte, our pieces, their ids, the oracle's pieces, their ids; each with its width.
    """

    differs: bool
    lines: list[tuple[str, int]]

    @property
    def width(self) -> int:
        return max(width for _, width in self.lines)


def _column(ours: list[Shown], theirs: list[Shown], left_out: tuple[int, int], room: int) -> _Column:
    """The column of some tokens; as many of each side as there is room for."""
    differs = any(token.differs for token in ours + theirs)
    position = str(min(token.start for token in ours + theirs))
    for most in range(max(len(ours), len(theirs)), 0, -1):
        sides = [
            _side(tokens[:most], more + max(len(tokens) - most, 0))
            for tokens, more in zip((ours, theirs), left_out)
        ]
        column = _Column(differs, [(position, len(position)), *sides[0], *sides[1]])
        if column.width <= room:
            break
    return column


def _side(tokens: list[Shown], left_out: int) -> list[tuple[str, int]]:
    """The line of pieces and the line of ids, each with its width; pieces stand over their ids."""
    if not tokens:
        return [("∅", 1), ("", 0)]
    pieces, ids, total = [], [], 0
    for token in tokens:
        piece, width = terminal.shown_piece(token.piece)
        number = str(token.id)
        cell = max(width, len(number))
        pieces.append(piece + " " * (cell - width))
        ids.append(number.ljust(cell))
        total += cell + 1
    if left_out:
        more = f"… and {left_out} more"
        pieces.append(more)
        ids.append(" " * len(more))
        total += len(more) + 1
    return [(" ".join(pieces), total - 1), (" ".join(ids), total - 1)]


def _shown_text(data: bytes) -> str:
    return f"{terminal.shown_text(data, _TEXT_SHOWN)} ({counted(len(data), 'byte')})"


def where(text: Text, start: int) -> str:
    """The place of a byte of a text."""
    return f"{terminal.one_line(text.source)}, byte {text.offset + start}"


def rate(size: int, seconds: float) -> str:
    """Megabytes a second, for people; nothing where it was too little to tell."""
    return f"{size / 1e6 / seconds:.3g} MB/s" if seconds and size >= _TELLING else ""
