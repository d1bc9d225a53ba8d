"""The files of shards that have more arrays than ids."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ggufbpe.data.corpora.byte_formats import Layout
from ggufbpe.data.corpora.marked_ids import BOUNDARIES, IDS, IS_WRITTEN, LABELS, MASK, POSITIONS
from ggufbpe.data.corpora.marked_shards import MarkedBytesWriter, array_file
from ggufbpe.data.corpora.shard_formats import FORMS
from ggufbpe.data.corpora.storage import folder_at

LAYOUT = Layout("uint16", "test", 4, "labels", True)


@pytest.mark.parametrize(
    ("form", "array", "suffix", "infix", "dtype", "window"),
    [
        ("npy", IDS, ".npy", "", "uint16", 4),
        ("npy", LABELS, ".npy", ".labels", "int32", 4),
        ("npy", POSITIONS, ".npy", ".position_ids", "int32", 4),
        ("npy", BOUNDARIES, ".npy", ".cu_seqlens", "int64", None),
        ("megatron", LABELS, ".bin", ".labels", "int32", 4),
    ],
)
def test_files_of_an_array(
    form: str, array: str, suffix: str, infix: str, dtype: str, window: int | None
) -> None:
    own_form, own_infix, layout = array_file(FORMS[form], array, LAYOUT)
    assert (own_form.suffix, own_infix, layout.dtype, layout.window) == (suffix, infix, dtype, window)


def test_only_ids_of_numpy_have_an_index() -> None:
    assert array_file(FORMS["npy"], IDS, LAYOUT)[0].indexes
    assert not array_file(FORMS["npy"], LABELS, LAYOUT)[0].indexes


def test_masks_of_nanotron_have_the_name_that_datatrove_gives_them() -> None:
    form, infix, _ = array_file(FORMS["nanotron"], MASK, Layout("uint16", "test", 4, "mask"))
    assert (form.suffix, infix, form.indexes) == (".ds.loss", "", {})


def test_arrays_are_files_beside_the_ids(tmp_path: Path) -> None:
    layout = Layout("uint16", "test", 2, "mask")
    writer = MarkedBytesWriter(FORMS["npy"], folder_at(str(tmp_path)), "part", layout)
    writer.write(
        [np.array([5, 6 | IS_WRITTEN], "uint32"), np.array([7 | IS_WRITTEN, 8], "uint32")], np.array([2, 2])
    )
    names = {facts.name for facts in writer.finish()}
    assert {"part.npy", "part.mask.npy"} <= names
    assert np.load(tmp_path / "part.npy").tolist() == [[5, 6], [7, 8]]
    assert np.load(tmp_path / "part.mask.npy").tolist() == [[0, 1], [1, 0]]
