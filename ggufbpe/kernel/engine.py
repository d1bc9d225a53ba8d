"""The compiled encoder of a vocabulary.

vocabulary -> tokens, merges (lazy.py) -+
registry entry -> tables.py ------------+-> _native.Encoder -> ids
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..vocab import CONTROL, LSTRIP, RSTRIP, UNKNOWN, Vocabulary
from . import native, tables
from .lazy import LazyIds, LazyStrings

if TYPE_CHECKING:
    from ._native import Encoder


def encoder(vocabulary: Vocabulary, cache_bytes: int) -> Encoder:
    """The encoder of a vocabulary, with a word cache of at most `cache_bytes`.

    `RuntimeError` where the compiled module is not there.
    """
    entry, ids = vocabulary.pre_tokenizer, vocabulary.special_ids
    attributes = vocabulary.attributes
    flags = (CONTROL | UNKNOWN, LSTRIP, RSTRIP)
    special = [
        (token, *(bool(attributes[token] & flag) for flag in flags)) for token in vocabulary.special_token_ids
    ]
    bos, eos = ids["bos"], ids["eos"]
    made: Encoder = _native().Encoder(
        _tokens(vocabulary.token_to_id),
        _strings(vocabulary.tokens),
        _strings(vocabulary.merges),
        tables.splitter(entry),
        entry.byte_encode,
        entry.ignore_merges,
        entry.newline_runs,
        entry.escape_whitespaces,
        vocabulary.tokenizer_model.kernel_step(vocabulary),
        special,
        bos if vocabulary.add_bos and bos is not None else -1,
        eos if vocabulary.add_eos and eos is not None else -1,
        cache_bytes,
    )
    return made


def _strings(texts: Sequence[str]) -> Any:
    return texts.strings if isinstance(texts, LazyStrings) else _native().Strings.of(list(texts))


def _tokens(token_to_id: Mapping[str, int]) -> Any:
    """What tokens are looked up by, in the order of their ids, ready to be searched."""
    if isinstance(token_to_id, LazyIds):
        return token_to_id.strings
    strings = _native().Strings.of(sorted(token_to_id, key=token_to_id.__getitem__))
    strings.index()
    return strings


def _native() -> Any:
    if native is None:
        raise RuntimeError("the compiled engine is not installed")
    return native
