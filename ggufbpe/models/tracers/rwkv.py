"""Traces RWKV: the tokens that match at each position, of which the longest is taken."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..tokenizer_model import unknown_id
from .trace_types import EncodedWord, Fragment, Step, Symbol, TokenMatch, Tracer, TriedToken, Word, WordToken

if TYPE_CHECKING:
    from ..rwkv import RWKVText


class RWKVTracer(Tracer):
    """The `Tracer` (models/tracers/trace_types.py) of RWKV. Its words are the matches."""

    splits = False
    unknown: int
    _text: RWKVText

    def __init__(self, text: RWKVText) -> None:
        super().__init__(text)
        self.unknown = unknown_id(text.vocabulary)

    def steps(self, fragment: bytes, start: int) -> Iterator[Step]:
        """A match at each place."""
        yield Fragment("text", start, start + len(fragment))
        at = 0
        while at < len(fragment):
            matches, reach = self._text.trie.tried(fragment, at)
            token, end = matches[-1] if matches else (self.unknown, at + 1)
            piece = fragment[at:end]
            written = piece.decode("utf-8", "surrogateescape")
            tried = tuple(
                TriedToken(each, fragment[at:stop].decode("utf-8", "surrogateescape"), stop - at)
                for each, stop in matches
            )
            match = TokenMatch(0, tried, token if matches else None, reach - at)
            first, last = start + at, start + end
            symbol = Symbol(written, first, last, (token,), bool(matches), is_unknown=not matches)
            text = piece.decode("utf-8", "replace")
            word = Word(text, first, last, 0, (), written, None, (), (symbol,), (match,))
            yield EncodedWord(word, (WordToken(token, first, last, "symbol" if matches else "unknown"),))
            at = end

    def count_words(self, fragment: bytes) -> int:
        return sum(1 for _ in self._text.spans(fragment))

    def spellings(self, piece: str) -> list[str]:
        """The token that has exactly these bytes, else one that the vocabulary writes this way."""
        data = piece.encode("utf-8", "surrogateescape")
        longest = self._text.trie.longest(data, 0)
        exact = (
            [self._text.vocabulary.tokens[longest[0]]]
            if longest is not None and longest[1] == len(data)
            else []
        )
        return [*exact, piece]

    def looked_up(self, token: int) -> str:
        return self._text.unescaped(token).decode("utf-8", "surrogateescape")
