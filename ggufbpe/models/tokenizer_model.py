"""The interface of a tokenizer model: how its vocabulary is loaded, and how plain text becomes ids.

`TokenizerModel` is what holds for every vocabulary of the model; `TextModel`, made from one vocabulary, does the work.
The compiled engine has its counterpart in `native/src/text_model.h`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from .._util.errors import VocabularyError
from .._util.spelling import unescape_spaces

if TYPE_CHECKING:
    from ..gguf.metadata import Metadata
    from .format_detection import Looks
    from .pretokenizers.registry import PreTokenizer
    from .vocabulary import Correct, Vocabulary

Warn = Callable[[str], None]
Tokens = tuple[Sequence[str], Mapping[str, int]]  # the tokens, and the id of each


NO_TOKEN = -1  # llama.cpp's LLAMA_TOKEN_NULL, which some models give if a file has no unknown token


def unknown_id(vocabulary: Vocabulary) -> int:
    """The unknown token; `NO_TOKEN` if there is none."""
    unknown = vocabulary.special_ids["unk"]
    return NO_TOKEN if unknown is None else unknown


def misconverted(file: Metadata, key: str, problem: str, element: int | None = None) -> VocabularyError:
    """Return the error for a wrong value of `key`, or of one `element` of its array; converting again is the remedy."""
    offset = file.offset(key) if element is None else file.element_offset(key, element)
    remedy = "convert the model again"
    return VocabularyError(problem, path=file.path, offset=offset, key=key, remedy=remedy)


class TextModel(Protocol):
    """Plain text to ids with one vocabulary. A fragment is the text between two special tokens, UTF-8 or not."""

    def words(self, fragment: bytes) -> list[str]:
        """The pieces that are encoded independently."""
        ...

    def runs(self, fragment: bytes) -> Iterator[Iterable[tuple[int, ...]]]:
        """The ids, one tuple per word, many words at a time."""
        ...

    def spans(self, fragment: bytes) -> Iterator[tuple[int, int, int]]:
        """(id, start, end) of each token, in bytes of the fragment."""
        ...

    def forget_words(self) -> None:
        """Empty the cache of words, if there is one: what `word_ids` is made as."""
        if (cache := vars(self).get("word_ids")) is not None:
            cache.clear()


class TokenizerModel:
    """One `tokenizer.ggml.model`. Other code uses its attributes, never its name."""

    name = ""
    description = ""  # in words
    is_supported = False
    algorithm = ""  # from words to ids: "merges", "scores", "unigram", "word pieces" or "longest match"
    vocab_type = 0  # LLAMA_VOCAB_TYPE_* of llama.h, which llama-server says of a model
    has_vocabulary = True  # False if a file says that it has no tokenizer
    architecture = "gpt2"  # of a file without tensors; any that llama.cpp knows
    default_ids: Mapping[str, int] = MappingProxyType({})  # the special ids of a file that names none
    own_pre = ""  # the pre-tokenizer that only this model has
    ignores_pre = False  # `own_pre` is in force whatever tokenizer.ggml.pre says
    drops_white_space = False  # words are the text between it
    # the text of a token that begins a word begins with U+2581, which stands for no text; white space is in no token
    begins_words = False
    makes_lower_case = False  # if the vocabulary says so
    has_pre_tokenizer = True  # text is split by patterns
    is_one_word = False  # `TextModel.words` gives all of a text as one
    composes = False  # text is composed (NFC) if the file says so
    normalizes = False  # text is changed before it is looked up, so tokens need not have the text's own bytes
    add_eos = False  # unless the file says otherwise
    # likewise: a space is put before each plain fragment, and dropped from the start in decoding
    add_space_prefix = False
    keeps_first_attributes = False  # attributes from before special tokens were found are kept, too
    refuses_short_byte_tokens = True  # a token of type BYTE has the form <0xXX>, whether it is used or not
    flags: tuple[
        str, ...
    ] = ()  # fields of `Vocabulary` that a key sets and that change the ids of plain text
    needs_bytes = False  # text without a token becomes the tokens of its bytes
    needs_unknown = False  # text without a token becomes the unknown token
    has_charsmap = False  # text is normalized by the precompiled charsmap of the file
    has_scores = False  # tokens have scores, which decide the ids
    scores_fall = False  # tokens of text are trained in the order of their scores, the highest first
    has_sequences = False  # parts of a text are cut by counting bytes (DNA)
    hidden_suffix = ""  # ends the texts of tokens that stand for less than their text

    @property
    def changes_text(self) -> bool:
        """Whether a text is changed, besides by a space before it, so that its tokens need not have its bytes."""
        return self.drops_white_space or self.has_sequences or self.normalizes

    @property
    def keeps_text(self) -> bool:
        """Whether every byte of a text is in some token, as far as there are tokens for it."""
        return not self.changes_text

    def recognizes(self, looks: Looks) -> bool | None:
        """Whether a file with these looks (format_detection.py) is one of this model; None if that cannot be told."""
        return None

    # ---- loading: see models/loading.py --------------------------------------------------------------

    def merges(self, file: Metadata, named_pre: str) -> Sequence[str]:
        """The merges, "left right" by rank; None in most models. Raises a `GGUFError` if they are missing."""
        return ()

    def charsmap(self, file: Metadata) -> bytes:
        """The map that normalizes text before anything else; empty in most models."""
        return b""

    def pre_tokenizer(self, file: Metadata, named_pre: str, warn: Warn) -> PreTokenizer:
        """How text is split and the flags that follow from it.

        Models without pre-tokenizers have one without a name, for their flags, whatever tokenizer.ggml.pre says.
        Raises `UnknownPreTokenizerError` if llama.cpp has none of that name.
        """
        raise NotImplementedError

    def doubt(self, named_pre: str, entry: PreTokenizer, token_to_id: Mapping[str, int], warn: Warn) -> None:
        """Warn of likely mistakes that are not errors."""

    def own_tokens(self, file: Metadata, warn: Warn) -> Tokens | None:
        """The tokens if the model changes them; None if they are those of the file, as in most models."""
        return None

    def has_line_break(self, entry: PreTokenizer, token_to_id: Mapping[str, int]) -> bool:
        """Whether llama.cpp finds a token for the newline character. True also if it looks for none."""
        return True

    def line_break(self, vocabulary: Vocabulary, plain_ids: Iterable[int]) -> int | None:
        """The token that llama.cpp takes for a line break, None if it has none; `plain_ids` are the ids of "\\n"."""
        return next(iter(plain_ids), None)

    def check(self, file: Metadata, vocabulary: Vocabulary, correct: Correct) -> None:
        """Last checks, of the whole vocabulary. Raises a `GGUFError` if llama.cpp refuses it."""

    # ---- decoding: see tokenizer/detokenization.py -------------------------------------------------------

    def piece(self, text: str, attribute: int) -> bytes | None:
        """The bytes of a token that may be shown; None if they follow from its attributes, as in most models."""
        return None

    @property
    def has_own_pieces(self) -> bool:
        """Whether `piece` decides the bytes of every token, so that attributes do not."""
        return type(self).piece is not TokenizerModel.piece

    def plain_piece(self, text: str, entry: PreTokenizer) -> bytes:
        """The bytes that a normal token of this text stands for."""
        return unescape_spaces(text).encode()

    def is_byte_level(self, entry: PreTokenizer) -> bool:
        """Return whether normal tokens are written in GPT-2's alphabet, which `plain_piece` undoes."""
        return False

    # ---- encoding -----------------------------------------------------------------------------------

    def text_model(self, vocabulary: Vocabulary, most_words: int | None = None) -> TextModel:
        """A `TextModel` of the reference engine, which caches at most `most_words` words."""
        raise NotImplementedError

    def added(self, vocabulary: Vocabulary) -> tuple[list[int], list[int]]:
        """The tokens that llama_tokenize puts before and after a text with `add_special`."""
        ids = vocabulary.special_ids
        before, after = (
            [ids[name] for name in names]
            for names in self.added_names(vocabulary.add_bos, vocabulary.add_eos)
        )
        return [each for each in before if each is not None], [each for each in after if each is not None]

    def added_names(self, add_bos: bool, add_eos: bool) -> tuple[Sequence[str], Sequence[str]]:
        """The names of these tokens among the special ids, by the flags of a vocabulary."""
        return ("bos",) * add_bos, ("eos",) * add_eos


def first_attributes(vocabulary: Vocabulary) -> Sequence[int]:
    """Attributes before special tokens were found by their texts: those that llama.cpp matches by."""
    return vocabulary.first_attributes or vocabulary.attributes
