r"""Splits plain text into words by a registry entry: pre-tokenization in the reference engine.

llama.cpp runs the patterns of a list in order; each splits the pieces left by those before, sees nothing beyond the
piece, and keeps unmatched text as a piece (src/unicode.cpp, unicode_regex_split). Here this is done on a *collapsed*
text, in which

- ASCII stands for itself and every other code point is one marker character for all code points that the
  entry's patterns cannot tell apart: so a class is a handful of characters, a bitmap to Python's `re`;
- U+00FF separates pieces. No set of a pattern contains it, so a lookahead takes it for the end of the
  text, and one pass of `re.split` splits all pieces at once.

Everything is linear in the text. Five rules would not be linear in a backtracking matcher, or are not patterns
at all: they are steps, plain functions at the end of this file.

Words are merged in models/bpe/merge.py, and special tokens are found before this module is called.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from itertools import accumulate, compress
from operator import not_
from typing import NamedTuple

from ..._util.lazy import cached_property
from ..._util.unicode_classes import class_of
from .pattern import (
    CLASS_LETTERS,
    Ahead,
    Chars,
    CharSet,
    Choice,
    Node,
    Sequence,
    always_matches,
    char_sets,
    option_texts,
    options,
    parse,
)
from .registry import PreTokenizer, Stage

SEPARATOR = "\xff"
_MARKERS = range(0x80, 0xFF)
_MARKER_CACHE = 1 << 16  # code points; a text of all code points must not fill memory
_FINDALL_LIMIT = 1 << 24  # characters; a longer text is split lazily, not into one list


class Piece(NamedTuple):
    """`text[start:end]` after a stage, and the number of the alternative that took it; None if none did."""

    alternative: int | None
    start: int
    end: int


class Splitter:
    """Splits plain text by one registry entry.

    >>> from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS
    >>> Splitter(PRE_TOKENIZERS["gpt-2"]).words("I'll  go")
    ['I', "'ll", ' ', ' go']
    """

    def __init__(self, entry: PreTokenizer) -> None:
        self._entry = entry
        rules = [parse(stage.rule) for stage in entry.stages if stage.rule]
        self._alphabet = _Alphabet(dict.fromkeys(s for rule in rules for s in char_sets(rule)))
        *first, last = entry.stages
        self._stages = [self._compiled(stage) for stage in first]
        # Where the last pattern takes every character, `findall` gives the words, and skips separators.
        self._total = last.step is None and always_matches(parse(last.rule))
        if self._total:
            self._find = re.compile(self._alphabet.emit(parse(last.rule)))
        else:
            self._stages.append(self._compiled(last))

    def words(self, text: str) -> list[str]:
        """The words of `text`, in order; together they are the text."""
        return list(self.iterate(text))

    def iterate(self, text: str) -> Iterable[str]:
        """The words of `text`, lazily if the text is so long that a list would fill memory."""
        is_ascii = text.isascii()
        collapsed = text if is_ascii else self._alphabet.collapse(text)
        for split in self._stages:
            collapsed = split(collapsed)
        if not self._total:
            pieces = list(filter(None, collapsed.split(SEPARATOR)))
        elif len(collapsed) < _FINDALL_LIMIT:
            pieces = self._find.findall(collapsed)
        else:
            lazily = (match[0] for match in self._find.finditer(collapsed))
            return lazily if is_ascii else _restored_lazily(lazily, text)
        return pieces if is_ascii else _restored(pieces, text)

    def stages(self, text: str) -> list[list[Piece]]:
        """The pieces of `text` after each stage, for tracing; those after the last one are the words.

        Alternatives are counted from 0, as `option_texts` gives them for the stage's rule. The pieces of a step have
        alternative 0, unless its rule has several, which they then have.
        """
        collapsed = self._alphabet.collapse(text)
        pieces = [Piece(None, 0, len(text))] if text else []
        stages = []
        for parts_of in self._labelled:
            pieces = [
                Piece(alternative, start + first, start + last)
                for _, start, end in pieces
                for alternative, first, last in parts_of(collapsed[start:end])
            ]
            stages.append(pieces)
        return stages

    @cached_property
    def _labelled(self) -> list[Callable[[str], Iterator[Piece]]]:
        return [_labelled(self._alphabet, stage) for stage in self._entry.stages]

    def _compiled(self, stage: Stage) -> Callable[[str], str]:
        if stage.step is not None:
            return _STEPS[stage.step](self._alphabet, stage)
        split = re.compile(f"({self._alphabet.emit(parse(stage.rule))})").split
        return lambda text: SEPARATOR.join(split(text))


@cache
def splitter(entry: PreTokenizer) -> Splitter:
    """The splitter of an entry, compiled once."""
    return Splitter(entry)


def _labelled(alphabet: _Alphabet, stage: Stage) -> Callable[[str], Iterator[Piece]]:
    """The pieces that a stage makes of one collapsed piece, with the alternative that took each."""
    groups = (f"({alphabet.emit(parse(text))})" for text in option_texts(stage.rule))
    pattern = re.compile("|".join(groups))

    def matched(text: str) -> Iterator[Piece]:
        end = 0
        for match in pattern.finditer(text):
            if end < match.start():
                yield Piece(None, end, match.start())
            end = match.end()
            yield Piece((match.lastindex or 0) - 1, match.start(), end)
        if end < len(text):
            yield Piece(None, end, len(text))

    if stage.step is None:
        return matched
    cut = _STEPS[stage.step](alphabet, stage)
    by_beginning = stage.step == "letters_joined_by_spaces"  # where the alternative shows; else at the end

    def parted(text: str) -> Iterator[Piece]:
        end = 0
        for part in filter(None, cut(text).split(SEPARATOR)):
            start, end = end, end + len(part)
            match = pattern.match(text, start if by_beginning else end - 1) if stage.pattern else None
            yield Piece((match.lastindex or 0) - 1 if match else None, start, end)

    return parted


def _restored(pieces: list[str], text: str) -> list[str]:
    """`pieces` of the collapsed text as words of the original text; ASCII pieces already are."""
    ends = list(accumulate(map(len, pieces)))
    for index in compress(range(len(pieces)), map(not_, map(str.isascii, pieces))):
        pieces[index] = text[ends[index] - len(pieces[index]) : ends[index]]
    return pieces


def _restored_lazily(pieces: Iterable[str], text: str) -> Iterator[str]:
    start = 0
    for piece in pieces:
        end = start + len(piece)
        yield text[start:end]
        start = end


class _Alphabet(dict[int, int]):
    """The collapsed alphabet of one entry; a dictionary, as the table for `str.translate`."""

    def __init__(self, sets: Iterable[CharSet]) -> None:
        super().__init__()
        self._sets = tuple(sets)
        self._markers: dict[tuple[bool, ...], int] = {}
        ranges = [r for s in self._sets for term in s.terms for r in term.ranges]
        # Every membership that a non-ASCII code point can have, tried at one point of each interval between the
        # borders of ranges. A class that no code point there has costs a marker and does no harm.
        points = {0x80, 0x110000} | {p for low, high in ranges for p in (low, high + 1) if p > 0x7F}
        self._points = sorted(points)
        self._by_place: dict[tuple[int, str], int] = {}  # the marker of a class in an interval, by its number
        for interval, point in enumerate(self._points):
            for letter in CLASS_LETTERS:
                signature = tuple(s.contains_in_class(point, letter) for s in self._sets)
                marker = self._markers.setdefault(signature, _MARKERS[len(self._markers)])
                self._by_place[interval, letter] = marker
        self._collapse = re.compile(r"[^\0-\x7f]+").sub

    def collapse(self, text: str) -> str:
        """`text` with a marker for each code point beyond ASCII; as many characters as before."""
        return self._collapse(lambda run: run[0].translate(self), text)

    def __missing__(self, code_point: int) -> int:
        if len(self) >= _MARKER_CACHE:
            self.clear()
        interval = bisect_right(self._points, code_point) - 1
        marker = self._by_place[interval, class_of(code_point)]
        self[code_point] = marker
        return marker

    def bracket(self, chars: CharSet) -> str:
        """`chars` as a bracket expression over the collapsed alphabet."""
        members = set(_ascii_members(chars))
        index = self._sets.index(chars)
        members |= {marker for signature, marker in self._markers.items() if signature[index]}
        inside = "".join(f"\\x{first:02x}-\\x{last:02x}" for first, last in _runs(sorted(members)))
        return f"[{inside}]" if inside else r"[^\0-\xff]"

    def emit(self, node: Node) -> str:
        """The equivalent pattern for Python's `re` on collapsed text."""
        if isinstance(node, Chars):
            return self.bracket(node.set)
        if isinstance(node, Sequence):
            return "".join(self.emit(item) for item in node.items)
        if isinstance(node, Choice):
            return f"(?:{'|'.join(self.emit(option) for option in node.options)})"
        if isinstance(node, Ahead):
            return f"(?{'!' if node.negated else '='}{self.emit(node.item)})"
        item = self.emit(node.item)
        counts = {(0, 1): "?", (0, None): "*", (1, None): "+"}
        count = counts.get((node.least, node.most)) or f"{{{node.least},{node.most}}}"
        return (item if isinstance(node.item, Chars) else f"(?:{item})") + count


def _runs(numbers: list[int]) -> list[tuple[int, int]]:
    """Return the first and the last of each run of consecutive numbers, which are ascending.

    >>> _runs([1, 2, 3, 7])
    [(1, 3), (7, 7)]
    """
    firsts = [number for number, before in zip(numbers, [None, *numbers]) if number - 1 != before]
    lasts = [number for number, behind in zip(numbers, [*numbers[1:], None]) if number + 1 != behind]
    return list(zip(firsts, lasts))


@cache
def _ascii_members(chars: CharSet) -> frozenset[int]:
    """The ASCII code points in a set; many patterns have the same sets."""
    return frozenset(point for point in range(128) if chars.contains(point))


# ---- steps: rules that are not patterns, or not linear as one -------------------------------------------


def _in_threes(alphabet: _Alphabet, stage: Stage, *, whole: bool) -> Callable[[str], str]:
    r"""Cut runs of digits into threes from the right; if `whole`, also where a run ends, and not where it begins.

    Digit groups are `whole`: "ab1234c" becomes "ab1", "234", "c" (src/unicode.cpp: unicode_regex_split_custom_afmoe).
    Thousands are what `(?=(\d{3})+(?!\d))` cuts, which looks ahead to the end of the run from every digit.
    """
    digits = re.compile(f"{alphabet.emit(parse(stage.rule))}")

    def cut(match: re.Match[str]) -> str:
        run = match[0]
        first = len(run) % 3 or 3 * whole
        return SEPARATOR.join(
            [run[:first], *(run[i : i + 3] for i in range(first, len(run), 3)), *[""] * whole]
        )

    return lambda text: digits.sub(cut, text)


def _trailing_white_space(alphabet: _Alphabet, stage: Stage) -> Callable[[str], str]:
    r"""Cut off the white space at the end of each piece: `\s+$`, tried only where a run of it begins."""
    space = alphabet.emit(parse(stage.rule))
    split = re.compile(rf"((?<!{space}){space}+(?={SEPARATOR}|\Z))").split
    return lambda text: SEPARATOR.join(split(text))


def _blocks_of_white_space(alphabet: _Alphabet, stage: Stage) -> Callable[[str], str]:
    r"""Cut long runs of white space as the pattern of the next stage would, in blocks of 512.

    That pattern first tries `\s*[\r\n]+`, which scans the whole run for a line break, and then takes 512 characters:
    quadratic in the length of the run. A run that no line break follows is a series of such blocks while more than
    512 remain, and begins a word.
    """
    blank, space = (alphabet.emit(option) for option in options(parse(stage.rule)))
    runs = re.compile(f"(?<!{blank}){blank}{{1025,}}(?!{space})")

    def cut(match: re.Match[str]) -> str:
        run = match[0]
        return SEPARATOR.join(["", *(run[i : i + 512] for i in range(0, len(run), 512))])

    return lambda text: runs.sub(cut, text)


def _letters_joined_by_spaces(alphabet: _Alphabet, stage: Stage) -> Callable[[str], str]:
    r"""Split by the stage's rule, then join words of letters separated by a single space.

    Does what `(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+` does, for which a backtracking matcher remembers every iteration of
    both loops: ten million letters fill memory.
    """
    find = re.compile(alphabet.emit(parse(stage.rule))).findall
    is_contraction = re.compile(alphabet.emit(options(parse(stage.rule))[0])).fullmatch
    letter = alphabet.emit(parse(r"\p{L}"))
    has_letters = re.compile(rf"{letter}|[\0-\xff]{letter}").match
    continues = re.compile(f" {letter}").match

    def join(text: str) -> str:
        parts: list[str] = []
        open_word = False  # whether the previous word can continue
        for word in find(text):
            if not (open_word and continues(word)):
                parts.append(SEPARATOR)
                open_word = has_letters(word) is not None and is_contraction(word) is None
            parts.append(word)
        return "".join(parts)

    return join


_STEPS: dict[str, Callable[[_Alphabet, Stage], Callable[[str], str]]] = {
    "digit_groups": partial(_in_threes, whole=True),
    "thousands": partial(_in_threes, whole=False),
    "trailing_white_space": _trailing_white_space,
    "blocks_of_white_space": _blocks_of_white_space,
    "letters_joined_by_spaces": _letters_joined_by_spaces,
}
