"""Ends a request if the header of its answer takes too long.

The HTTP library limits the time of each read. A server that sends a header line, or `100 Continue`, now and then would
be waited for without end.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import suppress
from threading import Timer
from typing import Any


class AnswerDeadline:
    """Watches one request: it is called as the library's extension `trace`, with each event and what belongs to it."""

    def __init__(self, seconds: float, sockets: list[socket.socket]) -> None:
        """`sockets` are the connections of the client, one of which the request may use. New ones are added."""
        self.has_passed = False
        self._seconds = seconds
        self._sockets = sockets
        self._timer: Timer | None = None

    def __call__(self, event: str, info: Mapping[str, Any]) -> None:
        """Note a new connection, and start or stop the clock."""
        step = event.partition(".")[2]
        if step in ("connect_tcp.complete", "start_tls.complete"):
            self._sockets.append(info["return_value"].get_extra_info("socket"))
        elif step == "receive_response_headers.started":
            self._timer = Timer(self._seconds, self._end)
            self._timer.daemon = True
            self._timer.start()
        elif step.startswith("receive_response_headers.") and self._timer is not None:
            self._timer.cancel()

    def _end(self) -> None:
        """End all connections, since the library does not say which one the request has. Others resume their range."""
        self.has_passed = True
        for each in list(self._sockets):
            with suppress(OSError):  # it is closed
                # The method of a TLS socket would disturb its reader.
                socket.socket.shutdown(each, socket.SHUT_RDWR)
