"""Encodes plain text by byte pair encoding, step by step, in the reference engine.

    fragment -> parts -> models/pretokenizers/splitter.py -> words -> merge.py -> ids

Models that do more override one of two methods: `parts` takes tokens out of plain text, and `pieces` yields those
parts of it that are split. In this class neither does anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..._util import utf8
from ..._util.lazy import cached_property
from ..._util.spelling import SPACE
from ..pretokenizers.splitter import splitter
from ..tokenizer_model import TextModel
from ..word_cache import WordCache
from .merge import WordEncoder

if TYPE_CHECKING:
    from ..tracers.trace_types import Tracer
    from ..vocabulary import Vocabulary


class Splits(Protocol):
    """Plain text to words: a `Splitter`, or a cache of one."""

    def iterate(self, text: str) -> Iterable[str]:
        """The words of `text`."""
        ...


class PlainPart(NamedTuple):
    """`fragment[start:end]`: a token, or the plain text `text`."""

    token: int | None
    text: str
    start: int
    end: int


class BytePairText(TextModel):
    """The `TextModel` (models/tokenizer_model.py) of byte pair encoding."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        most_words: int | None = None,
        *,
        splitter: Splits | None = None,
        word_ids: WordCache[WordEncoder] | None = None,
    ) -> None:
        """`splitter` and `word_ids` replace the steps that the vocabulary itself asks for."""
        self.vocabulary = vocabulary
        self._most_words = most_words
        self._given_splitter, self._given_word_ids = splitter, word_ids

    @cached_property
    def splitter(self) -> Splits:
        """The step from plain text to words."""
        return self._given_splitter or splitter(self.vocabulary.pre_tokenizer)

    @cached_property
    def word_ids(self) -> WordCache[WordEncoder]:
        """The step from words to ids."""
        if self._given_word_ids is not None:
            return self._given_word_ids
        vocabulary = self.vocabulary
        encoder = WordEncoder(vocabulary.pre_tokenizer, vocabulary.token_to_id, vocabulary.merges)
        return WordCache(encoder, self._most_words)

    def sharing(self, splitter: Splits, word_ids: WordCache[WordEncoder]) -> BytePairText:
        """A copy that uses these instead of its own."""
        return type(self)(self.vocabulary, self._most_words, splitter=splitter, word_ids=word_ids)

    def tracer(self) -> Tracer:
        """The tracer of its steps: see models/tracers/bpe.py."""
        from ..tracers.bpe import BytePairTracer

        return BytePairTracer(self)

    def parts(self, fragment: bytes) -> Iterator[PlainPart]:
        """The plain text of a fragment, and the tokens in it that are found by counting."""
        yield PlainPart(None, self.plain(fragment), 0, len(fragment))

    def pieces(self, text: str) -> Iterator[tuple[str, int]]:
        """The parts of plain text that are split, and at which character each begins."""
        yield text, 0

    def plain(self, fragment: bytes) -> str:
        """A fragment as text, one character for each of its own, with spaces escaped if the model wants it."""
        escape = self.vocabulary.pre_tokenizer.escape_whitespaces
        # The byte is replaced before decoding: an overlong form of the space, where these are decoded, stays a space.
        escaped = fragment.replace(b" ", SPACE.encode()) if escape else fragment
        return utf8.decode(escaped, self.vocabulary.strict_utf8)

    def words(self, fragment: bytes) -> list[str]:
        """The pieces into which the pre-tokenizer cuts a fragment, all of it taken as plain text."""
        plain = self.plain(fragment)
        return [word for piece, _ in self.pieces(plain) for word in self.splitter.iterate(piece)]

    def runs(self, fragment: bytes) -> Iterator[Iterable[tuple[int, ...]]]:
        """The ids, one tuple per word, many words at a time."""
        for part in self.parts(fragment):
            if part.token is not None:
                yield ((part.token,),)
                continue
            for piece, _ in self.pieces(part.text):
                yield map(self.word_ids.__getitem__, self.splitter.iterate(piece))

    def spans(self, fragment: bytes) -> Iterator[tuple[int, int, int]]:
        """(id, start, end) of each token, in bytes of the fragment."""
        for part in self.parts(fragment):
            if part.token is not None:
                yield part.token, part.start, part.end
                continue
            own = fragment[part.start : part.end]
            ends = utf8.char_ends(own, self.vocabulary.strict_utf8)
            ends = [part.start + end for end in ends] if part.start else ends
            for piece, first in self.pieces(part.text):
                offsets = utf8.Offsets(piece, [ends[first - 1] if first else part.start, *ends[first:]])
                position = 0
                for word in self.splitter.iterate(piece):
                    for token, start, end in self.word_ids.encoder.ids_with_ends(word):
                        yield token, offsets.start(position + start), offsets.end(position + end)
                    position += utf8.byte_length(word)
