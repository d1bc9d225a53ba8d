"""The compiled encoder of a vocabulary.

vocabulary -> its model (models/) -> _native.TextModel -+
special tokens, what is added to a text ----------------+-> _native.Encoder -> ids
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..kernel.lazy import compiled, strings_of
from ..vocab import CONTROL, LSTRIP, RSTRIP, UNKNOWN, Vocabulary

if TYPE_CHECKING:
    from ..kernel._native import Encoder


def encoder(vocabulary: Vocabulary, cache_bytes: int) -> Encoder:
    """The encoder of a vocabulary, with a word cache of at most `cache_bytes`.

    `RuntimeError` if the compiled engine is not installed.
    """
    attributes = vocabulary.attributes
    flags = (CONTROL | UNKNOWN, LSTRIP, RSTRIP)
    special = [
        (token, *(bool(attributes[token] & flag) for flag in flags)) for token in vocabulary.special_token_ids
    ]
    before, after = vocabulary.added
    model = vocabulary.tokenizer_model.kernel_model(vocabulary, cache_bytes)
    texts = strings_of(vocabulary.tokens)
    made: Encoder = compiled().Encoder(model, texts, special, before, after, vocabulary.strict_utf8)
    return made
