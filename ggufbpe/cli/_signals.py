"""Signals as exceptions, so that unfinished work is cleaned up."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

_PATIENCE = 2.0  # seconds
EXIT_TERMINATED = 143  # 128 and the number of SIGTERM, as a shell says it


@contextmanager
def termination_as_exit() -> Iterator[None]:
    """SIGTERM ends the program as an exception, so that no half copy stays behind."""

    def leave(number: int, frame: object) -> NoReturn:
        sys.exit(EXIT_TERMINATED)

    if threading.current_thread() is not threading.main_thread():  # where signals cannot be caught
        yield
        return
    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def interruption_as_stop(told: Callable[[], None]) -> Iterator[Callable[[], bool]]:
    """Yield what says whether Ctrl-C was pressed, so that work ends with what there is; pressed again, it interrupts.

    `told` is called at the first press. Work that then does not ask within some seconds, because it hangs, is
    interrupted as well.
    """
    was_pressed = False

    def stop(number: int, frame: object) -> None:
        nonlocal was_pressed
        if was_pressed or number != signal.SIGINT:
            raise KeyboardInterrupt
        was_pressed = True
        _wake_after(_PATIENCE)
        with suppress(RuntimeError):  # standard error was being written to
            told()

    def is_stopped() -> bool:
        if was_pressed:
            _wake_after(0)
        return was_pressed

    if threading.current_thread() is not threading.main_thread():  # where signals cannot be caught
        yield lambda: False
        return
    numbers = [signal.SIGINT, *([signal.SIGALRM] if hasattr(signal, "SIGALRM") else [])]
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield is_stopped
    finally:
        _wake_after(0)
        for number, handler in before.items():
            signal.signal(number, handler)


def _wake_after(seconds: float) -> None:
    """Send SIGALRM after some seconds, never for 0; not on Windows, which has none."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)
