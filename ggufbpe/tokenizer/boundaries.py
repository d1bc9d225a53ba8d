"""Where a text is best divided: the levels of boundaries, strongest first, as data.

A level is a pattern over the bytes of UTF-8. What it matches, or its first group, is the separator; what stands before
and behind it belongs to different parts.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

KeepSeparator = Literal["end", "start", False]

_LOOKED_AHEAD = 64  # bytes behind a place that may decide whether it is a boundary
_FIRST_WINDOW = 256  # bytes in which the last boundary is looked for first
_WHITE_SPACE = b" \t\r\n"


class BoundaryLevel(NamedTuple):
    """One level of boundaries. `pattern` matches the separator, or has it as its first group.

    `hint` is in the text wherever the pattern matches: looking for that is faster. `in_fences` says whether it holds
    within a fenced block of Markdown, too.
    """

    name: str
    pattern: re.Pattern[bytes]
    hint: bytes = b""
    in_fences: bool = False

    def last(self, data: bytes, start: int, end: int, fences: Fences, keep: KeepSeparator) -> int:
        """Return the last boundary after `start` and up to `end`; `start` if there is none."""
        if self.hint and data.rfind(self.hint, start, end + len(self.hint)) < 0:
            return start
        width = _FIRST_WINDOW
        while True:
            first = _before_white_space(data, max(start, end - width), start)
            found = self._all(data, first, end, fences, keep)
            if found and found[-1] > start:
                return found[-1]
            if first <= start:
                return start
            width *= 4

    def first(self, data: bytes, start: int, end: int, fences: Fences, keep: KeepSeparator) -> int:
        """Return the first boundary from `start` on and before `end`; `end` if there is none."""
        found = self._all(data, _before_white_space(data, start, 0), end - 1, fences, keep)
        return next((each for each in found if each >= start), end)

    def _all(self, data: bytes, start: int, end: int, fences: Fences, keep: KeepSeparator) -> list[int]:
        places = []
        for match in self.pattern.finditer(data, start, end + _LOOKED_AHEAD):
            group = match.lastindex or 0
            place = match.start(group) if keep == "start" else match.end(group)
            if place > end:
                break
            if self.in_fences or not fences.contain(place):
                places.append(place)
        return places


class Fences:
    """The fenced blocks of a Markdown text, if they matter."""

    def __init__(self, data: bytes, matter: bool) -> None:
        self._bounds: list[int] = []  # where blocks begin and end in turn
        if not matter or (b"```" not in data and b"~~~" not in data):
            return
        mark = b""
        for match in _FENCE.finditer(data):
            if not mark:
                mark = match[1]
                self._bounds.append(match.start(1) + 1)
            elif match[1] == mark and not match[2].strip():
                mark = b""
                self._bounds.append(match.end(1))

    def contain(self, place: int) -> bool:
        """Whether a place is within a block; one that is never closed ends with the text."""
        return bool(self._bounds) and bisect_right(self._bounds, place) % 2 == 1


def _before_white_space(data: bytes, place: int, least: int) -> int:
    """The beginning of the white space that ends at a place, since a separator may begin there."""
    while place > least and data[place - 1] in _WHITE_SPACE:
        place -= 1
    return place


def _level(
    name: str, pattern: bytes, hint: bytes = b"", *, in_fences: bool = False
) -> BoundaryLevel:
    return BoundaryLevel(name, re.compile(pattern), hint, in_fences)


_FENCE = re.compile(rb"(?:^|(?<=\n))[ ]{0,3}(```|~~~)([^\n]*)")

_WORD = _level("word", rb"[ \t\r\n]+", in_fences=True)
_LINE = _level("line", rb"\n(?:[ \t\r]*\n)*", b"\n", in_fences=True)
# Before a small letter, a period belongs to an abbreviation. 。！？ need no space behind them.
_SENTENCE = _level(
    "sentence",
    rb"[.!?\x82\x81\x9f]+[\"')\]]*(?:(?<=[.!?\"')\]])([ \t\r\n]+)(?![a-z \t\r\n])"
    rb"|(?:(?<=\xe3\x80\x82)|(?<=\xef\xbc\x81)|(?<=\xef\xbc\x9f))([ \t\r\n]*))",
)
_PARAGRAPH = _level("paragraph", rb"\n(?:[ \t\r]*\n)+", b"\n")
_HEADINGS = tuple(_level(f"heading {n}", rb"\n+(?=#{%d} )" % n, b"\n" + b"#" * n + b" ") for n in range(1, 7))
_BLOCK = _level("fenced block", rb"\n+(?=[ ]{0,3}(?:```|~~~))|(?<=```)\n+|(?<=~~~)\n+")
_RULE = _level("rule", rb"\n+(?=(?:---|\*\*\*|___)[ \t]*\r?\n)")
_STARTS = (
    rb"(?:@|#\[|(?:export |default |public |private |protected |static |abstract |final |pub(?:\([a-z]+\))? |async |"
    rb"unsafe |inline |const |virtual |template ?)*(?:def|class|func|function|fn|impl|struct|enum|trait|interface|"
    rb"namespace|module|object|type|typedef|union|void|int|bool|auto|CREATE|template)[ <])"
)
_DEFINITION = _level("definition", rb"\n[\r\n]*\n(?=%b)" % _STARTS, b"\n")
_INNER_DEFINITION = _level("inner definition", rb"\n[\r\n]*\n(?=[ \t]+%b)" % _STARTS, b"\n")

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
