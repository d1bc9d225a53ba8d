"""Where a piece stands in a text that is traced, and the step that is the reason at each place.

    Trace -> [this file] -> reasons.py -> search.py

That a piece forms is decided within it: as long as no merge takes a part of it together with what is outside,
its own symbols merge as they would alone. So the merges of the piece alone are the ones to compare with.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from .. import utf8
from ..models.bpe.merge import BYTE_CHARS
from ..models.steps import Merge, Word
from ..spelling import escape_spaces
from ..utf8 import Offsets, byte_length
from .reasons import Place
from .trace import Trace

if TYPE_CHECKING:
    from ..tokenizer import Tokenizer

_QUOTED = 200  # bytes of a piece that a stage made


def written_form(tokenizer: Tokenizer, text: str) -> str:
    """`text` as merging sees it."""
    entry = tokenizer.vocabulary.pre_tokenizer
    if not entry.byte_encode:
        return escape_spaces(text) if entry.escape_whitespaces else text
    return text.encode("utf-8", "surrogateescape").decode("latin-1").translate(BYTE_CHARS)


class Run(NamedTuple):
    """Text as merging sees it, without a gap. A unit of it is a word, or a fragment that is one token."""

    text: str
    units: list[tuple[int, int, int | None, int]]  # (start, end, word or None, fragment)


def runs_of(tokenizer: Tokenizer, found: Trace) -> Iterator[Run]:
    """The runs of the text; what is dropped ends one."""
    words: dict[int, list[int]] = {}
    for number, word in enumerate(found.words):
        words.setdefault(word.fragment, []).append(number)
    parts: list[str] = []
    units: list[tuple[int, int, int | None, int]] = []
    end = 0
    for index, fragment in enumerate(found.fragments):
        if fragment.kind == "dropped":
            yield Run("".join(parts), units)
            parts, units, end = [], [], 0
        elif fragment.kind == "text":
            for number in words[index]:
                written = found.words[number].written
                units.append((end, end + len(written), number, index))
                parts.append(written)
                end += len(written)
        elif fragment.start < fragment.end:
            data = found.text[fragment.start : fragment.end]
            written = written_form(tokenizer, data.decode("utf-8", "replace"))
            units.append((end, end + len(written), None, index))
            parts.append(written)
            end += len(written)
    yield Run("".join(parts), units)


def places_of(
    tokenizer: Tokenizer, found: Trace, runs: list[Run], written: str, own: tuple[Merge, ...] | None
) -> Iterator[Place]:
    """The places where `written` stands, each with its reason; `own` are the merges that make it."""
    for run in runs:
        at = run.text.find(written)
        unit = 0
        while at >= 0:
            while run.units[unit][1] <= at:
                unit += 1
            last = unit
            while run.units[last][1] < at + len(written):
                last += 1
            yield _place(tokenizer, found, run, (unit, last), (at, at + len(written)), own)
            at = run.text.find(written, at + 1)


def _place(
    tokenizer: Tokenizer,
    found: Trace,
    run: Run,
    units: tuple[int, int],
    span: tuple[int, int],
    own: tuple[Merge, ...] | None,
) -> Place:
    touched = run.units[units[0] : units[1] + 1]
    start = _byte_at(found, touched[0], span[0], False)
    end = _byte_at(found, touched[-1], span[1], True)
    for _, _, word, fragment in touched:
        if word is None:
            token = found.fragments[fragment].token
            text = "" if token is None else tokenizer.id_to_token(token)
            return Place("special", start, end, token=token, text=text)
    (first, _, word, _), *others = touched
    assert word is not None
    if others:
        return _cut_by(found, word, start, end)
    return _in_word(found.words[word], (span[0] - first, span[1] - first), own)._replace(
        start=start, end=end, word=word, text=found.words[word].text
    )


def _byte_at(found: Trace, unit: tuple[int, int, int | None, int], at: int, is_end: bool) -> int:
    """The byte of the text at the position `at` of a run, which lies in `unit`."""
    first, _, number, index = unit
    if number is None:
        return min(found.fragments[index].start + at - first, found.fragments[index].end)
    word = found.words[number]
    ends = utf8.char_ends(found.text[word.start : word.end])
    offsets = Offsets(word.text, [word.start, *(word.start + end for end in ends)])
    inside = at - first  # characters, which are bytes where the word is written in the byte-level alphabet
    if word.written == word.text:
        inside = byte_length(word.text[:inside])
    return offsets.end(inside) if is_end else offsets.start(inside)


def _cut_by(found: Trace, word: int, start: int, end: int) -> Place:
    """The boundary between `word` and the next: the first stage that made it."""
    before, after = found.words[word], found.words[word + 1]
    for left, right in zip(before.cuts, after.cuts):
        if left.end <= right.start:
            sides = (
                _end_of(found.text[left.start : left.end]),
                _beginning_of(found.text[right.start : right.end]),
            )
            return Place("boundary", start, end, word, boundary=before.end, cuts=(left, right), sides=sides)
    raise AssertionError("two words that no stage parts")


def _end_of(data: bytes) -> bytes:
    """The end of a long piece, and all of another."""
    at = len(data) - _QUOTED
    while at > 0 and data[at] & 0xC0 == 0x80:  # within a character
        at += 1
    return data if at <= 0 else "…".encode() + data[at:]


def _beginning_of(data: bytes) -> bytes:
    at = _QUOTED
    while at < len(data) and data[at] & 0xC0 == 0x80:
        at += 1
    return data[:at] + "…".encode() * (at < len(data))


def _in_word(word: Word, span: tuple[int, int], own: tuple[Merge, ...] | None) -> Place:
    """The reason of a piece at the characters `span` of the word as it is written."""
    if word.whole is not None:
        return Place("whole", 0, 0, whole=word.whole)
    if own is None:
        return Place("merges", 0, 0)
    start, end = span
    done = 0  # of the piece's own merges
    for step in word.merges:
        first, last = step.position, step.position + len(step.left) + len(step.right)
        if last <= start or first >= end:
            continue
        if start <= first and last <= end:
            done += 1
        elif done < len(own):
            return Place("part", 0, 0, merge=step, needed=own[done])
        else:
            return Place("longer", 0, 0, merge=step)
    return Place("produced", 0, 0)
