"""Finds the best path through a text by a table of suffixes: the models `plamo2` and `plamo3`.

    fragment -> characters -> segments (PLaMo-3) -> Suffixes.best_path, from the end -> ids

Scores are counted in whole ten-thousandths. A character that is in no token costs 1000, and becomes the tokens of its
bytes. A token whose own score is -1000 ends llama.cpp's list of tokens that may begin at a position: neither shorter
tokens nor the character before are tried there, and this module does likewise. (llama.cpp's converter pads
vocabularies with such tokens, `[PAD1]` and on.) Unlike in llama.cpp, which has code points here, tokens are UTF-8, as
for all models.

Source: src/llama-vocab.cpp, llm_tokenizer_plamo2.
"""

from __future__ import annotations

import math
import re
import sys
from array import array
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from .._util import utf8
from .._util.lazy import cached_property
from .._util.llama_cpp_states import PLAMO2_ADDS_TOKENS, lacks
from .._util.unicode_classes import CLASSES, STARTS
from ..gguf.constants import TokenizerKey
from ..gguf.metadata import Metadata
from .pretokenizers.registry import PreTokenizer
from .suffixes import INVALID_SCORE, NO_TOKEN, NOT_LOOKED_UP, Suffixes
from .tokenizer_model import TextModel, TokenizerModel, Warn, first_attributes, misconverted

if TYPE_CHECKING:
    from .format_detection import Looks
    from .tracers.trace_types import Tracer
    from .vocabulary import Correct, Vocabulary

_BYTE = 32  # models/vocabulary.py, which imports this room
_BYTE_TOKEN = re.compile("<0x([0-9a-fA-F]{2})>")
_NO_PRE_TOKENIZER = PreTokenizer("", "", byte_encode=False, clean_spaces=False)


class Plamo2Model(TokenizerModel):
    """`plamo2`."""

    name = "plamo2"
    description = "PLaMo-2's best path by scores"
    vocab_type = 6
    is_supported = True
    architecture = "plamo2"
    default_ids = MappingProxyType({"bos": 1, "eos": 2, "unk": 0, "pad": 3})
    has_scores = True
    has_pre_tokenizer = False
    is_one_word = True
    keeps_first_attributes = True
    refuses_short_byte_tokens = False
    cuts_segments = False  # before anything else

    def recognizes(self, looks: Looks) -> bool | None:
        """Whether the special tokens are PLaMo's; 2 and 3 look alike."""
        is_other = looks.has_merges or looks.begins_words or looks.is_byte_level
        return True if looks.has_plamo_names and looks.has_bytes and not is_other else None

    def pre_tokenizer(self, file: Metadata, named_pre: str, warn: Warn) -> PreTokenizer:
        """No pre-tokenizer, whatever the file says."""
        return _NO_PRE_TOKENIZER

    def check(self, file: Metadata, vocabulary: Vocabulary, correct: Correct) -> None:
        """`VocabularyError` if a byte has no token, or token 0: llama.cpp refuses both alike."""
        missing = [byte for byte, token in enumerate(byte_tokens(vocabulary)) if token <= 0]
        if missing:
            some = ", ".join(f"0x{byte:02X}" for byte in missing[:5]) + (" …" if missing[5:] else "")
            but = "; the token 0 counts as none" if 0 in byte_tokens(vocabulary) else ""
            problem = f"no token of type BYTE stands for {some}{but}"
            raise misconverted(file, TokenizerKey.LIST, problem)

    def added(self, vocabulary: Vocabulary) -> tuple[list[int], list[int]]:
        """The ids before and after a text that the file asks for; before b11549, PLaMo-2 has none."""
        if PLAMO2_ADDS_TOKENS in lacks(vocabulary.llama_cpp, "rule"):
            return [], []
        return super().added(vocabulary)

    def piece(self, text: str, attribute: int) -> bytes:
        """The byte that a byte token names; the text of all others."""
        named = _BYTE_TOKEN.fullmatch(text) if attribute & _BYTE else None
        return bytes([int(named[1], 16)]) if named else text.encode()

    def text_model(self, vocabulary: Vocabulary, most_words: int | None = None) -> PlamoText:
        """Segments, and the best path through each."""
        return PlamoText(vocabulary, self.cuts_segments)


class Plamo3Model(Plamo2Model):
    """`plamo3`, which also cuts text around special tokens and runs of one character."""

    name = "plamo3"
    description = "PLaMo-3's best path by scores, in segments"
    vocab_type = 8
    architecture = "plamo3"
    is_one_word = False
    cuts_segments = True


# ---- vocabulary -----------------------------------------------------------------------------------------


def byte_tokens(vocabulary: Vocabulary) -> list[int]:
    """The token of each byte; `NO_TOKEN` if there is none. Of several the last counts."""
    tokens = [NO_TOKEN] * 256
    for token, kind in enumerate(first_attributes(vocabulary)):
        if kind & _BYTE and (named := _BYTE_TOKEN.fullmatch(vocabulary.tokens[token])):
            tokens[int(named[1], 16)] = token
    return tokens


def in_ten_thousandths(score: float) -> int:
    """A float32 in llama.cpp's units, as on x86-64; `INVALID_SCORE` if the token is never taken.

    >>> in_ten_thousandths(-1.5), in_ten_thousandths(0.00005), in_ten_thousandths(float("inf"))
    (-15000, 1, -20000000)
    """
    if not math.isfinite(score):
        return INVALID_SCORE
    scaled = score * 1e4
    whole = math.trunc(scaled)
    if abs(scaled - whole) >= 0.5:  # round half away from zero, unlike round()
        whole += 1 if scaled > 0 else -1
    return whole if INVALID_SCORE < whole < 1 << 31 else INVALID_SCORE


def whole_scores(vocabulary: Vocabulary) -> list[int]:
    """The score of each token in ten-thousandths; `NOT_LOOKED_UP` for byte tokens."""
    kinds = first_attributes(vocabulary)
    scores = vocabulary.scores or array("f", bytes(4 * len(kinds)))
    return [
        NOT_LOOKED_UP if kind & _BYTE else in_ten_thousandths(score) for kind, score in zip(kinds, scores)
    ]


# ---- text to ids ----------------------------------------------------------------------------------------

_BYTE_ORDER_MARK, _BOUNDARY = "\ufeff", "\uee00"
_BEYOND_UNICODE = re.compile(rb"(?:\xf4[\x90-\xbf]|[\xf5-\xf7][\x80-\xbf])[\x80-\xbf]{2}")
_RUN = re.compile(r"([^\n])\1{3,}|  +")


class Characters(NamedTuple):
    """A fragment in characters: `bounds` has where each begins, in bytes of the fragment, and the end."""

    data: bytes
    text: str
    bounds: list[int]
    stranger: str  # also stands for characters beyond Unicode

    def seen(self, at: int) -> bytes:
        """The bytes that llama.cpp sees for a character."""
        if self.text[at] == self.stranger:
            return self.data[self.bounds[at] : self.bounds[at + 1]]
        return self.text[at].encode("utf-8", "surrogatepass")


class PlamoText(TextModel):
    """The `TextModel` (models/tokenizer_model.py) of PLaMo, without a cache."""

    def __init__(self, vocabulary: Vocabulary, cuts_segments: bool) -> None:
        self.vocabulary = vocabulary
        self._cuts_segments = cuts_segments

    @cached_property
    def suffixes(self) -> Suffixes:
        """Segments to ids."""
        return Suffixes(self.vocabulary.tokens, whole_scores(self.vocabulary))

    @cached_property
    def _byte_tokens(self) -> list[int]:
        return byte_tokens(self.vocabulary)

    @cached_property
    def _stranger(self) -> str:
        """A character of four bytes that is in no token, for those that llama.cpp reads beyond the end of Unicode."""
        known = set().union(*self.vocabulary.tokens)
        return next(char for char in map(chr, range(sys.maxunicode, 0, -1)) if char not in known)

    def words(self, fragment: bytes) -> list[str]:
        """The segments; the whole text if none are cut. Characters beyond Unicode are shown as U+FFFD."""
        text, shown = self._characters(fragment), self._characters(fragment, "\ufffd")
        return [shown[start:end] for start, end in self.segments(text)]

    def runs(self, fragment: bytes) -> Iterator[Iterable[tuple[int, ...]]]:
        """The ids, all in one tuple."""
        yield (tuple(token for token, _, _ in self.spans(fragment)),)

    def spans(self, fragment: bytes) -> Iterator[tuple[int, int, int]]:
        """(id, start, end) of each token, in bytes of the fragment."""
        _, text, bounds, _ = read = self.read(fragment)
        for first, last in self.segments(text):
            for token, start, end in self.suffixes.best_path(text[first:last]):
                if token != NO_TOKEN:
                    yield token, bounds[first + start], bounds[first + end]
                else:
                    yield from self.byte_spans(read, first + start)

    def byte_spans(self, read: Characters, at: int) -> Iterator[tuple[int, int, int]]:
        """(id, start, end) of the byte tokens of a character that is in no token."""
        begin, stop = read.bounds[at], read.bounds[at + 1]
        data = read.seen(at)
        same = len(data) == stop - begin  # otherwise the text has it in another form
        for number, byte in enumerate(data):
            yield self._byte_tokens[byte], begin + number * same, begin + number + 1 if same else stop

    def read(self, fragment: bytes) -> Characters:
        """A fragment in characters."""
        bounds = [0, *utf8.char_ends(self._within_unicode(fragment), self.vocabulary.strict_utf8)]
        return Characters(fragment, self._characters(fragment), bounds, self._stranger)

    def tracer(self) -> Tracer:
        """The tracer of its steps."""
        from .tracers.plamo import PlamoTracer

        return PlamoTracer(self)

    def segments(self, text: str) -> Iterator[tuple[int, int]]:
        """Where the parts that are encoded separately begin and end.

        PLaMo-2: everything except a byte order mark in front. PLaMo-3: text that looks like its special tokens, four or
        more times the same character (except line breaks), and two or more spaces are separate; U+EE00 is left out.
        """
        if not self._cuts_segments:
            start = int(text.startswith(_BYTE_ORDER_MARK))
            if start < len(text):
                yield start, len(text)
            return
        cuts = {0, len(text)}
        for marker in _marker().finditer(text):
            cuts.update(marker.span())
        for first, last in pairwise(sorted(cuts)):
            for run in _RUN.finditer(text, first, last):
                cuts.update(run.span())
        for first, last in pairwise(sorted(cuts)):
            start = first
            while start < last:
                end = text.find(_BOUNDARY, start, last)
                end = last if end < 0 else end
                if start < end:
                    yield start, end
                start = end + 1

    def _characters(self, fragment: bytes, stranger: str = "") -> str:
        return utf8.decode(self._within_unicode(fragment, stranger), self.vocabulary.strict_utf8)

    def _within_unicode(self, data: bytes, stranger: str = "") -> bytes:
        """`data` with each character beyond Unicode replaced, by default with `_stranger`, which has as many bytes.

        llama.cpp reads such characters before b11739 only.
        """
        if self.vocabulary.strict_utf8:
            return data
        return _BEYOND_UNICODE.sub(lambda _: (stranger or self._stranger).encode(), data)


@cache
def _marker() -> re.Pattern[str]:
    """Matches what looks like a special token: no white space in it, nor what only Python takes for white space."""
    spaces = (f"{chr(a)}-{chr(b - 1)}" for a, b, c in zip(STARTS, STARTS[1:], CLASSES) if c == "W")
    return re.compile(rf"<\|plamo:[^|\x1c-\x1f{''.join(spaces)}]{{0,64}}\|>")
