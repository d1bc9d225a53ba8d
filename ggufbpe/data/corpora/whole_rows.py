"""Packed rows that keep documents whole: one that does not fit the rest of a row begins the next, after padding.

    row 0: | document | document | padding | row 1: | document that did not fit | document ...

Padding ends where a row ends, so what is left for the next shard never has any. How much stands before a document
depends only on the lengths of the documents before it: whoever goes over them in order (who writes shards, plans them
for other machines, or checks them) finds the same places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .byte_formats import Layout
from .chunk_encoder import Encoded
from .marked_ids import ENDS

if TYPE_CHECKING:
    from ...tokenizer import Tokenizer


def padding_id(tokenizer: Tokenizer) -> int:
    """Return the id that fills rows: padding, or EOS. `ValueError` if the model has neither."""
    found = tokenizer.eos_id if tokenizer.pad_id is None else tokenizer.pad_id
    if found is None:
        raise ValueError(
            "the model has neither a padding nor an EOS token to fill rows with; leave out whole=True"
        )
    return found


def padding_before(lengths: npt.NDArray[Any], used: int, window: int) -> npt.NDArray[Any]:
    """Return how many ids of padding stand before each document, if the first row has `used` ids already.

    >>> import numpy
    >>> padding_before(numpy.array([3, 4, 1, 9, 1]), 0, 6).tolist()
    [0, 3, 0, 1, 0]
    """
    found = np.zeros(len(lengths), "int64")
    for number, length in enumerate(lengths.tolist()):
        if used and used + length > window:
            found[number] = window - used
            used = 0
        used = (used + length) % window
    return found


def with_padding(encoded: Encoded, used: int, layout: Layout) -> Encoded:
    """Return whole documents with the padding before each counted as its ids; all of `encoded` must be whole."""
    padding = padding_before(encoded.lengths, used, layout.window or 1)
    if not padding.any():
        return encoded._replace(padding=padding)
    every = np.concatenate(encoded.ids)
    begins = np.cumsum(encoded.lengths) - encoded.lengths
    ids = np.insert(every, np.repeat(begins, padding), padding_ids(1, layout))
    if layout.is_marked:
        ids[(begins + np.cumsum(padding))[padding > 0] - 1] |= ENDS
    return encoded._replace(ids=[ids], lengths=encoded.lengths + padding, padding=padding)


def padding_ids(count: int, layout: Layout) -> npt.NDArray[Any]:
    """Return `count` ids of padding, in the type that is held."""
    return np.full(count, layout.padding, layout.held)
