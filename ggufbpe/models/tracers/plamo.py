"""Traces PLaMo: text that is left out or read as another, the segments, and the lattice of each.

A segment counts as a word. Its lattice is what the table of suffixes gives at each character, from the last to the
first, with scores in whole ten-thousandths, as in llama.cpp.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import TYPE_CHECKING

from ..tokenizer_model import first_attributes
from ..vocabulary import BYTE
from .trace_types import (
    EncodedWord,
    Fragment,
    LatticeEdge,
    RewrittenText,
    Step,
    Symbol,
    Tracer,
    Word,
    WordToken,
    among_changes,
    joined,
    word_lattice,
)

if TYPE_CHECKING:
    from ..plamo import Characters, PlamoText


class PlamoTracer(Tracer):
    """The `Tracer` (models/tracers/trace_types.py) of PLaMo."""

    _text: PlamoText

    def steps(self, fragment: bytes, start: int) -> Iterator[Step]:
        """Changes, and segments with their lattices."""
        read = self._text.read(fragment)
        yield Fragment("text", start, start + read.bounds[-1])
        segments = list(self._text.segments(read.text))
        words = (self._word(read, first, end, start) for first, end in segments)
        yield from among_changes(words, joined(_changes(read, segments, start)))

    def _word(self, read: Characters, first: int, end: int, start: int) -> EncodedWord:
        data = [read.seen(at) for at in range(first, end)]
        places = [0, *accumulate(map(len, data))]  # in the word's bytes, by character
        edges = tuple(self._edges(read.text[first:end], data, places))
        lattice = word_lattice(edges, places[-1], 0, is_from_end=True)
        assert lattice is not None
        characters = {place: first + at for at, place in enumerate(places)}
        symbols: list[Symbol] = []
        tokens: list[WordToken] = []
        for edge in lattice.best.edges:
            at, after = characters[edge.position], characters[edge.position + edge.length]
            span = start + read.bounds[at], start + read.bounds[after]
            if edge.token is not None:
                symbols.append(Symbol(edge.text, *span, (edge.token,), True))
                tokens.append(WordToken(edge.token, *span, "symbol"))
                continue
            spans = list(self._text.byte_spans(read, at))
            symbols.append(Symbol(edge.text, *span, tuple(token for token, _, _ in spans), False))
            tokens += (WordToken(token, start + a, start + b, "byte") for token, a, b in spans)
        whole = b"".join(data)
        text, written = whole.decode("utf-8", "replace"), _written(whole)
        span = start + read.bounds[first], start + read.bounds[end]
        word = Word(text, *span, 0, (), written, None, (), tuple(symbols), lattice=lattice)
        return EncodedWord(word, tuple(tokens))

    def _edges(self, text: str, data: list[bytes], places: list[int]) -> Iterator[LatticeEdge]:
        """All edges that the table gives, in the order in which they are tried."""
        for at, steps in self._text.suffixes.steps_from_end(text):
            for length, token, score in steps:
                piece = text[at : at + length] if token >= 0 else _written(data[at])
                size = places[at + length] - places[at]
                yield LatticeEdge(token if token >= 0 else None, piece, places[at], size, score)

    def is_for_text(self, token: int) -> bool:
        return not first_attributes(self._text.vocabulary)[token] & BYTE


def _written(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _changes(read: Characters, segments: list[tuple[int, int]], start: int) -> Iterator[RewrittenText]:
    """Text in no segment, and bytes that are read as another character than they are."""
    done = 0
    for first, end in [*segments, (len(read.text),) * 2]:
        for at in range(done, end):
            span = start + read.bounds[at], start + read.bounds[at + 1]
            given = read.data[read.bounds[at] : read.bounds[at + 1]]
            if at < first:
                yield RewrittenText(*span, given, "", ("left_out",))
            elif given != read.seen(at):
                became = _written(read.seen(at))
                yield RewrittenText(*span, given, became, ("not_utf8",))
        done = end
