"""Traces byte pair encoding: each split of a stage, each merge, each symbol.

The steps are those of models/bpe/bpe_text.py, one at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ..._util import utf8
from ..._util.lazy import cached_property
from ..._util.utf8 import Offsets, char_ends
from ...native import native
from ..bpe.merge import BYTE_CHARS, CHAR_BYTES, WordEncoder
from ..pretokenizers.pattern import option_texts
from ..pretokenizers.registry import PreTokenizer
from ..pretokenizers.splitter import Piece, Splitter, splitter
from .trace_types import (
    Alone,
    Cut,
    EncodedWord,
    Fragment,
    Merge,
    Step,
    Symbol,
    TracedStage,
    Tracer,
    Word,
    WordToken,
)

if TYPE_CHECKING:
    from ..bpe.bpe_text import BytePairText
    from ..spm import SpmText

_KEPT = 1 << 16  # characters of merged words that are cached


class MergeTracer(Tracer):
    """What all models that merge share."""

    def __init__(self, text: BytePairText | SpmText) -> None:
        super().__init__(text)
        self._encoder: WordEncoder = text.word_ids.encoder
        self._merged = _MergedWords(text)

    def by_position(self, written: str) -> str:
        return written

    def alone(self, looked_up: str) -> Alone:
        merges, symbols = merge(self._encoder, looked_up)
        return Alone(merges, tuple(symbols), tuple(self._makers(looked_up)))

    def _makers(self, looked_up: str) -> Iterator[Merge]:
        for cut in range(1, len(looked_up)):
            left, right = looked_up[:cut], looked_up[cut:]
            rank = self._encoder.rank(left, right)
            if rank is not None:
                yield Merge(rank, left, right, 0, self._encoder.score(left, right))

    def _word(self, text: str, at: int, offsets: Offsets, cuts: tuple[Cut, ...]) -> EncodedWord:
        """A word that begins at byte `at` of the text that `offsets` belongs to."""
        merged = self._merged[text]
        symbols = tuple(
            Symbol(text, offsets.start(at + start), offsets.end(at + end), ids, is_token, dropped)
            for text, start, end, ids, is_token, dropped, _ in merged.symbols
        )
        tokens = tuple(
            WordToken(token, offsets.start(at + start), offsets.end(at + end), origin)
            for token, start, end, origin in merged.tokens
        )
        start, end = (cuts[-1].start, cuts[-1].end) if cuts else (symbols[0].start, symbols[-1].end)
        word = Word(text, start, end, 0, cuts, merged.written, merged.whole, merged.merges, symbols)
        return EncodedWord(word, tokens)


class BytePairTracer(MergeTracer):
    """The `Tracer` (models/tracers/trace_types.py) of byte pair encoding."""

    _text: BytePairText

    @cached_property
    def stages(self) -> tuple[TracedStage, ...]:
        """Those of the vocabulary's pre-tokenizer."""
        return traced_stages(self._text.vocabulary.pre_tokenizer)

    @cached_property
    def _splitter(self) -> Splitter:
        return splitter(self._text.vocabulary.pre_tokenizer)

    def steps(self, fragment: bytes, start: int) -> Iterator[Step]:
        """The parts, the pieces, and the words of each piece."""
        for part in self._text.parts(fragment):
            first, last = start + part.start, start + part.end
            if part.token is not None:
                yield Fragment("dna", first, last, part.token)
                continue
            ends = char_ends(fragment[part.start : part.end], self._text.vocabulary.strict_utf8)
            bounds = [first, *(first + end for end in ends)]
            done = 0  # characters of the part
            for piece, at in self._text.pieces(part.text):
                if bounds[done] < bounds[at]:
                    yield Fragment("dropped", bounds[done], bounds[at])
                done = at + len(piece)
                yield Fragment("text", bounds[at], bounds[done])
                yield from self._words(piece, Offsets(piece, bounds[at : done + 1]))
            if bounds[done] < bounds[-1]:
                yield Fragment("dropped", bounds[done], bounds[-1])

    def _words(self, piece: str, offsets: Offsets) -> Iterator[EncodedWord]:
        ends = [0, *char_ends(piece)]

        def span(cut: Piece) -> tuple[int, int]:
            return offsets.start(ends[cut.start]), offsets.end(ends[cut.end])

        for start, end, cuts in words_with_cuts(self._splitter.stages(piece)):
            way = tuple(Cut(number, cut.alternative, *span(cut)) for number, cut in enumerate(cuts))
            yield self._word(piece[start:end], ends[start], offsets, way)

    def count_words(self, fragment: bytes) -> int:
        if native is None:
            return super().count_words(fragment)
        from ..pretokenizers.compiled_splitter import compiled_splitter

        if not fragment.isascii():  # undecodable bytes are U+FFFD
            text = utf8.decode(fragment, self._text.vocabulary.strict_utf8)
            fragment = text.encode("utf-8", "surrogatepass")
        return compiled_splitter(self._text.vocabulary.pre_tokenizer).count_words(fragment)

    def spellings(self, piece: str) -> list[str]:
        return [self.written(piece), piece, piece + self._text.vocabulary.tokenizer_model.hidden_suffix]

    def written(self, text: str) -> str:
        if not self._text.vocabulary.pre_tokenizer.byte_encode:
            return super().written(text)
        return text.encode("utf-8", "surrogateescape").decode("latin-1").translate(BYTE_CHARS)


def traced_stages(entry: PreTokenizer) -> tuple[TracedStage, ...]:
    """The stages of a pre-tokenizer, with the rules that each matches."""
    patterns = [tuple(filter(None, option_texts(stage.pattern))) for stage in entry.stages]
    added = [
        () if stage.step else tuple(option_texts(stage.rule))[len(pattern) :]
        for stage, pattern in zip(entry.stages, patterns)
    ]
    return tuple(
        TracedStage(pattern + more, stage.step, len(pattern))
        for stage, pattern, more in zip(entry.stages, patterns, added)
    )


def words_with_cuts(stages: list[list[Piece]]) -> Iterator[tuple[int, int, list[Piece]]]:
    """(start, end, the piece that it was in after each stage) of each word."""
    at = [0] * len(stages)
    for word in stages[-1]:
        for number, pieces in enumerate(stages):
            while pieces[at[number]].end < word.end:
                at[number] += 1
        yield word.start, word.end, [pieces[at[number]] for number, pieces in enumerate(stages)]


class _Merged(NamedTuple):
    """A merged word, independent of its place in the text: positions are bytes of its own UTF-8."""

    written: str
    whole: str | None
    merges: tuple[Merge, ...]
    symbols: list[Symbol]
    tokens: list[tuple[int, int, int, str]]  # id, start, end, origin


class _MergedWords(dict[str, _Merged]):
    """Words by their text, merged on first use. A full cache is emptied: a word has many merges."""

    def __init__(self, text: BytePairText | SpmText) -> None:
        super().__init__()
        self._text = text
        self._characters = 0

    def __missing__(self, word: str) -> _Merged:
        merged = _merge_word(self._text, word)
        self._characters += len(word)
        if self._characters > _KEPT:
            self.clear()
            self._characters = len(word)
        self[word] = merged
        return merged


def _merge_word(text: BytePairText | SpmText, word: str) -> _Merged:
    encoder: WordEncoder = text.word_ids.encoder
    entry = text.vocabulary.pre_tokenizer
    written = encoder.written(word)
    whole = None
    if encoder.is_whole(written):
        whole = "ignore_merges" if entry.ignore_merges else "newline_runs"
    merges, found = merge(encoder, written) if whole is None else ((), [written])
    symbols: list[Symbol] = []
    tokens: list[tuple[int, int, int, str]] = []
    place = -encoder.prepended(word)
    for symbol in found:
        data = symbol.encode("utf-8", "surrogatepass")
        start, place = place, place + (len(symbol) if entry.byte_encode else len(data))
        begin, end = max(start, 0), max(place, 0)
        token = text.vocabulary.token_to_id.get(symbol)
        if token is not None:
            tokens.append((token, begin, end, "symbol"))
            symbols.append(Symbol(symbol, begin, end, (token,), True))
        else:
            pieces = encoder.fallback(symbol)
            tokens += [(token, max(start + at, 0), max(start + at + 1, 0), "byte") for token, at in pieces]
            kept = {at for _, at in pieces}
            dropped = bytes(
                byte for at, byte in enumerate(_bytes_of(symbol, entry.byte_encode)) if at not in kept
            )
            dropped = dropped if encoder.drops_bytes else b""
            symbols.append(Symbol(symbol, begin, end, tuple(token for token, _ in pieces), False, dropped))
    return _Merged(written, whole, merges, symbols, tokens)


def merge(encoder: WordEncoder, written: str) -> tuple[tuple[Merge, ...], list[str]]:
    """The merges of a written word, in order, and the symbols that they leave."""
    symbols = list(written)
    merges = tuple(
        Merge(rank, symbols[left], symbols[right], left, encoder.score(symbols[left], symbols[right]))
        for rank, left, right in encoder.steps(symbols)
    )
    return merges, list(filter(None, symbols))


def _bytes_of(symbol: str, byte_encode: bool) -> bytes:
    if byte_encode:
        return bytes(CHAR_BYTES[char] for char in symbol)
    return symbol.encode("utf-8", "surrogatepass")
