"""A progress bar on standard error, for commands that may take long.

    a command, which counts what is done -> [this file] -> the terminal

But: `train` has tqdm's, where that is installed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from . import _output

if TYPE_CHECKING:
    from ..remote import Progress

DELAY = 0.3  # seconds before a bar appears, so that short work shows none
INTERVAL = 0.1  # seconds until it is drawn again
FAR_DELAY = 1.0  # seconds that the metadata of a far file may take without a bar


class Bar:
    """A progress bar, if standard error is a terminal and the work takes long enough to wonder."""

    def __init__(self, delay: float = DELAY) -> None:
        """`delay`: seconds before it appears."""
        self._width = _output.error_width()
        self._start = time.monotonic()
        self._last = self._start - INTERVAL + delay
        self._drawn = False

    @property
    def seconds(self) -> float:
        """The time since the work began."""
        return time.monotonic() - self._start

    def is_due(self, *, at_once: bool = False) -> bool:
        """Whether to draw it now; `at_once` is for what begins now and takes long."""
        return self._width is not None and (at_once or time.monotonic() - self._last >= INTERVAL)

    def draw(self, share: float | None, text: str) -> None:
        """Draw what is done, 0 to 1 (None: not known, so no bar), and after it as much of `text` as fits."""
        if self._width is None:
            return
        self._last = time.monotonic()
        if share is not None:
            share = min(share, 1.0)
            length = max(min(self._width - 50, 30), 5)
            filled = round(share * length)
            text = f"{'#' * filled}{'.' * (length - filled)} {share:4.0%} {text}"
        _output.flush()
        sys.stderr.write(f"\r{text[: self._width - 1]}\x1b[K")
        sys.stderr.flush()
        self._drawn = True

    def clear(self) -> None:
        """Take it away, before other lines are written; it may come back."""
        if self._drawn:
            self._drawn = False
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def far_progress() -> Callable[[Progress | None], None]:
    """What shows how far the reading of a far file is, and takes the bar away at its end."""
    from ..errors import escape_invisible
    from ..wording import in_bytes

    bar = Bar(FAR_DELAY)

    def show(progress: Progress | None) -> None:
        if progress is None:
            bar.clear()
        elif bar.is_due():
            share = progress.received / max(progress.expected, 1)
            bar.draw(share, f"{in_bytes(progress.received)} of {escape_invisible(progress.name)}")

    return show
