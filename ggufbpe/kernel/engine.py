"""The compiled encoder of a vocabulary.

vocabulary -> its model (models/) -> _native.TextModel -+
special tokens, what is added to a text ----------------+-> _native.Encoder -> ids
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..vocab import CONTROL, LSTRIP, RSTRIP, UNKNOWN, Vocabulary
from . import native
from .lazy import LazyIds, LazyStrings

if TYPE_CHECKING:
    from ._native import Encoder


def encoder(vocabulary: Vocabulary, cache_bytes: int) -> Encoder:
    """The encoder of a vocabulary, with a word cache of at most `cache_bytes`.

    `RuntimeError` where the compiled module is not there.
    """
    attributes = vocabulary.attributes
    flags = (CONTROL | UNKNOWN, LSTRIP, RSTRIP)
    special = [
        (token, *(bool(attributes[token] & flag) for flag in flags)) for token in vocabulary.special_token_ids
    ]
    before, behind = vocabulary.added
    model = vocabulary.tokenizer_model.kernel_model(vocabulary, cache_bytes)
    made: Encoder = compiled().Encoder(model, strings_of(vocabulary.tokens), special, before, behind)
    return made


def strings_of(texts: Sequence[str]) -> Any:
    """`texts` as the `Strings` of the compiled module."""
    return texts.strings if isinstance(texts, LazyStrings) else compiled().Strings.of(list(texts))


def tokens_of(token_to_id: Mapping[str, int]) -> Any:
    """What tokens are looked up by, in the order of their ids, as `Strings` ready to be searched."""
    if isinstance(token_to_id, LazyIds):
        return token_to_id.strings
    strings = compiled().Strings.of(sorted(token_to_id, key=token_to_id.__getitem__))
    strings.index()
    return strings


def compiled() -> Any:
    """The compiled module; `RuntimeError` where it is not there."""
    if native is None:
        raise RuntimeError("the compiled engine is not installed")
    return native
