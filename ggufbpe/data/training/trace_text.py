"""Traces a text with a trained vocabulary: the steps of classic forms, which llama.cpp and thus no `Tokenizer` has."""

from __future__ import annotations

from collections.abc import Iterator

from ..._util.utf8 import char_ends
from ...models.bpe.merge import merge_steps
from ...models.pretokenizers.splitter import Piece, splitter
from ...models.token_attribute import TokenAttribute
from ...models.tracers.bpe import traced_stages, words_with_cuts
from ...models.tracers.trace_types import Cut, Fragment, Merge, Symbol, Word
from ...tokenizer import Tokenizer
from ...tokenizer.trace import Token, Trace
from .trained_vocabulary import TrainedVocabulary
from .word_counts import Splitting


def trace_text(vocabulary: TrainedVocabulary, text: str, *, parse_special: bool = True) -> Trace:
    """The trace of `text`; its ids are those of `TrainedVocabulary.encode`, and so are the errors.

    >>> from ggufbpe import train
    >>> vocabulary = train(["low lower"], vocab_size=8, pre="words", units="chars", end_of_word="_")
    >>> [(token.text, token.start, token.end) for token in trace_text(vocabulary, "lowe").tokens]
    [('low', 0, 3), ('e', 3, 4), ('_', 4, 4)]
    """
    if vocabulary.form.why_not_llama_cpp() is None:
        flags = {"add_special": False, "parse_special": parse_special}
        return Tokenizer(vocabulary.as_vocabulary()).trace(text, **flags)
    split = vocabulary.form.splitting
    way = _Way(vocabulary, [0, *char_ends(text)])
    for token, start, end in vocabulary.special.partition(text, parse_special):
        if token is None:
            for first, last, pieces in _words(split, text[start:end]):
                way.add_word(text[start + first : start + last], start, first, pieces)
        else:
            way.add_special(token, start, end)
    stages = () if split.listed is None else traced_stages(split.listed)
    steps = (tuple(way.fragments), tuple(way.words), tuple(way.tokens))
    return Trace(text.encode(), False, parse_special, "trained", split.pre, stages, *steps)


def _words(split: Splitting, text: str) -> Iterator[tuple[int, int, list[Piece]]]:
    """(start, end, the piece that it was in after each stage) of each word of a plain text, in characters."""
    if split.listed is not None:
        yield from words_with_cuts(splitter(split.listed).stages(split.prepared(text)))
        return
    start = 0
    for word in split.words(text):
        yield start, (start := start + len(word)), []


class _Way:
    """Collects fragments, words and tokens; `ends` are the bytes where the characters of the text begin and end."""

    def __init__(self, vocabulary: TrainedVocabulary, ends: list[int]) -> None:
        self.fragments: list[Fragment] = []
        self.words: list[Word] = []
        self.tokens: list[Token] = []
        self._vocabulary = vocabulary
        self._ends = ends

    def add_special(self, token: int, start: int, end: int) -> None:
        """Add a special token over these characters."""
        first, last = self._ends[start], self._ends[end]
        self.fragments.append(Fragment("special", first, last, token))
        self._add_token(token, first, last, "special", None)

    def add_word(self, word: str, at: int, start: int, pieces: list[Piece]) -> None:
        """Add a word, or white space that is dropped, of the plain text that begins at character `at`."""
        form, ends = self._vocabulary.form, self._ends
        begin, end = at + start, at + start + len(word)
        prepared = form.splitting.prepared(word)
        if form.splitting.drops(prepared):
            self.fragments.append(Fragment("dropped", ends[begin], ends[end]))
            return
        self._add_text(ends[begin], ends[end])
        symbols = self._vocabulary.first_symbols(prepared)
        written = "".join(symbols)
        # where each symbol begins, and the end of the word, which is that of its end-of-word symbol, too
        is_byte = form.splitting.units == "bytes"
        starts = list(range(ends[begin], ends[end]) if is_byte else ends[begin:end]) + [ends[end]] * 2
        merges = tuple(
            Merge(rank, symbols[left], symbols[right], left)
            for rank, left, right in merge_steps(symbols, self._vocabulary.ranks)
        )
        places = [place for place, symbol in enumerate(symbols) if symbol]
        found = []
        for place, following in zip(places, [*places[1:], len(symbols)]):
            token = self._vocabulary.id_of(symbols[place])
            is_token = self._vocabulary.tokens[token] == symbols[place]
            first, last = starts[place], starts[following]
            found.append(Symbol(symbols[place], first, last, (token,), is_token, is_unknown=not is_token))
            self._add_token(token, first, last, "symbol" if is_token else "unknown", len(self.words))
        cuts = tuple(
            Cut(number, cut.alternative, ends[at + cut.start], ends[at + cut.end])
            for number, cut in enumerate(pieces)
        )
        where = (ends[begin], ends[end], len(self.fragments) - 1)
        self.words.append(Word(prepared, *where, cuts, written, None, merges, tuple(found)))

    def _add_text(self, start: int, end: int) -> None:
        last = self.fragments[-1] if self.fragments else None
        if last is not None and last.kind == "text":
            self.fragments[-1] = last._replace(end=end)
        else:
            self.fragments.append(Fragment("text", start, end))

    def _add_token(self, token: int, start: int, end: int, origin: str, word: int | None) -> None:
        vocabulary = self._vocabulary
        known = (
            vocabulary.token_bytes(token),
            vocabulary.tokens[token],
            TokenAttribute(vocabulary.attributes[token]),
        )
        self.tokens.append(Token(token, start, end, *known, origin, len(self.fragments) - 1, word))
