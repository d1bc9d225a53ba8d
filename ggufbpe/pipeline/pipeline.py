"""The steps from text to ids, one by one: the reference engine, and what `explain` and its like look at.

    vocabulary -> [this file] -> tokenizer.py, trace/

    text -> special.py -> fragments -> split.py -> words -> merge.py -> ids

Two kinds of models have steps of their own, which are here: k-mers of DNA, and words between white space.

But: no way back from ids to text, and no batches.

Source of the order of steps: src/llama-vocab.cpp, llama_vocab::impl::tokenize.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from .. import utf8
from ..models.bpe.merge import WordEncoder
from ..models.bpe.split import Splitter, splitter
from ..once import made_once
from ..unicode_classes import CLASSES, LOWER, STARTS
from ..vocab import DNA_MARKER, Vocabulary
from .special import Fragment, SpecialTokens

if TYPE_CHECKING:
    from ..tokenizer import Text

_CACHED_WORDS = 1 << 18
_CACHED_LENGTH = 128  # characters
_BYTES_OF_A_WORD = 256  # in the cache, with its ids and its place in a dictionary; most take less
_DNA_LENGTH = 6

_SURROGATE = re.compile("[\ud800-\udfff]")


class Steps:
    """The steps of one vocabulary."""

    def __init__(self, vocabulary: Vocabulary, cache_bytes: int | None = None) -> None:
        self.vocabulary = vocabulary
        self._most_words = _CACHED_WORDS if cache_bytes is None else cache_bytes // _BYTES_OF_A_WORD
        self._bos_id = vocabulary.special_ids["bos"] if vocabulary.add_bos else None
        self._eos_id = vocabulary.special_ids["eos"] if vocabulary.add_eos else None

    @made_once
    def special(self) -> SpecialTokens:
        """Text to fragments."""
        return SpecialTokens(self.vocabulary)

    @made_once
    def splitter(self) -> Splitter:
        """Plain text to words."""
        return splitter(self.vocabulary.pre_tokenizer)

    @made_once
    def word_ids(self) -> WordCache:
        """Words to ids."""
        vocabulary = self.vocabulary
        encoder = WordEncoder(vocabulary.pre_tokenizer, vocabulary.token_to_id, vocabulary.merges)
        return WordCache(encoder, self._most_words)

    def forget_words(self) -> None:
        """Empty the cache of words."""
        if "word_ids" in vars(self):
            self.word_ids.clear()

    def source(self, text: Text) -> str | bytes:
        """`text` as a `str`, or as bytes where it is not UTF-8 or where llama.cpp counts bytes (DNA)."""
        if isinstance(text, str):
            lone = None if text.isascii() else _SURROGATE.search(text)
            if lone is not None:
                raise ValueError(
                    f"the text has a lone surrogate, U+{ord(lone[0]):04X}, at character {lone.start()}, which "
                    "UTF-8 cannot write; give bytes, or encode with errors='replace' first"
                )
            return text.encode() if self.vocabulary.model == "hybriddna" else text
        if not isinstance(text, (bytes, bytearray, memoryview)):
            raise TypeError(f"text must be str or bytes, not {type(text).__name__}")
        data = bytes(text)
        try:
            return data if self.vocabulary.model == "hybriddna" else data.decode()
        except UnicodeDecodeError:
            return data

    def words(self, text: Text) -> list[str]:
        """The pieces into which the pre-tokenizer cuts `text`, all of it taken as plain text."""
        plain = self.plain(self.source(text))
        return [word for piece, _ in self.pieces_to_split(plain) for word in self.splitter.words(piece)]

    def encoded(self, text: Text, add_special: bool, parse_special: bool) -> Iterator[tuple[int, ...]]:
        """The ids, in tuples: one a word or special token."""
        return chain.from_iterable(self._runs(text, add_special, parse_special))

    def plain_ids(self, text: str) -> Iterator[int]:
        """The ids of a text in which no special tokens are looked for."""
        runs = self._runs_of(text, [Fragment(None, 0, len(text))])
        return chain.from_iterable(chain.from_iterable(runs))

    def _runs(
        self, text: Text, add_special: bool, parse_special: bool
    ) -> Iterator[Iterable[tuple[int, ...]]]:
        """The same, in runs: a generator that gave the words one by one would take longer than looking them up."""
        source = self.source(text)
        if add_special and self._bos_id is not None:
            yield ((self._bos_id,),)
        yield from self._runs_of(source, self.special.partition(source, parse_special))
        if add_special and self._eos_id is not None:
            yield ((self._eos_id,),)

    def _runs_of(
        self, source: str | bytes, fragments: Iterable[Fragment]
    ) -> Iterator[Iterable[tuple[int, ...]]]:
        for token, start, end in fragments:
            if token is not None:
                yield ((token,),)
                continue
            for part in self.dna_parts(source[start:end]):
                if part.token is not None:
                    yield ((part.token,),)
                    continue
                for piece, _ in self.pieces_to_split(part.text):
                    yield map(self.word_ids.__getitem__, self.splitter.iterate(piece))

    def ids_with_offsets(
        self, text: Text, add_special: bool, parse_special: bool
    ) -> tuple[list[int], list[tuple[int, int]]]:
        """The ids, and where each begins and ends: see `Tokenizer.encode_with_offsets`."""
        source = self.source(text)
        ids: list[int] = []
        spans: list[tuple[int, int]] = []
        if add_special and self._bos_id is not None:
            ids.append(self._bos_id)
            spans.append((0, 0))
        byte, character = 0, 0
        for token, start, end in self.special.partition(source, parse_special):
            byte += utf8.byte_length(source[character:start])
            fragment, character = source[start:end], end
            if token is not None:
                ids.append(token)
                spans.append((byte, byte + utf8.byte_length(fragment)))
            else:
                for part, first, last in self._spans(fragment):
                    ids.append(part)
                    spans.append((byte + first, byte + last))
            byte += utf8.byte_length(fragment)
        if add_special and self._eos_id is not None:
            ids.append(self._eos_id)
            spans.append((byte + utf8.byte_length(source[character:]),) * 2)
        return ids, spans

    def dna_parts(self, fragment: str | bytes) -> Iterator[Part]:
        """A fragment as plain text; in hybriddna models, with the k-mers of its sequences.

        Source: llm_tokenizer_hybriddna_session.
        """
        known = self.vocabulary.token_to_id.get
        begin, close, unknown = known("<dna>"), known("</dna>"), known("<oov>")
        is_dna = self.vocabulary.model == "hybriddna" and None not in (begin, close, unknown)
        if isinstance(fragment, str) or not is_dna:
            yield Part(None, self.plain(fragment), 0, len(fragment))
            return
        position = 0
        while position < len(fragment):
            start = fragment.find(b"<dna>", position)
            if start != position:
                stop = len(fragment) if start < 0 else start
                yield Part(None, self.plain(fragment[position:stop]), position, stop)
            if start < 0:
                return
            yield Part(begin, "", start, start + 5)
            end = fragment.find(b"</dna>", start + 5)
            last = len(fragment) if end < 0 else end
            for k_mer, first, behind in self._k_mers(fragment[start + 5 : last], start + 5):
                written = k_mer.upper().ljust(_DNA_LENGTH, b"A").decode("utf-8", "surrogateescape")
                token = known(written + DNA_MARKER)
                yield Part(unknown if token is None else token, "", first, behind)
            if end < 0:
                return
            yield Part(close, "", end, end + 6)
            position = end + 6

    def _k_mers(self, sequence: bytes, position: int) -> Iterator[tuple[bytes, int, int]]:
        """Each k-mer of a sequence that begins at `position`, and where it begins and ends.

        A k-mer is six bytes of what is there after spaces were escaped.
        """
        places: Sequence[int] = range(position, position + len(sequence))
        if self.vocabulary.pre_tokenizer.escape_whitespaces and b" " in sequence:
            lengths = (3 if byte == 0x20 else 1 for byte in sequence)
            places = [place for place, length in zip(places, lengths) for _ in range(length)]
            sequence = sequence.replace(b" ", "▁".encode())
        for at in range(0, len(sequence), _DNA_LENGTH):
            k_mer = sequence[at : at + _DNA_LENGTH]
            yield k_mer, places[at], places[at + len(k_mer) - 1] + 1

    def plain(self, fragment: str | bytes) -> str:
        """A plain fragment as text, one character for each of its own, spaces escaped where the model wants it."""
        escape = self.vocabulary.pre_tokenizer.escape_whitespaces
        if isinstance(fragment, str):
            return fragment.replace(" ", "▁") if escape else fragment
        # The byte is replaced before decoding: an overlong form of the space stays one.
        return utf8.decode(fragment.replace(b" ", "▁".encode()) if escape else fragment)

    def pieces_to_split(self, text: str) -> Iterator[tuple[str, int]]:
        """What of `text` the pre-tokenizer gets, and at which character each piece begins."""
        if self.vocabulary.model != "whitespace":
            yield text, 0
            return
        for run in _not_space().finditer(text):  # llm_tokenizer_whitespace_session
            yield run[0].translate(LOWER) if self.vocabulary.lowercase else run[0], run.start()

    def _spans(self, fragment: str | bytes) -> Iterator[tuple[int, int, int]]:
        """(id, start, end) of each token of a plain fragment, in bytes of the fragment."""
        for part in self.dna_parts(fragment):
            if part.token is not None:
                yield part.token, part.start, part.end
                continue
            own = fragment[part.start : part.end]
            ends = utf8.char_ends(own)
            ends = [part.start + end for end in ends] if part.start else ends
            for piece, first in self.pieces_to_split(part.text):
                offsets = utf8.Offsets(piece, [ends[first - 1] if first else part.start, *ends[first:]])
                position = 0
                for word in self.splitter.iterate(piece):
                    for token, start, end in self.word_ids.encoder.ids_with_ends(word):
                        yield token, offsets.start(position + start), offsets.end(position + end)
                    position += utf8.byte_length(word)


@cache
def _not_space() -> re.Pattern[str]:
    """Runs without white space; made when a whitespace model is there, for it takes a look at every class."""
    spaces = (f"{chr(a)}-{chr(b - 1)}" for a, b, c in zip(STARTS, STARTS[1:], CLASSES) if c == "W")
    return re.compile(f"[^{''.join(spaces)}]+")


class Part(NamedTuple):
    """`fragment[start:end]`: a token, or the plain text `text`."""

    token: int | None
    text: str
    start: int
    end: int


class WordCache(dict[str, tuple[int, ...]]):
    """The ids of words, encoded when first asked for. Full, it starts anew."""

    def __init__(self, encoder: WordEncoder, most_words: int = _CACHED_WORDS) -> None:
        super().__init__()
        self.encoder = encoder
        self._most_words = most_words

    def __missing__(self, word: str) -> tuple[int, ...]:
        ids = self.encoder.ids(word)
        if len(word) <= _CACHED_LENGTH:
            if len(self) >= self._most_words:
                self.clear()
            self[word] = ids
        return ids
