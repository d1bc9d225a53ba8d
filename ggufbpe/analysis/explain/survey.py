"""Counts a long text and traces only the part that is looked at, so that the rest takes neither time nor memory.

A text is divided where no word and no id can change (tokenizer/chunking.py), so the trace of a part has the words and
tokens of the whole trace; positions and numbers are offset by what comes before.

Byte pair encoding in the reference engine, DNA models and models that drop white space trace the whole text. Models
without patterns do too, word by word.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ...models.tracers.trace_types import Fragment, Tracer
from ...tokenizer.chunking import chunks_of_stream, read_all
from ...tokenizer.token_offsets import chunks_add_up
from ...tokenizer.trace import Part, Totals, Trace, added_to, stripped_by, trace_part, traced_parts, tracer_of

if TYPE_CHECKING:
    from ...tokenizer import Tokenizer

_PART = 1 << 11  # bytes: a traced part is about this large


class Wanted(NamedTuple):
    """What to trace: the beginning, with so many words and tokens, or the part that has one of them."""

    words: int = 0
    tokens: int = 0
    word: int | None = None
    token: int | None = None


class UntraceableError(ValueError):
    """What would have to be traced at once is longer than the caller allows."""


class Survey(NamedTuple):
    """A text counted and traced in part; `fragments` are the first ones of the whole text, with their first bytes."""

    totals: Totals
    fragments: list[tuple[Fragment, bytes]]
    before: Totals  # what comes before the traced part
    trace: Trace  # positions and numbers are relative to the part

    @property
    def parts(self) -> list[Part]:
        """The traced part, alone in a list."""
        return [Part(self.before, self.trace)]

    @property
    def model(self) -> Trace:
        """A trace with the model's name and its stages."""
        return self.trace


def survey_whole(trace: Trace) -> Survey:
    """The survey of a text that is traced as a whole."""
    totals = Totals(len(trace.text), len(trace.words), len(trace.tokens), len(trace.fragments))
    fragments = [(each, trace.text[each.start : each.end]) for each in trace.fragments]
    return Survey(totals, fragments, Totals(), trace)


def survey(
    tokenizer: Tokenizer,
    stream: Any,
    wanted: Wanted,
    *,
    add_special: bool = True,
    parse_special: bool = True,
    fragments: int = 20,
    clipped: int = 1 << 11,
    most: int | None = None,
) -> Survey:
    """Count the text of a binary stream and trace what is wanted of it.

    Of each of the first `fragments` fragments, up to `clipped` bytes are kept. If the wanted word or token does not
    exist, the part is empty. `UntraceableError` where more than `most` bytes would have to be traced, the whole text
    where it cannot be cut.
    """
    tracer = tracer_of(tokenizer)
    flags = {"add_special": add_special, "parse_special": parse_special}
    if not tracer.stages:
        text = _bounded(read_all(stream), most)
        return _survey_of_words(tokenizer, text, wanted, flags, fragments, clipped)
    if not chunks_add_up(tokenizer):
        text = _bounded(read_all(stream), most)
        return survey_whole(tokenizer.trace(text, **flags))
    counter = Counter(tokenizer, parse_special, fragments, clipped)
    before_all, behind_all = added_to(tokenizer) if add_special else ([], [])
    for kind, token in before_all:
        counter.add_token(kind, token)
    first_tokens = counter.totals.tokens
    part: list[bytes] = []
    before = Totals()
    is_done = False
    for chunk in chunks_of_stream(stream, [tokenizer], parse_special):
        pieces: Iterable[bytes] = [chunk]
        if not is_done:
            pieces = chunks_of_stream(io.BytesIO(chunk), [tokenizer], parse_special, size=_PART)
        for piece in pieces:
            start = counter.totals
            counter.add(piece)
            if not is_done and _has(wanted, start, counter.totals):
                before = before if part else start
                part.append(piece)
                is_done = _is_enough(wanted, counter.totals)
    is_first = before.tokens <= first_tokens and before.bytes == 0
    for kind, token in behind_all:
        if wanted.token == counter.totals.tokens:
            part, before, is_first = [], counter.totals, counter.totals.tokens == first_tokens
        counter.add_token(kind, token)
    is_last = before.bytes + sum(map(len, part)) == counter.totals.bytes
    traced = trace_part(
        tokenizer,
        _bounded(b"".join(part), most),
        parse_special,
        add_special=add_special,
        begins=is_first,
        ends=is_last,
        tracer=tracer,
    )
    return Survey(counter.totals, counter.fragments, Totals() if is_first else before, traced)


def _bounded(part: bytes, most: int | None) -> bytes:
    if most is not None and len(part) > most:
        raise UntraceableError(
            f"{len(part)} bytes would have to be traced together; the limit is {most}: give a shorter text"
        )
    return part


def _survey_of_words(
    tokenizer: Tokenizer, text: bytes, wanted: Wanted, flags: dict[str, bool], fragments: int, clipped: int
) -> Survey:
    """The survey of a text traced word by word as far as wanted; the rest is only counted."""
    tracer = tracer_of(tokenizer)
    counter = Counter(tokenizer, flags["parse_special"], fragments, clipped, tracer)
    prefix_ids, suffix_ids = added_to(tokenizer) if flags["add_special"] else ([], [])
    for kind, token in prefix_ids:
        counter.add_token(kind, token)
    counter.add(text)
    for kind, token in suffix_ids:
        counter.add_token(kind, token)
    is_one = wanted.word is not None or wanted.token is not None

    def is_enough(size: Totals) -> bool:
        return size.bytes >= _PART if is_one else _is_enough(wanted, size)

    for part in traced_parts(tokenizer, text, **flags, tracer=tracer, is_enough=is_enough):
        start = part.before
        end = start + Totals(0, len(part.trace.words), len(part.trace.tokens))
        if _has(wanted, start, end):
            return Survey(counter.totals, counter.fragments, start, part.trace)
    nothing = trace_part(tokenizer, b"", **flags, begins=False, ends=False, tracer=tracer)
    return Survey(counter.totals, counter.fragments, counter.totals, nothing)


def _has(wanted: Wanted, start: Totals, end: Totals) -> bool:
    """Whether a piece from `start` to `end` is part of what is wanted."""
    if wanted.word is not None:
        return start.words <= wanted.word < end.words
    if wanted.token is not None:
        return start.tokens <= wanted.token < end.tokens or (wanted.token == 0 and start.bytes == 0)
    return True


def _is_enough(wanted: Wanted, end: Totals) -> bool:
    return wanted.word is not None or wanted.token is not None or (
        end.words >= wanted.words and end.tokens >= wanted.tokens
    )  # fmt: skip


class Counter:
    """Counts pieces of a text, and keeps its first fragments."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        parse_special: bool,
        fragments: int = 0,
        clipped: int = 0,
        tracer: Tracer | None = None,
    ) -> None:
        self.totals = Totals()
        self.fragments: list[tuple[Fragment, bytes]] = []
        self._tokenizer = tokenizer
        self._parse_special = parse_special
        self._most = fragments
        self._clipped = clipped
        self._partition = tokenizer.pipeline.special.partition
        self._tracer = tracer_of(tokenizer) if tracer is None else tracer
        self._in_text = False  # the last fragment is text that may go on

    def add_token(self, kind: str, token: int | None) -> None:
        """Count a fragment that is a token, not text."""
        self._add_fragment(Fragment(kind, self.totals.bytes, self.totals.bytes, token), b"")
        self.totals += Totals(tokens=1)

    def add(self, data: bytes) -> None:
        """Count the next bytes of the text."""
        words = 0
        for fragment in self._fragments(data):
            own = data[fragment.start : fragment.end]
            if fragment.kind == "text":
                words += self._tracer.count_words(own)
            at = self.totals.bytes
            self._add_fragment(fragment._replace(start=at + fragment.start, end=at + fragment.end), own)
        tokens = self._tokenizer.count(data, add_special=False, parse_special=self._parse_special)
        self.totals += Totals(len(data), words, tokens)

    def _fragments(self, data: bytes) -> Iterator[Fragment]:
        """The fragments, as in a trace."""
        end = 0
        before: int | None = None
        for token, start, stop in self._partition(data, self._parse_special):
            if end < start:
                yield Fragment("dropped", end, start, None, stripped_by(self._tokenizer, before, token))
            yield Fragment("text" if token is None else "special", start, stop, token)
            end, before = stop, token
        if end < len(data):
            yield Fragment("dropped", end, len(data), None, stripped_by(self._tokenizer, before, None))

    def _add_fragment(self, fragment: Fragment, data: bytes) -> None:
        goes_on = self._in_text and fragment.kind == "text" and fragment.start == self.totals.bytes
        self._in_text = fragment.kind == "text"
        if not goes_on:
            self.totals += Totals(fragments=1)
            if len(self.fragments) < self._most:
                self.fragments.append((fragment, data[: self._clipped]))
        elif self.totals.fragments <= self._most:
            first, head = self.fragments[-1]
            joined = head + data[: max(self._clipped - len(head), 0)]
            self.fragments[-1] = first._replace(end=fragment.end), joined
