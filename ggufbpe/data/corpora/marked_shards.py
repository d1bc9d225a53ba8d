"""Writes shards of ids with marks: what marks say is in arrays of their own beside the ids (marked_ids.py).

Tables have a column for each array. Where ids are raw bytes, each array is in files of the same format, such as
`part-00000.mask.npy`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .byte_formats import BytesWriter, Layout
from .hashed_files import FileFacts
from .marked_ids import BOUNDARIES, IDS, LABELS, MASK, POSITIONS, arrays_of, sequence_starts, values_of
from .row_formats import TableWriter
from .storage import Folder

_INFIX = {IDS: "", MASK: ".mask", LABELS: ".labels", POSITIONS: ".position_ids", BOUNDARIES: ".cu_seqlens"}


def array_file(form: Any, array: str, layout: Layout) -> tuple[Any, str, Layout]:
    """Return the format, what follows the shard's name, and the layout, of the files that have one of its arrays."""
    if array == BOUNDARIES:  # of the whole shard: its rows have different numbers of them
        layout = layout._replace(dtype="int64", window=None)
    else:
        layout = layout._replace(dtype=arrays_of(layout)[array])
    if array != IDS and form.has_header:
        form = form._replace(indexes={})  # rows are those of the ids
    if array == MASK and form.suffix == ".ds":  # datatrove's `save_loss_metadata`
        return form._replace(suffix=".ds.loss", indexes={}), "", layout
    return form, _INFIX[array], layout


class MarkedBytesWriter:
    """Writes each array to files of its own."""

    def __init__(self, form: Any, folder: Folder, stem: str, layout: Layout) -> None:
        self._layout = layout
        self._tokens = 0
        self._writers: dict[str, BytesWriter] = {}
        try:
            for array in arrays_of(layout):
                own_form, infix, own_layout = array_file(form, array, layout)
                self._writers[array] = BytesWriter(own_form, folder, stem + infix, own_layout)
        except BaseException:
            self.discard()
            raise

    def write(self, ids: list[npt.NDArray[Any]], lengths: npt.NDArray[Any]) -> None:
        none = np.zeros(0, np.int64)
        while ids:
            held = ids.pop(0)
            for array, writer in self._writers.items():
                if array == BOUNDARIES:
                    values = sequence_starts(held, self._layout) + self._tokens
                else:
                    values = values_of(held, array, self._layout)
                writer.write([values], none)
            self._tokens += len(held)
        for writer in self._writers.values():
            writer.write([], lengths)

    def finish(self) -> list[FileFacts]:
        if BOUNDARIES in self._writers:
            end = np.array([self._tokens], np.int64)
            self._writers[BOUNDARIES].write([end], end[:0])
        return [facts for writer in self._writers.values() for facts in writer.finish()]

    def discard(self) -> None:
        for writer in self._writers.values():
            writer.discard()


class MarkedTableWriter(TableWriter):
    """Writes a column for each array, to parquet or arrow."""

    def columns(self, held: npt.NDArray[Any], offsets: npt.NDArray[Any]) -> list[Any]:
        return [
            self._boundaries(held)
            if array == BOUNDARIES
            else self.lists(values_of(held, array, self.layout), offsets)
            for array in arrays_of(self.layout)
        ]

    def _boundaries(self, held: npt.NDArray[Any]) -> Any:
        """Where sequences begin in each row, and the row's length."""
        window = self.layout.window or 1
        starts = sequence_starts(held, self.layout)
        first = np.flatnonzero(starts % window == 0)  # of each row
        # the end of a row goes before the first start of the next one
        values = np.insert(starts % window, np.append(first[1:], len(starts)), window)
        begins = first + np.arange(len(first))
        return self.lists(values.astype("int32"), np.append(begins, len(values)))
