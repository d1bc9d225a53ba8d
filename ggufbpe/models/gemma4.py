"""Gemma 4's byte pair encoding: the model decides how text is split, whatever `tokenizer.ggml.pre` says.

Source: src/llama-vocab.cpp, llama_vocab::impl::load.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from ..gguf.metadata import Metadata
from .bpe.bpe_model import BytePairModel
from .pretokenizers.registry import PreTokenizer
from .tokenizer_model import Warn


class Gemma4Model(BytePairModel):
    """`gemma4`."""

    name = "gemma4"
    architecture = "gemma4"
    default_ids = MappingProxyType({})
    own_pre = "gemma4"
    ignores_pre = True

    def merges(self, file: Metadata, named_pre: str) -> Sequence[str]:
        return super().merges(file, self.own_pre)

    def pre_tokenizer(self, file: Metadata, named_pre: str, warn: Warn) -> PreTokenizer:
        return super().pre_tokenizer(file, self.own_pre, warn)
