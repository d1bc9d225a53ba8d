"""Waits before a request is sent again, unless it was sent too often or its server wants it to wait too long."""

from __future__ import annotations

from collections.abc import Mapping
from time import sleep

from .refusals import BUSY, seconds_to_wait

TRIES = 4  # how often a request is sent
PATIENCE = 60.0  # seconds to wait in all at a server's request


class Retries:
    """Counts how often a request was sent, and how long that was waited for."""

    def __init__(self) -> None:
        self.sent = 1
        self._waited = 0.0

    def wait_for_busy(self, status: int, headers: Mapping[str, str]) -> bool:
        """Wait as long as a busy server says. False, without a wait, if it is not to be asked again."""
        seconds = seconds_to_wait(headers)
        if status not in BUSY or self.sent >= TRIES or self._waited + seconds > PATIENCE:
            return False
        self.wait(seconds)
        return True

    def wait(self, least: float = 0.0) -> None:
        """Wait before the request is sent once more: `least` seconds, or a little longer each time."""
        seconds = max(least, 0.1 * 2 ** (self.sent - 1))
        self.sent += 1
        self._waited += seconds
        sleep(seconds)
