"""The tokenizer models: finds the `TokenizerModel` for each value of `tokenizer.ggml.model`.

No code outside of this folder compares a model's name; it asks the `TokenizerModel`. A new model is a module and a
line in `_HOMES`.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from .._util.lazy import IMPORT_LOCK
from .tokenizer_model import TokenizerModel

_HOMES = {  # tokenizer.ggml.model: module and class
    "gpt2": ("bpe.bpe_model", "BytePairModel"),
    "gemma4": ("gemma4", "Gemma4Model"),
    "hybriddna": ("dna", "DnaModel"),
    "whitespace": ("whitespace", "WhitespaceModel"),
    "llama": ("spm", "SpmModel"),
    "bert": ("wordpiece", "WordPieceModel"),
    "rwkv": ("rwkv", "RWKVModel"),
    "t5": ("unigram", "UnigramModel"),
    "plamo2": ("plamo", "Plamo2Model"),
    "plamo3": ("plamo", "Plamo3Model"),
}
_WITHOUT = ("none", "no_vocab")
_UNSUPPORTED: dict[
    str, tuple[str, dict[str, int]]
] = {  # what it is, in words, and the special ids of a file that names none
    "test": ("a hash of every five bytes, for llama.cpp's own tests", {}),
    **dict.fromkeys(_WITHOUT, ("no tokenizer at all: the model has no vocabulary", {})),
}
SUPPORTED = tuple(_HOMES)


@cache
def tokenizer_model(name: str) -> TokenizerModel:
    """The model of a name; for one that cannot be used, what is known about it (`is_supported` is False)."""
    if name in _HOMES:
        module, made = _HOMES[name]
        with IMPORT_LOCK:
            model: TokenizerModel = getattr(import_module(f".{module}", __name__), made)()
        return model
    description, default_ids = _UNSUPPORTED.get(name, ("unknown to llama.cpp", {}))
    model = TokenizerModel()
    model.name, model.description, model.default_ids = name, description, default_ids
    model.has_vocabulary = name not in _WITHOUT
    return model


def is_known_model(name: str) -> bool:
    """Check that llama.cpp knows a tokenizer model; it refuses a file that names another."""
    return name in _HOMES or name in _UNSUPPORTED


def model_with_pre(pre: str) -> TokenizerModel:
    """The model for a new vocabulary with this pre-tokenizer."""
    models = map(tokenizer_model, SUPPORTED)
    return next((model for model in models if model.own_pre == pre), tokenizer_model("gpt2"))
