"""Where a text is best divided: the levels of boundaries, strongest first, as data.

A level is a pattern over the bytes of UTF-8. What it matches, or a group of it, is the separator; what stands before
and behind it belongs to different parts.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Literal, NamedTuple, get_args

from .._util.utf8 import to_bytes

KeepSeparator = Literal["end", "start", False]
SEPARATORS: tuple[KeepSeparator, ...] = get_args(KeepSeparator)
BoundaryName = Literal["paragraph", "sentence", "line", "word", "token", "markdown", "code"]


class BoundaryLevel(NamedTuple):
    """One level of boundaries, called `name`, by the separators that `pattern` matches.

    If groups match, the separator is the one that closes last. The pattern is compiled, of bytes, which are those of
    UTF-8; a boundary within a character does not count, nor one before a byte that could continue a character. `hint`
    is in the text wherever the pattern matches. `in_fences` says whether boundaries count within a fenced block of
    Markdown, if the levels have one that ends at such blocks. `is_dense` is ignored; kept for compatibility.
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
        self._known: dict[BoundaryLevel, list[int]] = {}

    def last(self, level: BoundaryLevel, start: int, end: int) -> int:
        """Return the last boundary after `start` and up to `end`; `start` if there is none."""
        places = self.places(level)
        index = bisect_right(places, end) - 1
        return max(places[index], start) if index >= 0 else start

    def first(self, level: BoundaryLevel, start: int, end: int) -> int:
        """Return the first boundary from `start` on and before `end`; `end` if there is none."""
        places = self.places(level)
        index = bisect_left(places, start)
        return min(places[index], end) if index < len(places) else end

    def places(self, level: BoundaryLevel) -> list[int]:
        """Return all boundaries of a level in ascending order, without those within a character."""
        if level not in self._known:
            is_there = not level.hint or level.hint in self._data
            self._known[level] = self._found(level) if is_there else []
        return self._known[level]

    def _found(self, level: BoundaryLevel) -> list[int]:
        matches = level.pattern.finditer(self._data)
        if self._keep == "start":
            places = [match.start(match.lastindex or 0) for match in matches]
        else:
            places = [match.end(match.lastindex or 0) for match in matches]
        if not _is_ours(level):  # a caller's own may match some bytes of a character
            data = self._data
            places = [place for place in places if place == len(data) or data[place] & 0xC0 != 0x80]
        if self._fences and not level.in_fences:
            return [place for place in places if bisect_right(self._fences, place) % 2 == 0]
        return places


def compiled_levels(
    text: str | bytes, levels: Sequence[BoundaryLevel], keep: KeepSeparator
) -> list[tuple[str, list[int], bool]]:
    """Return levels as the compiled engine takes them: by name, or, if they are a caller's own, by their boundaries."""
    if all(map(_is_ours, levels)):
        return [(level.name, [], level.in_fences) for level in levels]
    search = BoundarySearch(to_bytes(text), levels, keep)
    return [("", search.places(level), level.in_fences) for level in levels]


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


_FENCE = re.compile(rb"\n[ ]{0,3}(```|~~~)([^\n]*)")
FENCED_BLOCK = "fenced block"

_STARTS = (
    rb"(?:@|#\[|(?:export |default |public |private |protected |static |abstract |final |pub(?:\([a-z]+\))? |async |"
    rb"unsafe |inline |const |virtual |template ?)*(?:def|class|func|function|fn|impl|struct|enum|trait|interface|"
    rb"namespace|module|object|type|typedef|union|void|int|bool|auto|CREATE|template)[ <])"
)
_BLANK_LINES = rb"(?<![\r\n])\r*\n[\r\n]*\n"

# The pattern and the hint of each level. Runs of line breaks are matched from their beginning only: a match from each
# of them would take quadratic time.
_PATTERNS = {
    **{f"heading {n}": (rb"(?<!\n)\n+(?=#{%d} )" % n, b"\n" + b"#" * n + b" ") for n in range(1, 7)},
    FENCED_BLOCK: (
        rb"(?<!\n)\n+(?=[ ]{0,3}(?:```|~~~))|(?m:^)[ ]{0,3}(?:```|~~~)[^\n`]*(\n+)",
        b"",
    ),
    "rule": (rb"(?<!\n)\n+(?=(?:---|\*\*\*|___)[ \t]*\r?\n)", b""),
    "definition": (rb"%b(?=%b)" % (_BLANK_LINES, _STARTS), b"\n"),
    "inner definition": (rb"%b(?=[ \t]+%b)" % (_BLANK_LINES, _STARTS), b"\n"),
    "paragraph": (rb"\n(?:[ \t\r]*\n)+", b"\n"),
    # Before a small letter, a period belongs to an abbreviation. The ideographic 。！？ need no space behind them.
    "sentence": (
        rb"[.!?][\"')\]]*([ \t\r\n]+)(?![a-z \t\r\n])|(?:\xe3\x80\x82|\xef\xbc[\x81\x9f])([ \t\r\n]*)",
        b"",
    ),
    "line": (rb"\n(?:[ \t\r]*\n)*", b""),
    "word": (rb"[ \t\r\n]+", b""),
}
_PROSE = ("paragraph", "sentence", "line", "word")
_LEVELS: dict[BoundaryName, tuple[str, ...]] = {
    "paragraph": _PROSE,
    "sentence": _PROSE[1:],
    "line": _PROSE[2:],
    "word": _PROSE[3:],
    "token": (),
    "markdown": (*(f"heading {n}" for n in range(1, 7)), FENCED_BLOCK, "rule", *_PROSE),
    "code": ("definition", "inner definition", "paragraph", "line", "word"),
}


@cache
def _level(name: str) -> BoundaryLevel:
    pattern, hint = _PATTERNS[name]
    return BoundaryLevel(name, re.compile(pattern), hint, in_fences=name in ("line", "word"))


def _is_ours(level: BoundaryLevel) -> bool:
    return level.name in _PATTERNS and _level(level.name) == level


class _CompiledWhenAsked(Mapping[BoundaryName, tuple[BoundaryLevel, ...]]):
    """The levels of each name. Compiling all patterns would take longer than dividing a short text."""

    def __getitem__(self, name: BoundaryName) -> tuple[BoundaryLevel, ...]:
        return tuple(map(_level, _LEVELS[name]))

    def __iter__(self) -> Iterator[BoundaryName]:
        return iter(_LEVELS)

    def __len__(self) -> int:
        return len(_LEVELS)


BOUNDARIES: Mapping[BoundaryName, tuple[BoundaryLevel, ...]] = _CompiledWhenAsked()
Boundaries = BoundaryName | Sequence[BoundaryLevel]


BEGINS_WORD = 1 << 30  # LengthArray::BEGINS_WORD in native/src/tokenizer/token_starts.h


class SplitRequest(NamedTuple):
    """How a text is to be divided: the arguments of `Tokenizer.split`, and what its tokenizer knows."""

    size: int
    overlap: int
    levels: Sequence[BoundaryLevel]
    keep: KeepSeparator
    parse_special: bool
    token_lengths: bytes  # int32, in bytes of text, -1 for unknown; empty if tokens may stand for other text
    # That of the model. If set, the lengths have BEGINS_WORD, and are those in text that the model does not change.
    begins_words: bool
    ignores_first_space: bool  # a space before a text changes none of its ids


def levels_of(boundaries: Boundaries) -> tuple[BoundaryLevel, ...]:
    """Return the levels of a name in `BOUNDARIES`, or given ones.

    `ValueError` for another name, `TypeError` for anything else.
    """
    if not isinstance(boundaries, str):
        return _given_levels(boundaries)
    if boundaries not in BOUNDARIES:
        raise ValueError(f"boundaries is one of {', '.join(map(repr, BOUNDARIES))}, not {boundaries!r}")
    return BOUNDARIES[boundaries]


def _given_levels(levels: Sequence[BoundaryLevel]) -> tuple[BoundaryLevel, ...]:
    if isinstance(levels, BoundaryLevel) or not isinstance(levels, Iterable):
        raise TypeError(f"boundaries is a name or a sequence of BoundaryLevel, not {type(levels).__name__}")
    found = tuple(levels)
    for level in found:
        if not isinstance(level, BoundaryLevel):
            raise TypeError(
                f"boundaries is a name or a sequence of BoundaryLevel, not of {type(level).__name__}"
            )
        if not isinstance(level.pattern, re.Pattern) or not isinstance(level.pattern.pattern, bytes):
            raise TypeError(
                f"the pattern of a BoundaryLevel is a compiled one of bytes, not {level.pattern!r}"
            )
        if not isinstance(level.name, str):
            raise TypeError(f"the name of a BoundaryLevel is a str, not {type(level.name).__name__}")
        if not isinstance(level.hint, bytes):
            raise TypeError(f"the hint of a BoundaryLevel is bytes, not {type(level.hint).__name__}")
    return found
