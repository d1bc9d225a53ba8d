"""SentencePiece's byte pair encoding, by scores of tokens instead of merges: the model `llama` (SPM).

    fragment -> a space before it, spaces as U+2581 -> words -> merging (bpe/merge.py), the best score first -> ids

Two neighbours may be merged if their joined text is a token of any kind. The pair with the best score goes first, of
equal ones the leftmost. A symbol that is not a token in the end is a single character, and becomes the tokens of its
bytes. So llama.cpp's way back over the merges (`resegment`) never has anything to do: what was merged is a token.

Text is read as llama.cpp reads it for SPM: by the length that the first byte of a character announces. Bytes that
form no character, in text that is not UTF-8, also become the tokens of single bytes.

Where llama.cpp throws because a byte has no token, this module raises a `ValueError`. A score that is not a number is
a `VocabularyError`: it has no order, and llama.cpp's ids depend on how its queue is laid out.

Source: src/llama-vocab.cpp, llm_tokenizer_spm_session, and llama_vocab::impl::tokenize.
"""

from __future__ import annotations

import codecs
import math
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING

from .._util import utf8
from .._util.lazy import cached_property
from .._util.spelling import BYTE_TOKENS, SPACE
from ..gguf.constants import TokenizerKey
from ..gguf.metadata import Metadata
from ..native.lazy_strings import as_dict, made_once
from .bpe.merge import NO_MERGE, PairRanks, WordEncoder
from .pretokenizers.registry import PreTokenizer
from .tokenizer_model import TextModel, TokenizerModel, Warn, misconverted
from .word_cache import WordCache

if TYPE_CHECKING:
    from .format_detection import Looks
    from .tracers.trace_types import Tracer
    from .vocabulary import Correct, Vocabulary

_FLAGS = PreTokenizer("", "", byte_encode=False, escape_whitespaces=True, clean_spaces=False, add_bos=True)


class SpmModel(TokenizerModel):
    """`llama`."""

    name = "llama"
    description = "SentencePiece BPE with scores (SPM), as of Llama 1 and 2"
    vocab_type = 1
    is_supported = True
    algorithm = "scores"
    architecture = "llama"
    default_ids = MappingProxyType({"bos": 1, "eos": 2, "unk": 0})
    has_pre_tokenizer = False
    add_space_prefix = True
    has_scores = True
    scores_fall = True
    needs_bytes = True
    flags = ("add_space_prefix",)

    @property
    def keeps_text(self) -> bool:
        """No: a space is put before it."""
        return False

    def recognizes(self, looks: Looks) -> bool:
        """Words begin with U+2581, and scores are ranks; if scores say nothing, there are byte tokens."""
        if not looks.begins_words or looks.has_merges or looks.has_charsmap:
            return False
        return looks.has_ranks or (looks.has_bytes and not looks.has_logarithms)

    def pre_tokenizer(self, file: Metadata, named_pre: str, warn: Warn) -> PreTokenizer:
        """The flags of SPM."""
        return _FLAGS

    def check(self, file: Metadata, vocabulary: Vocabulary, correct: Correct) -> None:
        """`VocabularyError` for a score that is not a number."""
        wrong = first_nan(vocabulary.scores)
        if wrong >= 0:
            problem = f"the score of token {wrong} is not a number"
            raise misconverted(file, TokenizerKey.SCORES, problem, wrong)

    def has_line_break(self, entry: PreTokenizer, token_to_id: Mapping[str, int]) -> bool:
        """Whether there is a token of the newline's byte, or of the character."""
        return _byte_token(ord("\n"), token_to_id) is not None

    def line_break(self, vocabulary: Vocabulary, plain_ids: Iterable[int]) -> int | None:
        """That token, whatever the text becomes; else llama.cpp takes the default PAD, which SPM does not have."""
        return _byte_token(ord("\n"), vocabulary.token_to_id)

    def text_model(self, vocabulary: Vocabulary, most_words: int | None = None) -> SpmText:
        """Merging by scores."""
        return SpmText(vocabulary, most_words)


def first_nan(scores: Sequence[float]) -> int:
    """The place of the first score that is not a number; -1 if there is none.

    >>> first_nan([0.0, float("nan")]), first_nan([])
    (1, -1)
    """
    return next((place for place, score in enumerate(scores) if math.isnan(score)), -1)


def score_ranks(scores: Sequence[float], count: int) -> array[int]:
    """The rank of each of `count` tokens for merging: 0 for the best score, equal ones for equal scores.

    >>> score_ranks([-2.0, 0.0, -1.0, -0.0], 4).tolist()
    [2, 0, 1, 0]
    """
    if not scores:
        return array("i", bytes(4 * count))
    order = {score: rank for rank, score in enumerate(sorted(set(scores), reverse=True))}
    return array("i", map(order.__getitem__, scores))


class ScoreRanks(PairRanks):
    """The rank of a pair of symbols is that of the token with the text of both.

    >>> ranks = ScoreRanks({"a": 1, "ab": 0})
    >>> ranks["a", "b"], ranks["b", "a"] == NO_MERGE
    (0, True)
    """

    def __init__(self, ranks: Mapping[str, int]) -> None:
        super().__init__(())
        self._ranks = ranks

    def find(self, left: str, right: str) -> int:
        return self._ranks.get(left + right, NO_MERGE)


class ScoreEncoder(WordEncoder):
    """Encodes single words by the scores of a vocabulary."""

    drops_bytes = False

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary.pre_tokenizer, vocabulary.token_to_id, ())
        tokens = vocabulary.tokens
        self.ranks = ScoreRanks(dict(zip(tokens, score_ranks(vocabulary.scores, len(tokens)))))
        self._tokens = as_dict(vocabulary.token_to_id)
        self._scores = vocabulary.scores

    def score(self, left: str, right: str) -> float:
        """The score of the token that the merge makes; without scores, all are 0."""
        return self._scores[self._tokens[left + right]] if self._scores else 0.0

    def fallback(self, symbol: str) -> list[tuple[int, int]]:
        """(id, byte offset in the symbol) for a character that is not a token. `ValueError` for a byte without one."""
        symbols = []
        for at, byte in enumerate([_bare_byte(symbol)] if _is_bare(symbol) else symbol.encode()):
            token = _byte_token(byte, self._tokens)
            if token is None:
                raise ValueError(
                    f"the text needs the byte 0x{byte:02X}, for which the vocabulary has no token "
                    "(llama.cpp throws an exception there)"
                )
            symbols.append((token, at))
        return symbols


class SpmText(TextModel):
    """The `TextModel` (tokenizer_model.py) of SPM."""

    def __init__(self, vocabulary: Vocabulary, most_words: int | None = None) -> None:
        self.vocabulary = vocabulary
        self._most_words = most_words
        # always SPACE, except in variants that `diagnose` makes
        self._space = SPACE if vocabulary.pre_tokenizer.escape_whitespaces else " "
        self.prefix = self._space if vocabulary.add_space_prefix else ""

    @cached_property
    def word_ids(self) -> WordCache[ScoreEncoder]:
        """Words to ids."""
        return WordCache(ScoreEncoder(self.vocabulary), self._most_words)

    @cached_property
    def word_ends(self) -> re.Pattern[str]:
        """Matches before a space that no token joins to the preceding character: no merge crosses there."""
        return made_once(self.vocabulary.tokens, _word_ends)

    def tracer(self) -> Tracer:
        """The tracer of its steps."""
        from .tracers.spm import SpmTracer

        return SpmTracer(self)

    def plain(self, fragment: bytes) -> str:
        """A fragment as it is merged. Bytes that are not characters are `_bare_byte`s, which are in no token."""
        return self.prefix + fragment.replace(b" ", self._space.encode()).decode("utf-8", _ERRORS)

    def words(self, fragment: bytes) -> list[str]:
        """The parts of a fragment that no merge crosses; llama.cpp has no words here."""
        return self.word_ends.split(self.plain(fragment)) if fragment else []

    def runs(self, fragment: bytes) -> Iterator[Iterable[tuple[int, ...]]]:
        """The ids, one tuple per word, many words at a time."""
        yield map(self.word_ids.__getitem__, self.words(fragment))

    def spans(self, fragment: bytes) -> Iterator[tuple[int, int, int]]:
        """(id, start, end) of each token, in bytes of the fragment. The space before it has no bytes."""
        offsets = utf8.Offsets(self.plain(fragment), list(self.bounds(fragment)))
        position = 0
        for word in self.words(fragment):
            for token, start, end in self.word_ids.encoder.ids_with_ends(word):
                yield token, offsets.start(position + start), offsets.end(position + end)
            position += utf8.byte_length(word)

    def bounds(self, fragment: bytes) -> Iterator[int]:
        """Where each character of `plain(fragment)` begins in the fragment, and where the last one ends."""
        yield from (0,) * (1 + len(self.prefix))
        escaped = len(self._space.encode())
        # where each byte ends, after spaces were escaped
        ends = (
            end for end, byte in enumerate(fragment, 1) for _ in range(escaped if byte == ord(" ") else 1)
        )
        for char in self.plain(fragment)[len(self.prefix) :]:
            *_, end = islice(ends, 1 if _is_bare(char) else len(char.encode()))
            yield end


def _word_ends(tokens: Sequence[str]) -> re.Pattern[str]:
    before = re.compile(f"([^{SPACE}]){SPACE}").findall
    joined = {char for text in tokens if SPACE in text[1:] for char in before(text)}
    return re.compile(f"(?<=[^{SPACE}{''.join(map(re.escape, sorted(joined)))}])(?={SPACE})")


def _byte_token(byte: int, token_to_id: Mapping[str, int]) -> int | None:
    """llama_vocab::byte_to_token. No token is a single non-ASCII byte, since tokens are UTF-8."""
    token = token_to_id.get(BYTE_TOKENS[byte])
    return token_to_id.get(chr(byte)) if token is None and byte < 0x80 else token


_BARE = 0xDC00  # a byte that is not a character becomes a surrogate, which is in no text and no token


def _is_bare(char: str) -> bool:
    return "\udc00" <= char <= "\udcff"


def _bare_byte(char: str) -> int:
    return ord(char) - _BARE


_ERRORS = "ggufbpe.spm"


def _handle(error: UnicodeError) -> tuple[str, int]:
    """The bytes that the first one announces as a character but that are none; unicode_len_utf8 in src/unicode.cpp."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    lead = error.object[error.start]
    length = 1 if lead < 0xC0 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    bare = error.object[error.start : error.start + length]
    return "".join(chr(_BARE + byte) for byte in bare), error.start + len(bare)


codecs.register_error(_ERRORS, _handle)
