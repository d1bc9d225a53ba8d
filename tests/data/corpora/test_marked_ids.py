"""Ids with marks, and the arrays that become of them."""

from __future__ import annotations

import numpy as np
import pytest

from ggufbpe.data.corpora.byte_formats import Layout
from ggufbpe.data.corpora.marked_ids import (
    ENDS,
    IS_WRITTEN,
    arrays_of,
    ended,
    sequence_starts,
    values_of,
    with_marks,
)

IDS = np.array([5, 6, 7, 8, 9, 10])
HELD = ended(with_marks(IDS, np.array([0, 1, 0, 1, 1, 0])), np.array([2, 0, 3]))
LAYOUT = Layout("uint16", "", 3, "labels", True)


def test_marks() -> None:
    assert HELD.tolist() == [5, 6 | IS_WRITTEN | ENDS, 7, 8 | IS_WRITTEN, 9 | IS_WRITTEN | ENDS, 10]
    assert HELD.dtype == np.uint32


@pytest.mark.parametrize(
    ("array", "dtype", "values"),
    [
        ("input_ids", "uint16", IDS.tolist()),
        ("labels", "int32", [-100, 6, -100, 8, 9, -100]),
        ("assistant_masks", "uint8", [0, 1, 0, 1, 1, 0]),
        ("position_ids", "int32", [0, 1, 0, 0, 1, 0]),  # rows of three
    ],
)
def test_values(array: str, dtype: str, values: list[int]) -> None:
    found = values_of(HELD, array, LAYOUT)
    assert (found.tolist(), str(found.dtype)) == (values, dtype)


def test_the_largest_ids_keep_their_value() -> None:
    ids = np.array([ENDS - 1, 0])
    held = ended(with_marks(ids, np.array([1, 1])), np.array([1, 1]))
    for array in ("input_ids", "labels"):
        assert values_of(held, array, Layout("uint32", "", None, "labels")).tolist() == ids.tolist()


@pytest.mark.parametrize(("window", "starts"), [(3, [0, 2, 3, 5]), (6, [0, 2, 5]), (1, list(range(6)))])
def test_where_sequences_begin(window: int, starts: list[int]) -> None:
    assert sequence_starts(HELD, LAYOUT._replace(window=window)).tolist() == starts


def test_nothing() -> None:
    none = np.zeros(0, "uint32")
    assert ended(none, np.array([0, 0])).tolist() == []
    assert sequence_starts(none, LAYOUT).tolist() == []
    for array in ("input_ids", "labels", "assistant_masks", "position_ids"):
        assert values_of(none, array, LAYOUT).tolist() == []


def test_arrays_of_a_layout() -> None:
    assert list(arrays_of(Layout("uint16", "", None))) == ["input_ids"]
    assert list(arrays_of(Layout("uint16", "", None, "mask"))) == ["input_ids", "assistant_masks"]
    assert list(arrays_of(Layout("uint16", "", 4, None, True))) == ["input_ids", "position_ids", "cu_seqlens"]
