"""Finds where a piece stands in a traced text, and the step that is the reason at each place.

Whether a piece forms by merging is decided within it: as long as no merge joins a part of it to what is outside, its
own symbols merge as they would alone. So the merges of the piece alone are the ones to compare with. With longest
matches, the match that covers the beginning of the piece decides; in a lattice, the best path through the piece is
compared with the path taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ..._util.spelling import unescape_spaces
from ..._util.utf8 import original_bytes
from ...models.tracers.trace_types import Merge, TokenMatch, Tracer, Word, best_path_with
from ...tokenizer.trace import Trace
from .byte_bounds import ByteBounds, changes_in, rewritten
from .reasons import Place

if TYPE_CHECKING:
    from ...tokenizer import Tokenizer

_QUOTED = 200  # bytes shown of a piece that a stage made
_CHANGES = 20  # shown at a normalized place
_COMPARED, _MANY_EDGES = 5, 1 << 12  # places whose paths are compared, in a word of so many edges


class Sought(NamedTuple):
    """The token to look for, as it is looked up, and its own merges if it is made only by merging."""

    token: int
    looked_up: str
    own: tuple[Merge, ...] | None


class Run(NamedTuple):
    """Text as it is looked up, without gaps. A unit of it is a word, or a fragment that is one token."""

    text: str  # a character for each position
    units: list[tuple[int, int, int | None, int]]  # (start, end, word or None, fragment)


def symbol_runs(tracer: Tracer, trace: Trace) -> Iterator[Run]:
    """The runs of the text; dropped text ends one."""
    words: dict[int, list[int]] = {}
    for number, word in enumerate(trace.words):
        words.setdefault(word.fragment, []).append(number)
    parts: list[str] = []
    units: list[tuple[int, int, int | None, int]] = []
    end = 0

    def add(written: str, word: int | None, fragment: int) -> None:
        nonlocal end
        parts.append(tracer.by_position(written))
        units.append((end, end + len(parts[-1]), word, fragment))
        end += len(parts[-1])

    for index, fragment in enumerate(trace.fragments):
        if fragment.kind == "dropped":
            yield Run("".join(parts), units)
            parts, units, end = [], [], 0
        elif fragment.kind == "text":
            for number in words.get(index, ()):
                add(trace.words[number].written, number, index)
        elif fragment.start < fragment.end:
            data = trace.text[fragment.start : fragment.end]
            add(tracer.written(data.decode("utf-8", "replace")), None, index)
    yield Run("".join(parts), units)


def find_places(
    tokenizer: Tokenizer, tracer: Tracer, trace: Trace, runs: list[Run], piece: Sought
) -> Iterator[Place]:
    """The places where the piece stands, each with its reason."""
    written = tracer.by_position(piece.looked_up)
    bounds = ByteBounds(trace, tracer.by_position)
    places: set[tuple[int, int]] = set()
    for run in runs:
        at = run.text.find(written)
        unit = 0
        while at >= 0:
            while run.units[unit][1] <= at:
                unit += 1
            last = unit
            while run.units[last][1] < at + len(written):
                last += 1
            span = at, at + len(written)
            place = _place(
                tokenizer,
                tracer,
                bounds,
                trace,
                run.units[unit : last + 1],
                span,
                piece,
                len(places) < _COMPARED,
            )
            if place is not None:
                places.add((place.start, place.end))
                yield place
            at = run.text.find(written, at + 1)
    if trace.changes:
        yield from (place for place in _normalized(trace, piece) if (place.start, place.end) not in places)


def _place(
    tokenizer: Tokenizer,
    tracer: Tracer,
    bounds: ByteBounds,
    trace: Trace,
    touched: list[tuple[int, int, int | None, int]],
    span: tuple[int, int],
    piece: Sought,
    is_compared: bool,
) -> Place | None:
    start, end = _byte_span(bounds, trace, touched, span)
    for _, _, number, fragment in touched:
        if number is None:
            token = trace.fragments[fragment].token
            text = "" if token is None else tokenizer.id_to_token(token)
            return Place("special", start, end, token=token, text=text)
    (first, _, number, _), *others = touched
    assert number is not None
    if others and tracer.splits:
        return _cut_by(trace, number, start, end)
    word = trace.words[number]
    inside = span[0] - first, span[1] - first
    if not tracer.is_for_text(piece.token):
        place: Place | None = Place("not_for_text", start, end)
    elif word.matches:
        place = _in_matches(word, inside[0], piece)
    elif word.lattice is not None:
        place = _in_lattice(word, inside, piece, is_compared)
    else:
        place = _in_word(word, inside, piece.own)
    return place and place._replace(start=start, end=end, word=number, text=word.text)


def _byte_span(
    bounds: ByteBounds, trace: Trace, touched: list[tuple[int, int, int | None, int]], span: tuple[int, int]
) -> tuple[int, int]:
    """The bytes of the text that stand for a part of a run."""
    ends: list[int] = []
    for first, stop, number, index in (touched[0], touched[-1]):
        inside = max(span[0], first) - first, min(span[1], stop) - first
        if number is None:
            fragment = trace.fragments[index]
            ends += (min(fragment.start + at, fragment.end) for at in inside)
        else:
            ends += bounds.of(trace.words[number], inside)
    return ends[0], ends[-1]


def _cut_by(trace: Trace, word: int, start: int, end: int) -> Place:
    """The boundary between `word` and the next, and the first stage that made it, where stages do."""
    before, after = trace.words[word], trace.words[word + 1]
    for left, right in zip(before.cuts, after.cuts):
        if left.end <= right.start:
            sides = (
                _end_of(trace.text[left.start : left.end]),
                _beginning_of(trace.text[right.start : right.end]),
            )
            return Place("boundary", start, end, word, boundary=before.end, cuts=(left, right), sides=sides)
    return Place("boundary", start, end, word, boundary=before.end)


def _end_of(data: bytes) -> bytes:
    """The end of a long piece, all of a short one."""
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
    done = 0  # how many of the piece's own merges
    for step in word.merges:
        first, last = step.position, step.position + len(step.left) + len(step.right)
        if last <= start or first >= end:
            continue
        if start <= first and last <= end:
            done += 1
        elif done < len(own):
            taken = max(first, start) - start, min(last, end) - start
            return Place("part", 0, 0, merge=step, needed=_needing(taken, own[done:]))
        else:
            return Place("longer", 0, 0, merge=step)
    return Place("produced", 0, 0)


def _needing(taken: tuple[int, int], own: tuple[Merge, ...]) -> Merge:
    """The first of a piece's own merges that needs the characters `taken`, or one of a higher rank before that."""
    index, needing = next((at, step) for at, step in enumerate(own) if _overlaps(step, taken))
    span = needing.position, needing.position + len(needing.left) + len(needing.right)
    awaited = [step for step in own[:index] if _overlaps(step, span)]
    return max([needing, *awaited], key=lambda step: step.rank)


def _overlaps(merge: Merge, span: tuple[int, int]) -> bool:
    """Whether a merge joins any of the characters `span`."""
    return merge.position < span[1] and span[0] < merge.position + len(merge.left) + len(merge.right)


def _in_matches(word: Word, at: int, piece: Sought) -> Place:
    """The reason of a piece at a position of a word made of longest matches."""
    failed = word.matches[-1] if word.matches[-1].taken is None else None
    if failed is not None and len(word.symbols) == 1:
        return Place("unknown_word", 0, 0, match=failed, rest=original_bytes(word.written)[failed.position :])
    match = next(each for each in reversed(word.matches) if each.position <= at)
    if match.position < at:
        return Place("earlier_match", 0, 0, match=match)
    is_longer = match.taken is not None and match.tried[-1].length > _length(match, piece)
    return Place("longer_match", 0, 0, match=match) if is_longer else Place("produced", 0, 0)


def _length(match: TokenMatch, piece: Sought) -> int:
    """The length of the piece in bytes where it is tried; if another token of the same text hides it, the longest."""
    tried = (each.length for each in match.tried if each.token == piece.token)
    return next(tried, match.tried[-1].length)


def _in_lattice(word: Word, span: tuple[int, int], piece: Sought, is_compared: bool) -> Place | None:
    """The reason of a piece in a lattice; None if the span begins inside a character, where no token begins.

    If an edge is not taken, no path through it is better; finding the best such path takes time linear in the word.
    """
    assert word.lattice is not None
    edge = piece.token, span[0], span[1] - span[0]
    stands = any((each.token, each.position, each.length) == edge for each in word.lattice.edges)
    if not stands:
        is_character = any(each.position == span[0] for each in word.lattice.edges)
        return Place("not_tried", 0, 0) if is_character else None
    if not is_compared and len(word.lattice.edges) > _MANY_EDGES:
        return Place("path", 0, 0)
    path = best_path_with(word.lattice, *edge)
    if path is None:
        return None
    if path.edges == word.lattice.best.edges:
        return Place("produced", 0, 0)
    return Place("path", 0, 0, path=path, best=word.lattice.best)


def _normalized(trace: Trace, piece: Sought) -> Iterator[Place]:
    """Where the text has the piece and normalization changed it."""
    text = unescape_spaces(piece.looked_up)
    data = (text.lstrip(" ") or text).encode("utf-8", "surrogateescape")
    at = trace.text.find(data)
    while at >= 0:
        end = at + len(data)
        changes = [change for change in changes_in(trace, at, end) if change.start < change.end]
        became = "".join(char for char, _, _ in rewritten(trace, at, end))
        is_text = any(each.start <= at < each.end and each.kind == "text" for each in trace.fragments)
        if changes and is_text and unescape_spaces(became).strip(" ") != text.strip(" "):
            yield Place("normalized", at, end, changes=tuple(changes[:_CHANGES]))
        at = trace.text.find(data, at + 1)
