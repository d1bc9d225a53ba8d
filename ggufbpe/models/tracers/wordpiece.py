"""Traces WordPiece: what each character becomes, words, and the tokens that match at each position of a word."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..._util import utf8
from ..._util.spelling import SPACE, escape_spaces
from .trace_types import (
    EncodedWord,
    Fragment,
    RewrittenText,
    Step,
    Symbol,
    TokenMatch,
    Tracer,
    TriedToken,
    Word,
    WordToken,
    joined,
)

if TYPE_CHECKING:
    from ..wordpiece import WordPieceText

_CONTINUES = "##"  # in vocab.txt, before pieces that continue a word


class WordPieceTracer(Tracer):
    """The `Tracer` (models/tracers/trace_types.py) of WordPiece."""

    unknown: int
    _text: WordPieceText

    def __init__(self, text: WordPieceText) -> None:
        super().__init__(text)
        self._trie, self.unknown = text.word_ids.encoder.trie, text.word_ids.encoder.unknown

    def steps(self, fragment: bytes, start: int) -> Iterator[Step]:
        """Characters to words, and each word to tokens."""
        yield Fragment("text", start, start + len(fragment))
        word: list[str] = []
        bounds: list[tuple[int, int]] = []  # of the word's characters
        changes: list[RewrittenText] = []
        for char, data, first in _characters(fragment, self._text.vocabulary.strict_utf8):
            first, end = start + first, start + first + len(data)
            written = self._text.normalizer[ord(char)]
            if written != char:
                why = self._text.normalizer.reasons(ord(char))
                is_broken = char == "\ufffd" and data != char.encode()
                changes.append(RewrittenText(first, end, data, written, ("not_utf8",) * is_broken + why))
            if len(written) == 1 and written != " ":
                word.append(written)
                bounds.append((first, end))
            elif written:
                own = changes if written == char else changes[:-1]
                yield from joined(iter(own))
                if word:
                    yield self._word("".join(word), bounds)
                word, bounds, changes = [], [], changes[len(own) :]
                if written != " ":
                    yield from changes
                    yield self._word(written[1], [(first, end)])
                    changes = []
        yield from joined(iter(changes))
        if word:
            yield self._word("".join(word), bounds)

    def _word(self, word: str, bounds: list[tuple[int, int]]) -> EncodedWord:
        symbols = tuple(map(ord, SPACE + word))
        places = [0]  # of the symbols, in bytes
        for char in SPACE + word:
            places.append(places[-1] + len(char.encode("utf-8", "surrogatepass")))
        start, last = bounds[0][0], bounds[-1][1]
        matches: list[TokenMatch] = []
        found: list[Symbol] = []
        at = 0
        while at < len(symbols):
            tried, reach = self._trie.tried(symbols, at)
            candidates = tuple(
                TriedToken(token, self.looked_up(token), places[end] - places[at]) for token, end in tried
            )
            taken, end = tried[-1] if tried else (None, at)
            matches.append(TokenMatch(places[at], candidates, taken, places[reach] - places[at]))
            if taken is None:
                found = [Symbol(SPACE + word, start, last, (self.unknown,), False, is_unknown=True)]
                break
            first = bounds[max(at - 1, 0)][0]
            after = bounds[end - 2][1] if end - 1 > max(at - 1, 0) else first
            found.append(Symbol(self.looked_up(taken), first, after, (taken,), True))
            at = end
        tokens = tuple(
            WordToken(each.ids[0], each.start, each.end, "unknown" if each.is_unknown else "symbol")
            for each in found
        )
        steps = Word(word, start, last, 0, (), SPACE + word, None, (), tuple(found), tuple(matches))
        return EncodedWord(steps, tokens)

    def spellings(self, piece: str) -> list[str]:
        """Spellings of a piece to look up: as in the file, as "##ing" in vocab.txt, and after a space."""
        text = escape_spaces(piece)
        return [text, text.removeprefix(_CONTINUES), SPACE + text]

    def by_position(self, written: str) -> str:
        return written.encode("utf-8", "surrogatepass").decode("latin-1")


def _characters(fragment: bytes, strict_utf8: bool) -> Iterator[tuple[str, bytes, int]]:
    """Each character, its bytes, and where these begin."""
    start = 0
    for char, end in zip(utf8.decode(fragment, strict_utf8), utf8.char_ends(fragment, strict_utf8)):
        yield char, fragment[start:end], start
        start = end
