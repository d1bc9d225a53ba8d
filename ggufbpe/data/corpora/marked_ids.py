"""Ids that carry marks in their highest bits until they are written: what the assistant wrote, where a document ends.

    id | IS_WRITTEN if the assistant wrote it | ENDS if it is the last of its document

So masks and boundaries go wherever ids go: into the next shard, into segments, into `unfinished.json`. A shard has
them as arrays of their own beside the ids.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from .byte_formats import Layout

IS_WRITTEN, ENDS = 1 << 31, 1 << 30
IGNORED = -100  # the label of ids that are not trained on: `ignore_index` of torch's cross entropy

MaskForm = Literal["mask", "labels"]
MASK_FORMS: tuple[MaskForm, ...] = get_args(MaskForm)

IDS, MASK, LABELS, POSITIONS, BOUNDARIES = (
    "input_ids",
    "assistant_masks",
    "labels",
    "position_ids",
    "cu_seqlens",
)


def arrays_of(layout: Layout) -> dict[str, str]:
    """The arrays of a shard by the names that transformers and TRL have for them, with their types.

    >>> arrays_of(Layout("uint16", "", 8, "labels", True))
    {'input_ids': 'uint16', 'labels': 'int32', 'position_ids': 'int32', 'cu_seqlens': 'int32'}
    """
    found = {IDS: layout.dtype}
    if layout.mask is not None:
        found |= {LABELS: "int32"} if layout.mask == "labels" else {MASK: "uint8"}
    if layout.has_positions:
        found |= {POSITIONS: "int32", BOUNDARIES: "int32"}
    return found


def values_of(held: npt.NDArray[Any], array: str, layout: Layout) -> npt.NDArray[Any]:
    """Return what one of the arrays of `arrays_of` has for ids with marks; for positions these are whole rows.

    Of `cu_seqlens`, see `sequence_starts`.
    """
    if array == MASK:
        return (held >= IS_WRITTEN).astype("uint8")
    if array == POSITIONS:
        starts = sequence_starts(held, layout)
        begun = np.zeros(len(held), np.int64)
        begun[starts] = starts
        return (np.arange(len(held)) - np.maximum.accumulate(begun)).astype("int32")
    ids = held & (ENDS - 1)
    found = np.where(held >= IS_WRITTEN, ids.astype("int32"), IGNORED) if array == LABELS else ids
    return found.astype(layout.dtype if array == IDS else "int32", copy=False)


def sequence_starts(held: npt.NDArray[Any], layout: Layout) -> npt.NDArray[Any]:
    """Return where documents, or what a row has of them, begin in whole rows of ids with marks, as an int64 array."""
    is_start = np.zeros(len(held) + 1, bool)
    is_start[1:] = held & ENDS
    is_start[:: layout.window or 1] = True
    return np.flatnonzero(is_start[:-1])


def with_marks(ids: npt.NDArray[Any], mask: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return ids with marks at those that `mask` has 1 for."""
    found: npt.NDArray[Any] = np.where(mask, IS_WRITTEN, 0).astype("uint32") | ids.astype("uint32")
    return found


def ended(held: npt.NDArray[Any], lengths: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return documents of these lengths, one after the other, with a mark at the last id of each.

    >>> import numpy
    >>> found = ended(with_marks(numpy.array([5, 6, 7]), numpy.array([0, 1, 0])), numpy.array([2, 0, 1]))
    >>> [(int(token) & (ENDS - 1), bool(token & ENDS), bool(token & IS_WRITTEN)) for token in found]
    [(5, False, False), (6, True, True), (7, True, False)]
    """
    found: npt.NDArray[Any] = held.copy()
    found[lengths.cumsum()[lengths > 0] - 1] |= ENDS
    return found
