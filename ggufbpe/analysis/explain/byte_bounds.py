"""Maps each position of a normalized word to the bytes of the text that it stands for.

Without normalization, a character stands for itself. If a change has as many characters as the text it replaces, each
stands for its counterpart; otherwise each stands for all of that text.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator

from ..._util.spelling import SPACE
from ..._util.utf8 import Offsets, byte_length, char_ends
from ...models.tracers.trace_types import RewrittenText, Word
from ...tokenizer.trace import Trace

Units = Callable[[str], str]  # `Tracer.by_position`


class ByteBounds:
    """Byte bounds in the text of the positions of words; those of the last word are cached."""

    def __init__(self, trace: Trace, by_position: Units) -> None:
        self._found = trace
        self._by_position = by_position
        self._word: Word | None = None
        self._bounds: list[tuple[int, int]] = []

    def of(self, word: Word, span: tuple[int, int]) -> tuple[int, int]:
        """Where the positions `span` of `word.written` begin and end, in bytes."""
        if self._found.stages:
            return _byte_at(self._found, word, span[0], False), _byte_at(self._found, word, span[1], True)
        if word is not self._word:
            self._word, self._bounds = word, []
            for char, start, end in _characters(self._found, word):
                self._bounds += _bounds_of_positions(start, end, len(self._by_position(char)))
        if not self._bounds[span[0] : span[1]]:
            return word.start, word.end
        return self._bounds[span[0]][0], self._bounds[span[1] - 1][1]


def _bounds_of_positions(start: int, end: int, count: int) -> list[tuple[int, int]]:
    """The bounds of each of `count` positions: a byte each, if there are as many bytes."""
    if end - start == count:
        return [(at, at + 1) for at in range(start, end)]
    return [(start, end)] * count


def _byte_at(trace: Trace, word: Word, inside: int, is_end: bool) -> int:
    """The byte of the text at a position, in characters or, in the byte-level alphabet, bytes."""
    ends = char_ends(trace.text[word.start : word.end])
    offsets = Offsets(word.text, [word.start, *(word.start + end for end in ends)])
    if word.written == word.text:
        inside = byte_length(word.text[:inside])
    return offsets.end(inside) if is_end else offsets.start(inside)


def changes_in(trace: Trace, start: int, end: int) -> Iterator[RewrittenText]:
    """The changes within a part of the text, and insertions at its beginning."""
    at = bisect_left(trace.changes, start, key=lambda change: change.end)
    for change in trace.changes[at:]:
        if change.start >= end:
            return
        if change.end > start or change.start == change.end == start:
            yield change


def rewritten(trace: Trace, start: int, end: int) -> list[tuple[str, int, int]]:
    """The characters that a part of the text becomes, each with the bytes that it stands for.

    Without the spaces around characters that stand alone, since they are in no word.
    """
    made: list[tuple[str, int, int]] = []
    at = start

    def unchanged(stop: int) -> None:
        first = at
        for char in trace.text[at:stop].decode("utf-8", "surrogateescape"):
            made.append((char, first, first := first + len(char.encode("utf-8", "surrogateescape"))))

    for change in changes_in(trace, start, end):
        unchanged(change.start)
        text = change.text.decode("utf-8", "surrogateescape")
        became = change.became.strip(" ") if "alone" in change.reasons else change.became
        first = change.start
        for number, char in enumerate(became):
            if len(text) == len(became):
                after = first + len(text[number].encode("utf-8", "surrogateescape"))
                made.append((char, first, after))
                first = after
            else:
                made.append((char, change.start, change.end))
        at = max(at, change.end)
    unchanged(end)
    return made


def _characters(trace: Trace, word: Word) -> Iterator[tuple[str, int, int]]:
    """The characters of `word.written`, each with the bytes of the text that it stands for."""
    made = rewritten(trace, word.start, word.end)
    text = "".join(char for char, _, _ in made)
    if SPACE + text == word.written:
        yield SPACE, word.start, word.start
    if text != word.written[-len(text) :] or len(word.written) - len(text) not in (0, len(SPACE)):
        made = [(char, word.start, word.end) for char in word.written]
    yield from made
