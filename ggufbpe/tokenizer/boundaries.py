"""Where a text is best divided: the levels of boundaries, strongest first, as data.

A level is a pattern over the bytes of UTF-8. What it matches, or its first group, is the separator; what stands before
and behind it belongs to different parts.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

KeepSeparator = Literal["end", "start", False]

_LOOKED_AHEAD = 64  # bytes behind a place that may decide whether it is a boundary
_LOOKED_BACK = 8  # bytes in front of a separator, such as the end of a sentence
_FIRST_WINDOW = 256  # bytes in which the last boundary is looked for first
_WHITE_SPACE = b" \t\r\n"


class BoundaryLevel(NamedTuple):
    """One level of boundaries. `pattern` matches the separator, or has it as its first group that matches.

    `hint` is in the text wherever the pattern matches. `is_dense` says that boundaries are so frequent that they are
    looked for near a place instead of in the whole text. `in_fences` says whether they count within a fenced block of
    Markdown, if the levels have one that ends at such blocks.
    """

    name: str
    pattern: re.Pattern[bytes]
    hint: bytes = b""
    is_dense: bool = False
    in_fences: bool = False


class BoundarySearch:
    """Finds the boundaries of levels in one text."""

    def __init__(self, data: bytes, levels: Sequence[BoundaryLevel], keep: KeepSeparator) -> None:
        self._data, self._keep = data, keep
        matter = any(level.name == FENCED_BLOCK for level in levels)
        self._fences = _fences(data) if matter else []
        self._known: dict[str, list[int]] = {}

    def last(self, level: BoundaryLevel, start: int, end: int) -> int:
        """Return the last boundary after `start` and up to `end`; `start` if there is none."""
        if not level.is_dense:
            places = self._places(level)
            index = bisect_right(places, end) - 1
            return max(places[index], start) if index >= 0 else start
        width = _FIRST_WINDOW
        while True:
            first = _before_white_space(self._data, max(start, end - width), start)
            found = self._between(level, first, end)
            if found and found[-1] > start:
                return found[-1]
            if first <= start:
                return start
            width *= 4

    def first(self, level: BoundaryLevel, start: int, end: int, least: int = 0) -> int:
        """Return the first boundary from `start` on and before `end`; `end` if there is none.

        A separator that begins before `least` counts as beginning there.
        """
        if level.is_dense:
            first = max(_before_white_space(self._data, start, least) - _LOOKED_BACK, 0)
            found = self._between(level, first, end - 1)
            return next((place for place in found if place >= start), end)
        places = self._places(level)
        index = bisect_left(places, start)
        return min(places[index], end) if index < len(places) else end

    def _places(self, level: BoundaryLevel) -> list[int]:
        """All boundaries of a level in ascending order."""
        if level.name not in self._known:
            is_there = not level.hint or level.hint in self._data
            self._known[level.name] = self._between(level, 0, len(self._data)) if is_there else []
        return self._known[level.name]

    def _between(self, level: BoundaryLevel, start: int, end: int) -> list[int]:
        matches = level.pattern.finditer(self._data, start, end + _LOOKED_AHEAD)
        if not level.pattern.groups:
            places = (
                [match.start() for match in matches] if self._keep == "start" else [m.end() for m in matches]
            )
        elif self._keep == "start":
            places = [match.start(match.lastindex or 0) for match in matches]
        else:
            places = [match.end(match.lastindex or 0) for match in matches]
        while places and places[-1] > end:
            places.pop()
        if self._fences and not level.in_fences:
            return [place for place in places if bisect_right(self._fences, place) % 2 == 0]
        return places


def _fences(data: bytes) -> list[int]:
    """Where fenced blocks begin and end in turn; one that is never closed ends with the text."""
    found: list[int] = []
    mark = b""
    for match in _FENCE.finditer(b"\n" + data) if b"```" in data or b"~~~" in data else ():
        if not mark:
            mark = match[1]
            found.append(match.start(1))  # one behind it, because of the line break in front
        elif match[1] == mark and not match[2].strip():
            mark = b""
            found.append(match.end(1) - 1)
    return found


def _before_white_space(data: bytes, place: int, least: int) -> int:
    """The beginning of the white space that ends at a place, since a separator may begin there."""
    while place > least and data[place - 1] in _WHITE_SPACE:
        place -= 1
    return place


def _level(name: str, pattern: bytes, hint: bytes = b"") -> BoundaryLevel:
    return BoundaryLevel(name, re.compile(pattern), hint)


_FENCE = re.compile(rb"\n[ ]{0,3}(```|~~~)([^\n]*)")
FENCED_BLOCK = "fenced block"

_WORD = BoundaryLevel("word", re.compile(rb"[ \t\r\n]+"), is_dense=True, in_fences=True)
_LINE = BoundaryLevel("line", re.compile(rb"\n(?:[ \t\r]*\n)*"), is_dense=True, in_fences=True)
# Before a small letter, a period belongs to an abbreviation. The ideographic 。！？ need no space behind them.
_SENTENCE = BoundaryLevel(
    "sentence",
    re.compile(
        rb"[.!?][\"')\]]*([ \t\r\n]+)(?![a-z \t\r\n])|(?:\xe3\x80\x82|\xef\xbc[\x81\x9f])([ \t\r\n]*)"
    ),
    is_dense=True,
)
_PARAGRAPH = _level("paragraph", rb"\n(?:[ \t\r]*\n)+", b"\n")
# Runs of line breaks are matched from their beginning only: a match from each of them would take quadratic time.
_HEADINGS = tuple(
    _level(f"heading {n}", rb"(?<!\n)\n+(?=#{%d} )" % n, b"\n" + b"#" * n + b" ") for n in range(1, 7)
)
_BLOCK = _level(FENCED_BLOCK, rb"(?<!\n)\n+(?=[ ]{0,3}(?:```|~~~))|(?m:^)[ ]{0,3}(?:```|~~~)[^\n`]*(\n+)")
_RULE = _level("rule", rb"(?<!\n)\n+(?=(?:---|\*\*\*|___)[ \t]*\r?\n)")
_STARTS = (
    rb"(?:@|#\[|(?:export |default |public |private |protected |static |abstract |final |pub(?:\([a-z]+\))? |async |"
    rb"unsafe |inline |const |virtual |template ?)*(?:def|class|func|function|fn|impl|struct|enum|trait|interface|"
    rb"namespace|module|object|type|typedef|union|void|int|bool|auto|CREATE|template)[ <])"
)
_BLANK_LINES = rb"(?<![\r\n])\r*\n[\r\n]*\n"
_DEFINITION = _level("definition", rb"%b(?=%b)" % (_BLANK_LINES, _STARTS), b"\n")
_INNER_DEFINITION = _level("inner definition", rb"%b(?=[ \t]+%b)" % (_BLANK_LINES, _STARTS), b"\n")

BOUNDARIES: Mapping[str, tuple[BoundaryLevel, ...]] = {
    "paragraph": (_PARAGRAPH, _SENTENCE, _LINE, _WORD),
    "sentence": (_SENTENCE, _LINE, _WORD),
    "line": (_LINE, _WORD),
    "word": (_WORD,),
    "token": (),
    "markdown": (*_HEADINGS, _BLOCK, _RULE, _PARAGRAPH, _SENTENCE, _LINE, _WORD),
    "code": (_DEFINITION, _INNER_DEFINITION, _PARAGRAPH, _LINE, _WORD),
}
Boundaries = str | Sequence[BoundaryLevel]


def levels_of(boundaries: Boundaries) -> tuple[BoundaryLevel, ...]:
    """Return the levels of a name in `BOUNDARIES`, or given ones. `ValueError` for another name."""
    if not isinstance(boundaries, str):
        return tuple(boundaries)
    if boundaries not in BOUNDARIES:
        raise ValueError(f"boundaries is one of {', '.join(map(repr, BOUNDARIES))}, not {boundaries!r}")
    return BOUNDARIES[boundaries]
