"""Limits the time of a processor that reading and running one template may take."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from ....chat.template.run_limits import watched_by


class OutOfTimeError(Exception):
    """All time is used up. No `ChatError`, which means that a template refuses a chat."""


class TimeLimit:
    """Seconds of this thread, for all that is done within `timed` together."""

    def __init__(self, seconds: float) -> None:
        self.left = seconds

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Take the time of what is done from what is left; `OutOfTimeError` once nothing is."""
        if self.left <= 0:
            raise OutOfTimeError
        start = time.thread_time()

        def look(starts: bool) -> None:
            if time.thread_time() - start > self.left:
                raise OutOfTimeError

        try:
            with watched_by(look):
                yield
        finally:
            self.left -= time.thread_time() - start
