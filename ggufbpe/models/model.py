"""What is asked of a tokenizer model: how its vocabulary is loaded, and its way from plain text to ids.

    vocab/ (loading), pipeline/ (ids), and all that looks at a tokenizer -> [this file] -> a room of `models/`

`TokenizerModel` is what holds for every vocabulary of the model; `TextModel`, made of one vocabulary, does the work.
The compiled engine has the same in `kernel/src/text_model.h`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from ..spelling import unescape_spaces

if TYPE_CHECKING:
    from ..gguf.metadata import Metadata
    from ..vocab import Vocabulary
    from .bpe.registry import PreTokenizer
    from .looks import Looks

Warn = Callable[[str], None]
Tokens = tuple[Sequence[str], Mapping[str, int]]  # the tokens, and the id of each


NO_TOKEN = -1  # llama.cpp's LLAMA_TOKEN_NULL, which some models give where a file has no unknown token


def unknown_of(vocabulary: Vocabulary) -> int:
    """The unknown token; `NO_TOKEN` where there is none."""
    unknown = vocabulary.special_ids["unk"]
    return NO_TOKEN if unknown is None else unknown


class TextModel(Protocol):
    """The way of plain text to ids by one vocabulary. A fragment is what is between two special tokens."""

    def words(self, fragment: str | bytes) -> list[str]:
        """The pieces that are encoded independently."""
        ...

    def runs(self, fragment: str | bytes) -> Iterator[Iterable[tuple[int, ...]]]:
        """The ids, in tuples of one a word, many of them at a time."""
        ...

    def spans(self, fragment: str | bytes) -> Iterator[tuple[int, int, int]]:
        """(id, start, end) of each token, in bytes of the fragment."""
        ...

    def forget_words(self) -> None:
        """Empty the cache of words."""
        ...


class TokenizerModel:
    """One `tokenizer.ggml.model`. Other code asks for its attributes, never for its name."""

    name = ""
    description = ""  # in words
    is_supported = False
    algorithm = ""  # of words to ids: "merges", "scores", "unigram", "word pieces" or "longest match"
    has_vocabulary = True  # else a file says that it has no tokenizer
    architecture = "gpt2"  # of a file without tensors; any that llama.cpp knows
    default_ids: Mapping[str, int] = MappingProxyType({})  # the special ids of a file that names none
    own_pre = ""  # the pre-tokenizer that goes with it alone
    ignores_pre = False  # `own_pre` is in force whatever tokenizer.ggml.pre says
    drops_white_space = False  # words are what is between it
    makes_lower_case = False  # where the vocabulary says so
    has_pre_tokenizer = True  # text is split by patterns
    is_one_word = False  # `TextModel.words` has all of a text in one
    normalizes = False  # text is changed before it is looked up, so tokens need not have the text's own bytes
    add_eos = False  # where the file does not say
    add_space_prefix = (
        False  # likewise: a space goes before each plain fragment, and from the beginning in decoding
    )
    keeps_first_attributes = False  # attributes count as they were before special tokens were found, too
    refuses_short_byte_tokens = True  # a token of type BYTE has the form <0xXX>, whether it is used or not
    flags: tuple[
        str, ...
    ] = ()  # fields of `Vocabulary` that a key sets and that change the ids of plain text
    needs_bytes = False  # what has no token becomes the tokens of its bytes
    needs_unknown = False  # or is the unknown token, and nothing else
    has_charsmap = False  # text is normalized by the precompiled charsmap of the file
    has_scores = False  # tokens have scores, which decide the ids
    has_sequences = False  # parts of a text are cut by counting bytes (DNA)
    hidden_suffix = ""  # of tokens that are looked up by more than the text they stand for

    @property
    def keeps_text(self) -> bool:
        """Whether every byte of a text is in some token, as far as there are tokens for it."""
        return not self.drops_white_space and not self.has_sequences and not self.normalizes

    def recognizes(self, looks: Looks) -> bool | None:
        """Whether a file that looks so (looks.py) is one of this model; None where that cannot be told."""
        return None

    # ---- loading: see vocab/loading.py --------------------------------------------------------------

    def merges(self, file: Metadata, named_pre: str) -> Sequence[str]:
        """The merges, "left right" by rank. Raises a `GGUFError` where they are missing. None, in most models."""
        return ()

    def charsmap(self, file: Metadata) -> bytes:
        """The map that text is normalized by before anything else; empty in most models."""
        return b""

    def pre_tokenizer(self, file: Metadata, named_pre: str, warn: Warn) -> PreTokenizer:
        """How text is split and the flags that follow from it.

        Models without pre-tokenizers have one without a name, for their flags, whatever tokenizer.ggml.pre says.
        `UnknownPreTokenizerError` where llama.cpp has none of that name.
        """
        raise NotImplementedError

    def doubt(self, named_pre: str, entry: PreTokenizer, token_to_id: Mapping[str, int], warn: Warn) -> None:
        """Warn of what is likely wrong without being an error."""

    def own_tokens(self, file: Metadata, warn: Warn) -> Tokens | None:
        """The tokens where the model changes them; None where they are as the file has them, as in most models."""
        return None

    def has_line_break(self, entry: PreTokenizer, token_to_id: Mapping[str, int]) -> bool:
        """Whether llama.cpp finds a token for the newline character."""
        raise NotImplementedError

    def line_break(self, vocabulary: Vocabulary, plain_ids: Iterable[int]) -> int | None:
        """The token that llama.cpp takes for a line break, None where it has none; `plain_ids` are those of "\\n"."""
        return next(iter(plain_ids), None)

    def check(self, file: Metadata, vocabulary: Vocabulary, warn: Warn) -> None:
        """Last checks, of the whole vocabulary. Raises a `GGUFError` where llama.cpp refuses it."""

    # ---- decoding: see pipeline/detokenize.py -------------------------------------------------------

    def piece(self, text: str, attribute: int) -> bytes | None:
        """The bytes of a token that may be shown; None where they follow from its attributes, as in most models."""
        return None

    def plain_piece(self, text: str, entry: PreTokenizer) -> bytes:
        """The bytes that a normal token of this text stands for."""
        return unescape_spaces(text).encode()

    # ---- encoding -----------------------------------------------------------------------------------

    def text_model(self, vocabulary: Vocabulary, most_words: int | None = None) -> TextModel:
        """The way of plain text to ids, which caches at most so many words."""
        raise NotImplementedError

    def kernel_model(self, vocabulary: Vocabulary, cache_bytes: int) -> Any:
        """The same compiled: a `TextModel` of the compiled module, which keeps at most `cache_bytes` of words."""
        raise NotImplementedError

    def added(self, vocabulary: Vocabulary) -> tuple[list[int], list[int]]:
        """The tokens that llama_tokenize puts before and after a text with `add_special`."""
        ids = vocabulary.special_ids
        before, behind = (
            [ids[name] for name in names]
            for names in self.added_names(vocabulary.add_bos, vocabulary.add_eos)
        )
        return [each for each in before if each is not None], [each for each in behind if each is not None]

    def added_names(self, add_bos: bool, add_eos: bool) -> tuple[Sequence[str], Sequence[str]]:
        """The names of these tokens among the special ids, by the flags of a vocabulary."""
        return ("bos",) * add_bos, ("eos",) * add_eos
