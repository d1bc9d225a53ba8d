"""Byte pair encoding as a tokenizer model: loads its merges, pre-tokenizer and tokens. Other models build on it.

Source: src/llama-vocab.cpp, llama_vocab::impl::load.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from ..._util.errors import printable
from ..._util.spelling import BYTE_TOKENS
from ...gguf import typed
from ...gguf.constants import TokenizerKey
from ...gguf.metadata import Metadata
from ..pretokenizers.pretokenizer_evidence import telltales
from ..pretokenizers.registry import PRE_TOKENIZERS, PreTokenizer
from ..tokenizer_model import TokenizerModel, Warn
from .merge import CHAR_BYTES, byte_level

if TYPE_CHECKING:
    from ..format_detection import Looks
    from ..vocabulary import Vocabulary
    from .bpe_text import BytePairText

_LIKELY_WRONG = (
    "and the ids are likely not those that the model was trained with; `ggufbpe doctor` finds the right one"
)
WITHOUT_MERGES = "kimi-k2"  # may lack merges


class BytePairModel(TokenizerModel):
    """`gpt2`, and what the other models of this kind share with it."""

    name = "gpt2"
    description = "byte pair encoding"
    vocab_type = 2
    is_supported = True
    algorithm = "merges"
    default_ids = MappingProxyType({"bos": 11, "eos": 11})

    def recognizes(self, looks: Looks) -> bool | None:
        """Byte-level tokens, unless the model has its own pre-tokenizer; None for merges that several models have."""
        if looks.is_byte_level and self.has_sequences == looks.has_dna_names:
            return not self.own_pre
        return None if looks.is_byte_level or looks.has_merges else False

    def merges(self, file: Metadata, named_pre: str) -> Sequence[str]:
        """The merges, "left right" by rank. `MissingKeyError` if the file has none."""
        if TokenizerKey.MERGES not in file and named_pre == WITHOUT_MERGES:
            return []
        return typed.compiled_strings(file, TokenizerKey.MERGES) or typed.strings(file, TokenizerKey.MERGES)

    def pre_tokenizer(self, file: Metadata, named_pre: str, warn: Warn) -> PreTokenizer:
        """The named one. `UnknownPreTokenizerError` if llama.cpp has none of that name."""
        if not named_pre or named_pre == "default":
            is_so = "'default'" if named_pre else "missing, so the 'default' pre-tokenizer is used"
            warn(f"{TokenizerKey.PRE} is {is_so}, {_LIKELY_WRONG}")
            return PRE_TOKENIZERS["default"]
        if named_pre not in PRE_TOKENIZERS:
            from ..pretokenizers.unknown_names import unknown_pre_tokenizer

            raise unknown_pre_tokenizer(file, named_pre)
        return PRE_TOKENIZERS[named_pre]

    def doubt(self, named_pre: str, entry: PreTokenizer, token_to_id: Mapping[str, int], warn: Warn) -> None:
        """Warn of a pre-tokenizer that cuts strings which are tokens here."""
        evidence = telltales(entry, token_to_id) if named_pre == entry.name != "default" else []
        if evidence:
            some = ", ".join(map(printable, evidence[:: max(len(evidence) // 3, 1)][:3]))
            warn(
                f"{TokenizerKey.PRE} is {printable(entry.name)}, which cuts tokens such as {some}, {_LIKELY_WRONG}"
            )

    def has_line_break(self, entry: PreTokenizer, token_to_id: Mapping[str, int]) -> bool:
        """Whether there is a token of the newline character, or of its byte."""
        if entry.byte_encode:
            return byte_level("\n") in token_to_id
        return "\n" in token_to_id or BYTE_TOKENS[10] in token_to_id

    def plain_piece(self, text: str, entry: PreTokenizer) -> bytes:
        """Undoes the way words are written for merging."""
        return _decode_byte_level(text) if self.is_byte_level(entry) else super().plain_piece(text, entry)

    def is_byte_level(self, entry: PreTokenizer) -> bool:
        """Yes, unless words stay as they are."""
        return not entry.escape_whitespaces

    def text_model(self, vocabulary: Vocabulary, most_words: int | None = None) -> BytePairText:
        """Splitting and merging."""
        from .bpe_text import BytePairText  # not needed by the compiled engine

        return BytePairText(vocabulary, most_words)


def merging_alone(vocabulary: Vocabulary) -> Vocabulary:
    """A vocabulary by which texts are only merged: each is one word, written as tokens are, but cut at line breaks."""
    entry = PreTokenizer("", "gemma4", byte_encode=False)
    return vocabulary._replace(model=BytePairModel.name, pre_tokenizer=entry, special_token_ids=())


def _decode_byte_level(text: str) -> bytes:
    """The bytes that GPT-2's alphabet writes as `text`; llama.cpp marks characters that are not in it."""
    try:
        return bytes([CHAR_BYTES[char] for char in text])
    except KeyError:
        return b"".join(
            bytes([CHAR_BYTES[char]])
            if char in CHAR_BYTES
            else f"[UNK_BYTE_0x{char.encode().hex()}{text}]".encode()
            for char in text
        )
