"""One connection: uvicorn's, which answers short requests at once, and has an end to its patience.

sockets -> [this file] -> app.py

A task, an application and two messages for each request take longer than the ids of a short text. So a request whose
body is short is offered to the application as soon as all of it is there; what it does not answer at once goes the
ordinary way. And uvicorn waits for the rest of a request, or for a client that takes nothing of its answer, as long as
it takes; a thousand such connections would stay for ever.
"""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .failures import RequestError

PATIENCE = 20.0  # seconds until a request is there with all of its body, or an answer is taken on

_SLOW = orjson.dumps(RequestError(408, "the request did not come in time").to_dict())
_SLOW_ANSWER = (
    b"HTTP/1.1 408 Request Timeout\r\ncontent-type: application/json; charset=utf-8\r\n"
    b"connection: close\r\ncontent-length: %d\r\n\r\n%s" % (len(_SLOW), _SLOW)
)


class Protocol(HttpToolsProtocol):
    """A connection. `app` is an `Application`."""

    _offered: tuple[str, dict[bytes, bytes]] | None = None  # path and headers of a request that may be short
    _body = b""  # and its body
    _is_coming = False  # a request that is not all there
    _until_read: asyncio.TimerHandle | None = None
    _until_taken: asyncio.TimerHandle | None = None

    # ---- short requests -------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_coming = True

    def on_headers_complete(self) -> None:
        self._offered = self._offer()
        self._body = b""
        if self._offered is None:
            super().on_headers_complete()

    def _offer(self) -> tuple[str, dict[bytes, bytes]] | None:
        """Path and headers if the request may be answered at once: nothing about it is out of the ordinary."""
        app: Any = self.app
        path = app.quick_paths.get(self.url)
        is_busy = self.cycle is not None and not self.cycle.response_complete
        if path is None or is_busy or self.flow.write_paused or self.expect_100_continue:
            return None
        headers = dict(self.headers)
        length = headers.get(b"content-length", b"")
        if not length.isdigit() or len(length) > 8 or int(length) > app.quick_bytes:
            return None
        parser = self.parser
        if parser.get_method() != b"POST" or parser.get_http_version() != "1.1":
            return None
        return (path, headers) if parser.should_keep_alive() and not parser.should_upgrade() else None

    def on_body(self, body: bytes) -> None:
        if self._offered is None:
            super().on_body(body)
        else:
            self._body += body

    def on_message_complete(self) -> None:
        self._is_coming = False
        self._until_read = _stopped(self._until_read)
        if self._offered is not None:
            app: Any = self.app
            answer = app.at_once(*self._offered, self._body)
            self._offered = None
            if answer is not None:
                self._write(answer)
                return
            super().on_headers_complete()
            super().on_body(self._body)
        super().on_message_complete()

    def _write(self, answer: bytes) -> None:
        self.transport.write(answer)
        self.server_state.total_requests += 1
        self._unset_keepalive_if_required()
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )

    # ---- patience -------------------------------------------------------------------------------

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._until_read = self.loop.call_later(PATIENCE, self._give_up)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._until_read is None and (self._is_coming or self._is_idle()):
            self._until_read = self.loop.call_later(PATIENCE, self._give_up)

    def _is_idle(self) -> bool:
        """Whether nothing is answered and no other timer runs: as after line ends that begin no request."""
        is_busy = self.cycle is not None and not self.cycle.response_complete
        return not is_busy and self.timeout_keep_alive_task is None

    def pause_writing(self) -> None:
        super().pause_writing()
        self._until_taken = self.loop.call_later(PATIENCE, self.transport.abort)

    def resume_writing(self) -> None:
        self._until_taken = _stopped(self._until_taken)
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._until_read = _stopped(self._until_read)
        self._until_taken = _stopped(self._until_taken)
        super().connection_lost(exc)

    def _give_up(self) -> None:
        self._until_read = None
        if self.transport.is_closing():
            return
        is_answered = self.cycle is not None and self.cycle.response_started and self._offered is None
        if self._is_coming and not (is_answered and not self.cycle.response_complete):
            self.transport.write(_SLOW_ANSWER)
        self.transport.close()


def _stopped(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    """No timer, in place of one that may be running."""
    if timer is not None:
        timer.cancel()
    return None
