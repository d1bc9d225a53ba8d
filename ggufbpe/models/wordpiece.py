"""WordPiece, as of BERT: the model `bert`, which llama.cpp calls WPM.

    fragment -> characters, normalized -> words -> the longest tokens from left to right -> ids

Source: src/llama-vocab.cpp, llm_tokenizer_wpm_session.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from .._util import utf8
from .._util.lazy import cached_property
from .._util.spelling import SPACE
from ..gguf.metadata import Metadata
from .pretokenizers.registry import PreTokenizer
from .tokenizer_model import TextModel, TokenizerModel, Warn, unknown_id
from .trie import Trie
from .word_cache import WordCache

if TYPE_CHECKING:
    from .format_detection import Looks
    from .tracers.trace_types import Tracer
    from .vocabulary import Vocabulary

_FLAGS = PreTokenizer("", "", byte_encode=False, add_bos=True, add_sep=True)
_BEGIN = SPACE  # begins the text of a token that begins a word
# CJK as in BERT's own code; one range begins at U+2B920, a slip in HF tokenizers that llama.cpp follows.
CJK = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class WordPieceModel(TokenizerModel):
    """`bert`."""

    name = "bert"
    description = "WordPiece, as of BERT"
    vocab_type = 3
    is_supported = True
    algorithm = "word pieces"
    architecture = "bert"
    default_ids = MappingProxyType({"bos": 101, "unk": 100, "sep": 102, "pad": 0, "mask": 103})
    normalizes = True
    begins_words = True
    has_pre_tokenizer = False
    needs_unknown = True
    flags = ("lowercase", "strip_accents")

    def recognizes(self, looks: Looks) -> bool:
        """BERT's names, and words that begin with U+2581 or continue with ##, and no merges."""
        pieces = looks.begins_words or looks.continues_words
        return (
            pieces
            and looks.has_bert_names
            and not (looks.has_merges or looks.has_charsmap or looks.has_logarithms)
        )

    def pre_tokenizer(self, file: Metadata, named_pre: str, warn: Warn) -> PreTokenizer:
        """Only flags."""
        return _FLAGS

    def line_break(self, vocabulary: Vocabulary, plain_ids: Iterable[int]) -> int | None:
        """The default of the padding token, whatever the file says: llama.cpp reads that later."""
        return self.default_ids["pad"]

    def added_names(self, add_bos: bool, add_eos: bool) -> tuple[Sequence[str], Sequence[str]]:
        """CLS and SEP, whatever the flags say."""
        return ("bos",), ("sep",)

    def text_model(self, vocabulary: Vocabulary, most_words: int | None = None) -> WordPieceText:
        """Normalized words, each by the longest tokens."""
        return WordPieceText(vocabulary, most_words)


class BertNormalizer(dict[int, str]):
    """The replacement of each character, for `str.translate`; found on first use.

    White space becomes a space, a character that stands alone gets one on both sides, a dropped one becomes nothing.

    >>> "Ça, Überall!".translate(BertNormalizer(lowercase=True, strip_accents=True))
    'ca ,  uberall ! '
    """

    def __init__(self, *, lowercase: bool, strip_accents: bool) -> None:
        from .._util import unicode_classes  # a large table that the compiled engine does not need

        super().__init__()
        self._unicode = unicode_classes
        self._lowercase = lowercase
        self._strip_accents = strip_accents

    def __missing__(self, code_point: int) -> str:
        base = self._unicode.decomposed(code_point) if self._strip_accents else code_point
        self[code_point] = written = self._written(base)
        return written

    def reasons(self, code_point: int) -> tuple[str, ...]:
        """Why the character changes: see `Change` (models/tracers/trace_types.py)."""
        base = self._unicode.decomposed(code_point) if self._strip_accents else code_point
        written = self[code_point]
        accents = ("accents",) * (base != code_point)
        if written == " ":
            return (*accents, "white_space")
        if not written:
            is_mark = (
                self._unicode.class_of(base) == "M"
                and base not in (0, 0xFFFD)
                and not self._unicode.is_control(base)
            )
            return ("accents",) if is_mark else (*accents, "control")
        lower_case = ("lower_case",) * (written.strip(" ") != chr(base))
        return (*accents, *lower_case, *(("alone",) * (len(written) > 1)))

    def _written(self, code_point: int) -> str:
        kind = self._unicode.class_of(code_point)
        if kind == "W":
            return " "
        if (
            code_point in (0, 0xFFFD)
            or self._unicode.is_control(code_point)
            or (self._strip_accents and kind == "M")
        ):
            return ""
        char = chr(self._unicode.lower(code_point) if self._lowercase else code_point)
        stands_alone = (
            kind == "P"
            or (kind == "S" and code_point < 0x7F)
            or any(first <= code_point <= last for first, last in CJK)
        )
        return f" {char} " if stands_alone else char


class LongestMatch:
    """Words to ids: repeatedly the longest token that the rest of the word begins with."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.trie = Trie((tuple(map(ord, text)), token) for text, token in vocabulary.token_to_id.items())
        self.unknown = unknown_id(vocabulary)

    def ids(self, word: str) -> tuple[int, ...]:
        """The ids of a word; only the unknown token if no tokens make it up."""
        symbols = tuple(map(ord, _BEGIN + word))
        ids: list[int] = []
        at = 0
        while at < len(symbols):
            match = self.trie.longest(symbols, at)
            if match is None:
                return (self.unknown,)
            token, at = match
            ids.append(token)
        return tuple(ids)


class WordPieceText(TextModel):
    """The `TextModel` (tokenizer_model.py) of WordPiece."""

    def __init__(self, vocabulary: Vocabulary, most_words: int | None = None) -> None:
        self.vocabulary = vocabulary
        self._most_words = most_words

    @cached_property
    def normalizer(self) -> BertNormalizer:
        """Characters to their replacements."""
        vocabulary = self.vocabulary
        return BertNormalizer(lowercase=vocabulary.lowercase, strip_accents=vocabulary.strip_accents)

    @cached_property
    def word_ids(self) -> WordCache[LongestMatch]:
        """Words to ids."""
        return WordCache(LongestMatch(self.vocabulary), self._most_words)

    def tracer(self) -> Tracer:
        """The tracer of its steps."""
        from .tracers.wordpiece import WordPieceTracer

        return WordPieceTracer(self)

    def words(self, fragment: bytes) -> list[str]:
        """The normalized words."""
        return [word for word in self.text(fragment).translate(self.normalizer).split(" ") if word]

    def text(self, fragment: bytes) -> str:
        """A fragment as text."""
        return utf8.decode(fragment, self.vocabulary.strict_utf8)

    def runs(self, fragment: bytes) -> Iterator[Iterable[tuple[int, ...]]]:
        """The ids, one tuple per word."""
        yield map(self.word_ids.__getitem__, self.words(fragment))

    def spans(self, fragment: bytes) -> Iterator[tuple[int, int, int]]:
        """(id, start, end) of each token, in bytes of the fragment, from its first character to its last.

        Dropped text has no token, unless it stands between two characters of one. The steps of the tracer tell.
        """
        from .tracers.trace_types import EncodedWord

        for step in self.tracer().steps(fragment, 0):
            if isinstance(step, EncodedWord):
                yield from ((token, start, end) for token, start, end, _ in step.tokens)
