"""Traces unigram models: what the charsmap and the rules for spaces change, and the lattice of each word.

No token crosses the end of a word, so every path passes through that point: the best path of the text consists of the
best paths of its words, each starting with the total of the words before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from math import isfinite
from typing import TYPE_CHECKING

from ..._util.lazy import cached_property
from ..._util.spelling import SPACE, escape_spaces
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
    from ..unigram_text import Normalized, UnigramText


class UnigramTracer(Tracer):
    """The `Tracer` (models/tracers/trace_types.py) of unigram models."""

    unknown: int
    _text: UnigramText

    def __init__(self, text: UnigramText) -> None:
        super().__init__(text)
        self._normalizer = text.normalizer
        self._lattice = text.lattice
        self.unknown = self._lattice.unknown

    def steps(self, fragment: bytes, start: int) -> Iterator[Step]:
        """Changes, and words with their lattices."""
        yield Fragment("text", start, start + len(fragment))
        normalized = self._normalizer.normalize(fragment)
        changes = joined(self._changes(fragment, normalized, start))
        yield from among_changes(self._words(normalized, start), changes)

    def _words(self, normalized: Normalized, start: int) -> Iterator[EncodedWord]:
        text, starts, ends = normalized
        if not self._is_finite:
            yield from self._without_lattices(normalized, start)
            return
        total = 0.0
        held: list[EncodedWord] = []  # the last token of the first one may continue
        for first, end in self._text.word_bounds(text):
            lattice = word_lattice(tuple(self._edges(text[first:end])), end - first, total)
            assert lattice is not None
            total = lattice.best.total
            symbols: list[Symbol] = []
            tokens: list[WordToken] = []
            for token, run in groupby(lattice.best.edges, key=lambda edge: edge.token):
                for edges in [list(run)] if token == self.unknown else ([edge] for edge in run):
                    at = first + edges[0].position
                    after = first + edges[-1].position + edges[-1].length
                    span = start + starts[at], start + ends[after - 1]
                    is_unknown = token == self.unknown
                    goes_on = is_unknown and at == first and held and held[0].tokens[-1].id == token
                    piece = "".join(edge.text for edge in edges)
                    ids = () if goes_on else (token,)
                    symbols.append(Symbol(piece, *span, ids, not is_unknown, is_unknown=is_unknown))
                    if goes_on:
                        last = held[0].tokens[-1]._replace(end=span[1])
                        held[0] = held[0]._replace(tokens=(*held[0].tokens[:-1], last))
                    else:
                        tokens.append(WordToken(token, *span, "unknown" if is_unknown else "symbol"))
            word = self._word(normalized, first, end, start)._replace(symbols=tuple(symbols), lattice=lattice)
            if tokens:
                yield from held
                held = []
            held.append(EncodedWord(word, tuple(tokens)))
        yield from held

    def _word(self, normalized: Normalized, first: int, end: int, start: int) -> Word:
        written = normalized.text[first:end].decode("utf-8", "surrogateescape")
        text = normalized.text[first:end].decode("utf-8", "replace")
        span = start + normalized.starts[first], start + normalized.ends[end - 1]
        return Word(text, *span, 0, (), written, None, (), ())

    def _edges(self, text: bytes) -> Iterator[LatticeEdge]:
        """All edges from each character."""
        for token, start, end, score in self._lattice.ways(text):
            yield LatticeEdge(token, _shown(text[start:end]), start, end - start, score)

    @cached_property
    def _is_finite(self) -> bool:
        """Whether all scores are finite, so that each character can be reached."""
        return isfinite(sum(self._lattice.scores)) and isfinite(self._lattice.unknown_score)

    def _without_lattices(self, normalized: Normalized, start: int) -> Iterator[EncodedWord]:
        """The words if tokens may cross their ends: each token belongs to the word in which it begins."""
        text, starts, ends = normalized
        path = self._lattice.best_path(text)[::-1]
        for first, end in self._text.word_bounds(text):
            word = self._word(normalized, first, end, start)
            symbols: list[Symbol] = []
            if not path or path[-1][1] > first:
                stop = min(path[-1][1], end) if path else end
                symbols.append(
                    Symbol(_shown(text[first:stop]), word.start, start + ends[stop - 1], (), False)
                )
            while path and path[-1][1] < end:
                token, at, after = path.pop()
                span = start + starts[at], start + ends[after - 1]
                symbols.append(Symbol(_shown(text[at:after]), *span, (token,), token != self.unknown))
            symbols = [each._replace(is_unknown=not each.is_token) for each in symbols]
            tokens = tuple(
                WordToken(each.ids[0], each.start, each.end, "symbol" if each.is_token else "unknown")
                for each in symbols
                if each.ids
            )
            yield EncodedWord(word._replace(symbols=tuple(symbols)), tokens)

    def _changes(self, data: bytes, normalized: Normalized, start: int) -> Iterator[RewrittenText]:
        """Text that changed, and text that was dropped."""
        done = 0
        for (first, end), places in _spans(normalized):
            yield from self._gone(data, done, first, start)
            yield from self._change(data, first, end, normalized.text[places], start)
            done = end
        yield from self._gone(data, done, len(data), start)

    def _gone(self, data: bytes, first: int, end: int, start: int) -> Iterator[RewrittenText]:
        """A part of the text of which nothing is left."""
        while first < end:
            _, length = self._normalizer.next_piece(data, first)
            yield from self._change(data, first, first + length, b"", start)
            first += length

    def _change(
        self, data: bytes, first: int, end: int, became: bytes, start: int
    ) -> Iterator[RewrittenText]:
        if data[first:end] == became:
            return
        why, made = [], b""
        at = first
        while at < end:
            piece, length = self._normalizer.next_piece(data, at)
            if piece != data[at : at + length]:
                is_mapped = self._normalizer.charsmap.longest(data, at) is not None
                why.append("charsmap" if is_mapped else "not_utf8")
            made += piece
            at += length
        if first == end:
            why.append("space_prefix")
        spaces, left = made.count(b" "), became.count(SPACE.encode()) - made.count(SPACE.encode())
        if left > 0 and first < end:
            why.append("escaped_space")
        if spaces > left:
            why.append("extra_white_space")
        text = became.decode("utf-8", "surrogateescape")
        yield RewrittenText(start + first, start + end, data[first:end], text, tuple(dict.fromkeys(why)))

    def written(self, text: str) -> str:
        return escape_spaces(text)

    def is_for_text(self, token: int) -> bool:
        return self._text.is_matched(token)


def _shown(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _spans(normalized: Normalized) -> Iterator[tuple[tuple[int, int], slice]]:
    """The parts of a text that became something, each with its place in the normalized text.

    A replacement that contains spaces and other characters stands for one part of the text: they are not separated.
    """
    part, first = (0, 0), 0
    for at, (start, end) in enumerate(zip(normalized.starts, normalized.ends)):
        if (start, end) == part or start < part[1]:
            part = part[0], max(part[1], end)
            continue
        if first < at:
            yield part, slice(first, at)
        part, first = (start, end), at
    if first < len(normalized.text):
        yield part, slice(first, len(normalized.text))
