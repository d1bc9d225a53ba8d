"""The one shape of progress callbacks: every public function with `progress=` calls it with a `Progress`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple


class Progress(NamedTuple):
    """How far a call has come. Functions with `progress=` pass one of these to it, now and then, as they work.

    `step` is what is being done, such as "read". `done` of `total` is done, in `unit`: "bytes", "merges", "models",
    "texts" or "chats"; `total` is None if it is unknown. `item` is the current file or model, and `counts` is what else
    was counted so far, such as "documents" and "tokens".
    """

    step: str
    done: int
    total: int | None
    unit: str = "bytes"
    item: str = ""
    counts: Mapping[str, int] = {}

    @property
    def share(self) -> float | None:
        """The share that is done, from 0 to 1; None if the total is unknown."""
        return None if self.total is None else min(self.done / self.total, 1.0) if self.total else 1.0


OnProgress = Callable[[Progress], object]
