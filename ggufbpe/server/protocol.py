"""One connection: uvicorn's, with an end to the patience for clients that send or take too slowly.

sockets -> [this file] -> app.py

uvicorn waits for the rest of a request as long as it takes, which a thousand idle connections would make for ever.
"""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .failures import RequestError

READ_TIMEOUT = 20.0  # seconds until a request is there with all of its body, or an answer is taken on

_SLOW = orjson.dumps(RequestError(408, "the request did not come in time").to_dict())
_ANSWER = (
    b"HTTP/1.1 408 Request Timeout\r\ncontent-type: application/json; charset=utf-8\r\n"
    b"connection: close\r\ncontent-length: %d\r\n\r\n%s" % (len(_SLOW), _SLOW)
)


class Protocol(HttpToolsProtocol):
    """A connection with a time limit on each request, and on a client that takes nothing of its answer."""

    _until_read: asyncio.TimerHandle | None = None
    _until_taken: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._expect_request()

    def data_received(self, data: bytes) -> None:
        if self._until_read is None and (self.cycle is None or self.cycle.response_complete):
            self._expect_request()
        super().data_received(data)

    def on_message_complete(self) -> None:
        self._until_read = _stopped(self._until_read)
        super().on_message_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._until_taken = self.loop.call_later(READ_TIMEOUT, self.transport.abort)

    def resume_writing(self) -> None:
        self._until_taken = _stopped(self._until_taken)
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._until_read = _stopped(self._until_read)
        self._until_taken = _stopped(self._until_taken)
        super().connection_lost(exc)

    def _expect_request(self) -> None:
        self._until_read = self.loop.call_later(READ_TIMEOUT, self._give_up)

    def _give_up(self) -> None:
        self._until_read = None
        if self.transport.is_closing():
            return
        if self.cycle is None or not self.cycle.response_started:
            self.transport.write(_ANSWER)
        self.transport.close()


def _stopped(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    """No timer, in place of one that may be running."""
    if timer is not None:
        timer.cancel()
    return None
