"""Shows a progress bar on standard error, for commands that may take long."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING

from ..analysis.views import terminal
from . import _output

if TYPE_CHECKING:
    from ..hub.model_location import ModelLocation
    from ..hub.remote.range_stream import RemoteProgress

PATIENCE = 1.0  # seconds before work without a bar is named
SILENCE = 3.0  # seconds before a line says, where nothing can be drawn, that a server is waited for
DELAY = 0.3  # seconds before a bar appears, so that short work shows none
INTERVAL = 0.1  # seconds between redraws


class Bar:
    """A progress bar, if standard error is a terminal and the work takes long enough to wonder."""

    def __init__(self) -> None:
        self._width = _output.error_width()
        self._start = time.monotonic()
        self._last = self._start - INTERVAL + DELAY

    @property
    def seconds(self) -> float:
        """The time since the work began."""
        return time.monotonic() - self._start

    def is_due(self, *, at_once: bool = False) -> bool:
        """Whether to draw it now; `at_once` is for work that starts now and takes long."""
        return self._width is not None and (at_once or time.monotonic() - self._last >= INTERVAL)

    def draw(self, share: float | None, text: str) -> None:
        """Draw the share that is done, 0 to 1 (None: unknown, so no bar), then as much of `text` as fits."""
        if self._width is None:
            return
        self._last = time.monotonic()
        if share is not None:
            share = min(share, 1.0)
            length = max(min(self._width - 50, 30), 5)
            filled = round(share * length)
            text = f"{'#' * filled}{'.' * (length - filled)} {share:4.0%} {text}"
        _output.draw_bar(text[: self._width - 1])

    def clear(self) -> None:
        """Erase it before a line of standard output, or at the end; it may be drawn again."""
        _output.erase_bar()


def waiting_for(doing: str, model: str | ModelLocation) -> AbstractContextManager[None]:
    """`waiting` for work on a model; a remote one has a bar of its own."""
    if not isinstance(model, str) and model.remote:
        return nullcontext()
    return waiting(f"{doing} {terminal.one_line(os.path.basename(os.fspath(model)))}")


def waiting(for_what: str) -> AbstractContextManager[None]:
    """Name on the terminal what takes more than a second, with the seconds so far; erased at the end.

    For work whose length is unknown. Nothing else may be written to standard error meanwhile.
    """
    return _drawn_late(lambda bar: bar.draw(None, f"{for_what} ... {bar.seconds:.0f} s"))


@contextmanager
def _drawn_late(draw: Callable[[Bar], None]) -> Iterator[None]:
    """Call `draw` at intervals once the block has taken a second, whatever it waits for."""
    if _output.error_width() is None:
        yield
        return
    from threading import Event, Thread

    bar, is_done = Bar(), Event()

    def show() -> None:
        pause = PATIENCE
        while not is_done.wait(pause):
            draw(bar)
            pause = INTERVAL

    thread = Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_done.set()
        thread.join()
        bar.clear()


@contextmanager
def _told_late(latest: Callable[[], RemoteProgress | None]) -> Iterator[None]:
    """Say in a line on standard error, once, that nothing has come of a remote file for some seconds."""
    from threading import Timer

    from .._util.errors import escape_invisible

    def tell() -> None:
        if (now := latest()) is not None and not now.received:
            _output.note(f"ggufbpe: waiting for an answer: {escape_invisible(now.name)}")

    timer = Timer(SILENCE, tell)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def duration(seconds: float) -> str:
    """The remaining time, in words.

    >>> duration(75), duration(4000)
    ('1:15 left', '1:06 h left')
    """
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02} left" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02} h left"


def remote_progress() -> Callable[[RemoteProgress | None], None]:
    """What draws the progress of reading a remote file after a second, also while no byte has come yet."""
    from .._util.errors import escape_invisible
    from .._util.wording import in_bytes

    latest: RemoteProgress | None = None
    shown = ExitStack()

    def draw(bar: Bar) -> None:
        if (now := latest) is None:
            return
        name = escape_invisible(now.name)
        if now.received:
            bar.draw(now.received / max(now.expected, 1), f"{in_bytes(now.received)} of {name}")
        else:
            bar.draw(None, f"asking for {name} ... {bar.seconds:.0f} s")

    def show(progress: RemoteProgress | None) -> None:
        nonlocal latest
        is_first, latest = latest is None, progress
        if progress is None:
            shown.close()
        elif is_first and _output.error_width() is None:
            shown.enter_context(_told_late(lambda: latest))
        elif is_first:
            shown.enter_context(_drawn_late(draw))

    return show
