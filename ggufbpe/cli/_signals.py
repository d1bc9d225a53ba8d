"""Signals as exceptions, so that unfinished work is cleaned up."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

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

    `told` is called at the first press.
    """
    was_pressed = False

    def stop(number: int, frame: object) -> None:
        nonlocal was_pressed
        if was_pressed:
            raise KeyboardInterrupt
        was_pressed = True
        told()

    if threading.current_thread() is not threading.main_thread():  # where signals cannot be caught
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, stop)
    try:
        yield lambda: was_pressed
    finally:
        signal.signal(signal.SIGINT, before)
