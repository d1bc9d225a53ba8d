"""Encodes text by a unigram model in plain Python: normalization, then the best path.

    fragment -> CharsmapNormalizer (composition, user-defined tokens, Charsmap, spaces) -> lattice.py -> ids

Texts are bytes: the normalizer handles those that are not UTF-8. All sums are doubles, added in llama.cpp's order, so
that ties are broken alike.

Where llama.cpp throws an exception (an offset in the charsmap that leads out of it) there is a `ValueError`, for the
texts that lead there and no others.

Source: src/llama-vocab.cpp, llm_tokenizer_ugm and llm_tokenizer_ugm_session.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from .._util import utf8
from .._util.lazy import cached_property
from .._util.spelling import SPACE
from .charsmap import Charsmap
from .composition import composed_bytes
from .lattice import Lattice
from .tokenizer_model import TextModel, first_attributes, unknown_id
from .trie import Trie
from .vocabulary import NORMAL, UNUSED, USER_DEFINED

if TYPE_CHECKING:
    from .tracers.trace_types import Tracer
    from .vocabulary import Vocabulary

_MATCHED = NORMAL | USER_DEFINED | UNUSED  # tokens that plain text may become
_SPACE = SPACE.encode()
_REPLACEMENT = "\ufffd".encode()
_LARGEST_FLOAT = 3.4028234663852886e38
_PENALTY = 10.0  # of the unknown token, below the lowest score
_FEW_BYTES = 32  # of a text whose parts are looked up one by one


class UnigramText(TextModel):
    """The `TextModel` (models/tokenizer_model.py) of unigram models, without a cache."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary

    @cached_property
    def normalizer(self) -> CharsmapNormalizer:
        """Plain text to text for lookup."""
        from .token_table import tokens_with

        vocabulary = self.vocabulary
        user_defined = tokens_with(array("H", first_attributes(vocabulary)), USER_DEFINED)
        return CharsmapNormalizer(
            Charsmap(vocabulary.charsmap),
            Trie((vocabulary.tokens[token].encode(), 0) for token in user_defined),
            vocabulary.add_space_prefix,
            vocabulary.remove_extra_whitespaces,
            vocabulary.nfc,
            vocabulary.strict_utf8,
        )

    @cached_property
    def lattice(self) -> Lattice:
        """Normalized text to ids."""
        lattice = _lattice(self.vocabulary, self.vocabulary.attributes, unknown_id(self.vocabulary))
        return lattice._replace(tokens=Trie(_matched(self.vocabulary)))

    @cached_property
    def _joined(self) -> frozenset[int]:
        """The bytes that stand before a space in some token."""
        tokens = (token for token, _ in _matched(self.vocabulary) if token.find(_SPACE, 1) > 0)
        return frozenset(t[at - 1] for t in tokens for at in range(1, len(t)) if t.startswith(_SPACE, at))

    def tracer(self) -> Tracer:
        """The tracer of its steps."""
        from .tracers.unigram import UnigramTracer

        return UnigramTracer(self)

    def words(self, fragment: bytes) -> list[str]:
        """The normalized text, cut before each space that no token joins to the text before it."""
        text = self.normalizer.normalize(fragment).text
        return [text[a:b].decode("utf-8", "replace") for a, b in self.word_bounds(text)]

    def is_matched(self, token: int) -> bool:
        """Whether plain text may become the token."""
        return bool(first_attributes(self.vocabulary)[token] & _MATCHED)

    def word_bounds(self, text: bytes) -> Iterator[tuple[int, int]]:
        """Where each word of a normalized text begins and ends."""
        start = 0
        for at in (space.start() for space in re.finditer(_SPACE, text)):
            if at and text[at - 1] not in self._joined:
                yield start, at
                start = at
        if start < len(text):
            yield start, len(text)

    def runs(self, fragment: bytes) -> Iterator[Iterable[tuple[int, ...]]]:
        """The ids, all in one tuple, since every sum begins with the first token."""
        text = self.normalizer.normalize(fragment).text
        yield (tuple(token for token, _, _ in self.lattice.best_path(text)),)

    def spans(self, fragment: bytes) -> Iterator[tuple[int, int, int]]:
        """(id, start, end) of each token, in bytes of the fragment."""
        text, starts, ends = self.normalizer.normalize(fragment)
        for token, start, end in self.lattice.best_path(text):
            yield token, starts[start], ends[end - 1]


# ---- normalization --------------------------------------------------------------------------------------


class Normalized(NamedTuple):
    """The normalized text, and for each of its bytes which bytes of the text it stands for."""

    text: bytes
    starts: Sequence[int]
    ends: Sequence[int]


class CharsmapNormalizer(NamedTuple):
    """User-defined tokens stay as they are, the charsmap maps everything else; then spaces are normalized."""

    charsmap: Charsmap
    user_defined: Trie
    add_space_prefix: bool
    remove_extra_whitespaces: bool
    nfc: bool  # the text is composed before anything else
    strict_utf8: bool

    def normalize(self, text: bytes) -> Normalized:
        """`text` with spaces as U+2581. `ValueError` if the text leads out of the charsmap.

        One U+2581 goes before the first character that is not a space (`add_space_prefix`), or, if the other spaces are
        dropped (`remove_extra_whitespaces`), before each that follows one or begins the text. It stands for the spaces
        that it replaces.
        """
        if not self.nfc:
            return self._normalize(text)
        composed, offsets = composed_bytes(text, self.strict_utf8)
        made, starts, ends = self._normalize(composed)
        return Normalized(made, array("Q", map(offsets.start, starts)), array("Q", map(offsets.end, ends)))

    def _normalize(self, text: bytes) -> Normalized:
        """`text` with spaces as U+2581, without composing it first (see `normalize`)."""
        made, starts, ends = bytearray(), array("Q"), array("Q")
        is_prefix_due, merges = self.add_space_prefix, self.remove_extra_whitespaces
        is_in_word, space_start, space_end = False, -1, -1  # spaces not yet written

        def put(what: bytes, start: int, end: int) -> None:
            made.extend(what)
            starts.extend((start,) * len(what))
            ends.extend((end,) * len(what))

        position = 0
        while position < len(text):
            piece, length = self.next_piece(text, position)
            end = position + length
            for byte in piece:
                if byte == 0x20:
                    is_in_word = False
                    if not merges:
                        put(_SPACE, position, end)
                    space_start = position if space_start < 0 else space_start
                    space_end = end
                    continue
                if not is_in_word:
                    is_in_word = True
                    if merges and space_start >= 0:
                        put(_SPACE, space_start, space_end)
                    elif merges or is_prefix_due:
                        is_within = bool(ends) and ends[-1] > position  # what the charsmap made of one piece
                        put(_SPACE, position, end if is_within else position)
                    is_prefix_due = False
                    space_start = -1
                made.append(byte)
                starts.append(position)
                ends.append(end)
            position = end
        return Normalized(bytes(made), starts, ends)

    def next_piece(self, text: bytes, start: int) -> tuple[bytes, int]:
        """The text at `start` before spaces are normalized, and how many bytes of `text` it stands for."""
        if self.user_defined:
            _, end = self.user_defined.tried(text, start)  # the beginning of a user-defined token is enough
            if end > start:
                return text[start:end], end - start
        replaced = self.charsmap.longest(text, start)
        if replaced is not None:
            return replaced
        length = utf8.character_length(text, start, self.strict_utf8)
        return (text[start : start + length], length) if length else (_REPLACEMENT, 1)


# ---- out of a vocabulary --------------------------------------------------------------------------------


def line_break_token(vocabulary: Vocabulary, unknown: int, none: int) -> int:
    """What "\\n" becomes with this unknown token; `none` if nothing is left of it."""
    text = UnigramText(vocabulary).normalizer.normalize(b"\n").text
    first = first_attributes(vocabulary)
    lattice = _lattice(vocabulary, first, unknown)
    tokens = _matched(vocabulary) if len(text) > _FEW_BYTES else _matched_within(text, vocabulary)
    path = lattice._replace(tokens=Trie(tokens)).best_path(text)
    return path[0][0] if path else none


def _matched_within(text: bytes, vocabulary: Vocabulary) -> Iterator[tuple[bytes, int]]:
    """The tokens that are parts of a normalized text and that plain text may become, with their ids."""
    first = first_attributes(vocabulary)
    for part in {text[a:b] for a in range(len(text)) for b in range(a + 1, len(text) + 1)}:
        token = vocabulary.token_to_id.get(part.decode("utf-8", "surrogateescape"), -1)
        if token >= 0 and first[token] & _MATCHED:
            yield part, token


def _lattice(vocabulary: Vocabulary, attributes: Sequence[int], unknown: int) -> Lattice:
    """The lattice of a vocabulary, without its tokens."""
    scores = vocabulary.scores or array("f", [0.0]) * len(vocabulary.tokens)
    normal = (score for score, kind in zip(scores, first_attributes(vocabulary)) if kind & NORMAL)
    lowest = _LARGEST_FLOAT
    for score in normal:
        lowest = score if score < lowest else lowest  # no min(): NaN counts as nothing
    return Lattice(
        tokens=Trie(),
        scores=scores,
        is_user_defined=[kind & USER_DEFINED for kind in attributes],
        unknown=unknown,
        unknown_score=array("f", [lowest - _PENALTY])[0],
    )


def _matched(vocabulary: Vocabulary) -> Iterator[tuple[bytes, int]]:
    """The tokens that plain text may become, with their ids."""
    for token, (text, kind) in enumerate(zip(vocabulary.tokens, first_attributes(vocabulary))):
        if kind & _MATCHED:
            yield text.encode(), token
