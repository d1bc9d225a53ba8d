"""Traces a long text part by part, so that memory does not grow with the text: `explain --all`, `explain --json`.

A text is divided where no word and no id can change (tokenizer/chunking.py). What continues across a border is put
together again: a fragment, and a piece that one stage left over and a later stage splits there. A stretch that
chunking.py does not divide is one part.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from ..._util.lazy import cached_property
from ...models.tracers.trace_types import Cut, Fragment
from ...tokenizer.chunking import chunks_of_stream, ids_of_chunks
from ...tokenizer.trace import Part, Totals, Trace, trace_part, traced_parts, tracer_of
from .survey import Wanted, survey

if TYPE_CHECKING:
    from ...tokenizer import Tokenizer

_SIZE = 1 << 14  # bytes of a part; traced, it takes a thousand times as much
_CLIPPED = 1 << 11  # bytes of a fragment that are kept


class Parts:
    """The parts of a text, which can be iterated repeatedly; at least one. `file` is read each time."""

    def __init__(
        self, tokenizer: Tokenizer, file: IO[bytes], *, add_special: bool = True, parse_special: bool = True
    ) -> None:
        self.tokenizer = tokenizer
        self.flags: dict[str, Any] = {"add_special": add_special, "parse_special": parse_special}
        self.file = file
        self._added = tokenizer.vocabulary.added if add_special else ([], [])

    @property
    def parts(self) -> Iterator[Part]:
        """All of them, in order; their cuts are those of the whole text."""
        if len(self.model.stages) < 2:  # with one stage, every piece ends where a word does
            yield from self._traced()
            return
        for part, (starts, ends) in zip(self._traced(), self._edges):
            yield Part(part.before, _with_edges(part, starts, ends))

    @cached_property
    def model(self) -> Trace:
        """A trace of no text, with the model's name and its stages."""
        return trace_part(self.tokenizer, b"", **self.flags, begins=False, ends=False)

    @cached_property
    def totals(self) -> Totals:
        """The totals of the whole text."""
        self.file.seek(0)
        return survey(self.tokenizer, self.file, Wanted(), **self.flags, fragments=0).totals

    @property
    def text(self) -> Iterator[bytes]:
        """The text in chunks whose words and ids are those of the whole text, each encoded by itself."""
        self.file.seek(0)
        return chunks_of_stream(self.file, [self.tokenizer], self.flags["parse_special"], _SIZE)

    @property
    def ids(self) -> Iterator[list[int]]:
        """The ids, in lists."""
        yield self._added[0]
        yield from ids_of_chunks(self.tokenizer, self.text, self.flags["parse_special"])
        yield self._added[1]

    @property
    def fragments(self) -> Iterator[tuple[Fragment, bytes]]:
        """All fragments, each with its first bytes."""
        last: Fragment | None = None
        head = b""
        for part in self._traced():
            at = part.before.bytes
            for fragment in part.trace.fragments:
                data = part.trace.text[fragment.start : fragment.end][:_CLIPPED]
                fragment = fragment._replace(start=at + fragment.start, end=at + fragment.end)
                if fragment == last and fragment.start < fragment.end:  # it is in both parts
                    continue
                if last is not None and _continues_fragment(last, fragment):
                    last = last._replace(end=fragment.end)
                    head += data[: _CLIPPED - len(head)]
                    continue
                if last is not None:
                    yield last, head
                last, head = fragment, data
        if last is not None:
            yield last, head

    def _traced(self) -> Iterator[Part]:
        tracer = tracer_of(self.tokenizer)
        parts_of_words = not tracer.stages  # otherwise a chunk is a part
        before, last = Totals(), None
        for chunk, is_first, is_last in _with_ends(self.text):
            count = Totals()
            for start, trace in traced_parts(
                self.tokenizer,
                chunk,
                **self.flags,
                begins=is_first,
                ends=is_last,
                tracer=tracer,
                is_enough=lambda size: parts_of_words and size.bytes >= _SIZE,
            ):
                if (
                    last is not None
                    and start == Totals()
                    and trace.fragments
                    and _continues_fragment(last, trace.fragments[0])
                ):
                    before = before._replace(fragments=before.fragments - 1)
                yield Part(before + start, trace)
                count = start + Totals(len(chunk), len(trace.words), len(trace.tokens), len(trace.fragments))
                last = trace.fragments[-1] if trace.fragments else None
            before += count

    @cached_property
    def _edges(self) -> list[tuple[dict[int, int], dict[int, Cut]]]:
        """For each part, by stage: where its first piece begins, if earlier, and the cut that ends its last piece.

        The cut comes with its alternative, which is known only at a piece's end.
        """
        sides = [_sides(part) for part in self._traced()]
        starts: list[dict[int, int]] = [{} for _ in sides]
        ends: list[dict[int, Cut]] = [{} for _ in sides]
        for at in range(1, len(sides)):
            for stage in range(self._joined(sides[at - 1], sides[at])):
                cut = sides[at - 1].last[stage]
                reaches = cut.start == sides[at - 1].start
                starts[at][stage] = starts[at - 1].get(stage, cut.start) if reaches else cut.start
        for at in reversed(range(1, len(sides))):
            for stage in range(self._joined(sides[at - 1], sides[at])):
                cut = sides[at].first[stage]
                ends[at - 1][stage] = ends[at].get(stage, cut) if cut.end == sides[at].end else cut
        return list(zip(starts, ends))

    def _joined(self, left: _Sides, right: _Sides) -> int:
        """How many stages, from the first on, have one piece across the cut between two parts.

        What a stage does not match continues there; what it matches does not, except groups of digits, which stay with
        the text before them.
        """
        count = 0
        for stage, before, after in zip(self.model.stages, left.last, right.first):
            goes_on = after.alternative is None or stage.step == "digit_groups"
            if before.alternative is not None or not goes_on:
                break
            count += 1
        return count


class _Sides(NamedTuple):
    """A part from `start` to `end`, and the cuts of its first and last word if it begins and ends with text."""

    start: int
    end: int
    first: tuple[Cut, ...]
    last: tuple[Cut, ...]


def _sides(part: Part) -> _Sides:
    at, trace = part.before.bytes, part.trace

    def moved(cuts: tuple[Cut, ...]) -> tuple[Cut, ...]:
        return tuple(cut._replace(start=at + cut.start, end=at + cut.end) for cut in cuts)

    first = moved(trace.words[0].cuts) if trace.words and trace.words[0].start == 0 else ()
    is_end = trace.words and trace.words[-1].end == len(trace.text)
    return _Sides(at, at + len(trace.text), first, moved(trace.words[-1].cuts) if is_end else ())


def _with_edges(part: Part, starts: dict[int, int], ends: dict[int, Cut]) -> Trace:
    """The trace with pieces that extend beyond the part at their full length."""
    at, trace = part.before.bytes, part.trace
    last = len(trace.text)

    def whole(cut: Cut) -> Cut:
        if cut.start == 0 and cut.stage in starts:
            cut = cut._replace(start=starts[cut.stage] - at)
        if cut.end == last and cut.stage in ends:
            end = ends[cut.stage]
            cut = cut._replace(end=end.end - at, alternative=end.alternative)
        return cut

    if not (starts or ends):
        return trace
    words = (word._replace(cuts=tuple(map(whole, word.cuts))) for word in trace.words)
    return trace._replace(words=tuple(words))


def _continues_fragment(last: Fragment, fragment: Fragment) -> bool:
    """Whether a fragment continues the one before it, which ends where a part does."""
    return last.kind == fragment.kind in ("text", "dropped") and last.dropped_by == fragment.dropped_by


def _with_ends(pieces: Iterator[bytes]) -> Iterator[tuple[bytes, bool, bool]]:
    """Each chunk, and whether it is the first and the last; one empty chunk if there is none."""
    chunk, is_first = next(pieces, b""), True
    for following in pieces:
        yield chunk, is_first, False
        chunk, is_first = following, False
    yield chunk, is_first, True
