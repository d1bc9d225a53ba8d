"""The one shape of progress callbacks: every public function with `progress=` calls it with a `Progress`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple


class Progress(NamedTuple):
    """How far a call has come. Functions with `progress=` pass one of these to it, now and then, as they work."""

    step: str  # what is being done, such as "read"
    done: int  # how much of it is done, in `unit`
    total: int | None  # how much there is in all; None if that is unknown
    unit: str = "bytes"  # or "merges", "models"
    item: str = ""  # the current file or model
    counts: Mapping[str, int] = {}  # what else is counted so far, such as "documents" and "tokens"

    @property
    def share(self) -> float | None:
        """The share that is done, from 0 to 1; None if the total is unknown."""
        return None if self.total is None else min(self.done / self.total, 1.0) if self.total else 1.0


OnProgress = Callable[[Progress], object]
