"""Unigram language models, as of T5 and XLM-RoBERTa: the model `t5`, which llama.cpp calls UGM.

Opening a file waits for the imports of this module, so what only the reference engine needs is in unigram_text.py.
The compiled engine is native/src/ugm/ugm_model.h.

Source: src/llama-vocab.cpp, llm_tokenizer_ugm and llama_vocab::impl::load.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType
from typing import TYPE_CHECKING

from ..gguf import typed
from ..gguf.constants import TokenizerKey
from ..gguf.metadata import Metadata
from .charsmap import describe_truncation
from .pretokenizers.registry import PreTokenizer
from .tokenizer_model import TokenizerModel, Warn, misconverted
from .vocabulary import Correct, Correction

if TYPE_CHECKING:
    from .format_detection import Looks
    from .unigram_text import UnigramText
    from .vocabulary import Vocabulary

_NO_PRE_TOKENIZER = PreTokenizer("", "", byte_encode=False, escape_whitespaces=True, clean_spaces=False)


class UnigramModel(TokenizerModel):
    """`t5`."""

    name = "t5"
    description = "Unigram, as of T5"
    vocab_type = 4
    is_supported = True
    algorithm = "unigram"
    architecture = "t5"
    default_ids = MappingProxyType({"eos": 1, "unk": 2, "pad": 0})
    add_eos = True
    has_scores = True
    scores_fall = True
    has_pre_tokenizer = False
    normalizes = True
    composes = True
    keeps_first_attributes = True
    has_charsmap = True
    needs_unknown = True
    flags = ("add_space_prefix", "remove_extra_whitespaces")

    def recognizes(self, looks: Looks) -> bool:
        """Words begin with U+2581, and scores are logarithms, or there is a charsmap."""
        return looks.begins_words and not looks.has_merges and (looks.has_logarithms or looks.has_charsmap)

    def charsmap(self, file: Metadata) -> bytes:
        """`VocabularyError` if its size is not what it says, which llama.cpp refuses as well."""
        key = TokenizerKey.PRECOMPILED_CHARSMAP
        if not typed.has(file, key):
            return b""
        data = file.numbers(key).tobytes()
        if problem := describe_truncation(data):
            raise misconverted(file, key, problem)
        return data

    def pre_tokenizer(self, file: Metadata, named_pre: str, warn: Warn) -> PreTokenizer:
        """No pre-tokenizer: spaces are written as U+2581, and that is all."""
        return _NO_PRE_TOKENIZER

    def check(self, file: Metadata, vocabulary: Vocabulary, correct: Correct) -> None:
        """`VocabularyError` if llama.cpp finds no token for a line break, or an id without a token, and so refuses."""
        from .unigram_text import UnigramText

        key, problem = TokenizerKey.LIST, ""
        try:
            if not UnigramText(vocabulary).normalizer.normalize(b"\n").text:
                taken = self.default_ids["pad"]
                what = f"a line break becomes nothing; for its token llama.cpp takes {taken}"
                correct(Correction("line_break", what, taken))
        except ValueError as error:
            key, problem = TokenizerKey.PRECOMPILED_CHARSMAP, str(error)
        size = len(vocabulary.tokens)
        if not problem and size <= max(self.default_ids.values()) and self.line_break(vocabulary) >= size:
            problem = (
                f"the token of a line break is {self.line_break(vocabulary)}, and there are {size} tokens"
            )
        if problem:
            raise misconverted(file, key, f"{problem}; llama.cpp refuses it")

    def line_break(self, vocabulary: Vocabulary, plain_ids: Iterable[int] = ()) -> int:
        """What "\\n" becomes before the file's special ids are known: with T5's own, for unknown and for none."""
        from .unigram_text import line_break_token

        return line_break_token(vocabulary, self.default_ids["unk"], self.default_ids["pad"])

    def text_model(self, vocabulary: Vocabulary, most_words: int | None = None) -> UnigramText:
        """Normalization and the best path."""
        from .unigram_text import UnigramText

        return UnigramText(vocabulary)
