"""Handles one connection: uvicorn's protocol with a fast path for short requests, and with timeouts.

A task and two ASGI messages per request take longer than encoding a short text. So a request with a short body is
offered to the application as soon as it is complete; one that is not answered at once takes the ordinary way. The
head of such a request is parsed only once if it comes with its body in one read: clients repeat their heads.

Uvicorn waits without limit for the rest of a request, and for a client that does not read its answer; a thousand such
connections would stay open for ever. Its parser does not limit the length of a head either, to which each part that
arrives is appended.

Uvicorn also gives up a client that has shut down its side after sending, which still reads the answer. TCP does not
tell such a client from one that has closed the connection until something is written: a closed connection answers
with a reset, which the next write meets. So while such an answer takes long, the server writes `100 Continue` now and
then, which clients skip (RFC 9110, 15.2).
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

import orjson
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from .failures import RequestError


def _last_answer(status: bytes, failure: RequestError) -> bytes:
    """An error response after which the connection is closed."""
    content = orjson.dumps(failure.to_dict())
    return (
        b"HTTP/1.1 %s\r\nserver: ggufbpe\r\ncontent-type: application/json; charset=utf-8\r\n"
        b"connection: close\r\ncontent-length: %d\r\n\r\n%s" % (status, len(content), content)
    )


MOST_HEAD = 1 << 16  # bytes, plus one read; applies to trailers and chunk headers, too
MOST_KNOWN_HEADS = 1024  # most clients' heads differ in their Content-Length only
_LONGEST_KNOWN_HEAD = 1024  # bytes
_END_OF_HEAD = b"\r\n\r\n"
_FIRST_PROBE = 0.1  # seconds after a client's end of sending; each further interval is twice as long, up to
_LONGEST_PROBE = 5.0
_PROBE = b"HTTP/1.1 100 Continue\r\n\r\n"
_UNKNOWN: tuple[str, dict[bytes, bytes], int] = ("", {}, -1)
_SLOW = _last_answer(b"408 Request Timeout", RequestError(408, "the request did not arrive in time"))
_LONG_HEAD = _last_answer(
    b"431 Request Header Fields Too Large", RequestError(431, "the head of the request is too long")
)
_BAD_REQUEST = _last_answer(b"400 Bad Request", RequestError(400, "the request is not valid HTTP"))
_CODING = _last_answer(
    b"501 Not Implemented",
    RequestError(501, "no Transfer-Encoding but chunked is supported: send plain bytes"),
)
_UPGRADE = _last_answer(
    b"400 Bad Request",
    RequestError(400, "upgrades, as to HTTP/2 or WebSocket, are not supported: leave out the Upgrade header"),
)


class Protocol(HttpToolsProtocol):
    """A connection. `app` is an `Application`."""

    _offered: tuple[str, dict[bytes, bytes]] | None = None  # path and headers of a short request
    _body = b""  # and its body
    _is_coming = False  # whether a request has arrived in part
    _is_head = False  # whether headers that arrive belong to the head of a request
    _unfinished = 0  # bytes since the last complete head or part of a body
    _answered: tuple[str, dict[bytes, bytes]] | None = None  # path and headers, if the last request was short
    _answer_time = 0.0  # of a short request
    _is_stopping = False  # whether the next answer is the last
    _until_read: asyncio.TimerHandle | None = None
    _until_taken: asyncio.TimerHandle | None = None
    _until_probed: asyncio.TimerHandle | None = None
    _is_ended = False  # whether nothing more is read
    _last_words = b""  # to send after the answers to all requests that have arrived

    # ---- short requests -------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_coming = self._is_head = True
        self._unfinished = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header of the head. Trailers are dropped: RFC 9110, 6.5.1 forbids to merge them into the headers.

        The parser leaves white space behind a value, which is no part of it (RFC 9110, 5.5).
        """
        if self._is_head:
            super().on_header(name, value.rstrip(b" \t"))

    def on_headers_complete(self) -> None:
        self._is_head = False
        self._unfinished = 0
        coding = b",".join(value for name, value in self.headers if name == b"transfer-encoding").lower()
        # The parser refuses those that do not end with chunked: they have no end (RFC 9112, 6.3).
        if coding.rpartition(b",")[2].strip() == b"chunked" and coding != b"chunked":
            self._end(_CODING)
            raise ValueError("a transfer coding that is not supported")  # which the parser ends with
        self._offered = None if self._is_stopping else self._offer()
        self._body = b""
        if self.parser.should_upgrade():  # the parser gives no body then
            self._end(_UPGRADE)
        elif self._offered is None:
            self._begin()

    def _begin(self) -> None:
        """Take the ordinary way."""
        super().on_headers_complete()
        while self._cycles and self._cycles[0].response_complete:
            self._cycles.popleft()
        self._cycles.append(self.cycle)
        if self._is_stopping:
            self.cycle.keep_alive = False

    def _offer(self) -> tuple[str, dict[bytes, bytes]] | None:
        """Path and headers of a request that may be answered at once: nothing about it is unusual."""
        app: Any = self.app
        path = app.quick_paths.get(self.url)
        if path is None or self._is_answering() or self.flow.write_paused or self.expect_100_continue:
            return None
        headers = dict(self.headers)
        if [name for name, _ in self.headers].count(b"host") != 1:
            return None
        length = headers.get(b"content-length", b"")
        if not length.isdigit() or len(length) > 8 or int(length) > app.quick_bytes:
            return None
        parser = self.parser
        if parser.get_method() != b"POST" or parser.get_http_version() != "1.1":
            return None
        return (path, headers) if parser.should_keep_alive() and not parser.should_upgrade() else None

    def on_body(self, body: bytes) -> None:
        self._unfinished = 0
        if self._offered is None:
            super().on_body(body)
        else:
            self._body += body

    def on_message_complete(self) -> None:
        self._is_coming = False
        self._unfinished = 0
        self._until_read = _stopped(self._until_read)
        if self.parser.should_upgrade():
            return
        if self._offered is not None:
            app: Any = self.app
            offered, self._offered = self._offered, None
            answer = None if self._is_stopping else app.at_once(*offered, self._body)
            if answer is not None:
                self._answered = offered
                self._write(answer)
                return
            self._begin()
            super().on_body(self._body)
        super().on_message_complete()

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: the client has been told."""

    def send_400_response(self, msg: str) -> None:
        """Tell the client that its data are not HTTP, unless it knows more, and close the connection."""
        if not self._is_ended:
            self._end(_BAD_REQUEST)

    def _write(self, answer: bytes) -> None:
        self.transport.write(answer)
        self.server_state.total_requests += 1
        self._answer_time = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def timeout_keep_alive_handler(self) -> None:
        """Hang up, unless short requests came since the timer was started: none of them starts another."""
        left = self._answer_time + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self.timeout_keep_alive_task = self.loop.call_later(left, self.timeout_keep_alive_handler)
        else:
            super().timeout_keep_alive_handler()

    def _is_answered_by_head(self, data: bytes) -> bool:
        """Answer a short request that is there as a whole, if its head is known; whether it was answered."""
        if not self._is_idle():
            return False
        app: Any = self.app
        end = data.find(_END_OF_HEAD) + len(_END_OF_HEAD)
        path, headers, length = app.known_heads.get(data[:end], _UNKNOWN)
        answer = app.at_once(path, headers, data[end:]) if len(data) - end == length else None
        if answer is None:
            return False
        self._write(answer)
        return True

    def _is_idle(self) -> bool:
        """Whether all requests so far are answered, and nothing of another has arrived."""
        return (
            self.timeout_keep_alive_task is not None
            and not self._is_coming
            and not self._is_stopping
            and not self.flow.write_paused
        )

    def _remember_head(self, data: bytes) -> None:
        """Keep the head of the last request if it was short, and `data` is that request and nothing else."""
        if self._answered is None or self._is_coming:
            return
        path, headers = self._answered
        length = int(headers[b"content-length"])
        head = data[: len(data) - length]
        if head.find(_END_OF_HEAD) == len(head) - len(_END_OF_HEAD) and len(head) <= _LONGEST_KNOWN_HEAD:
            app: Any = self.app
            if len(app.known_heads) >= MOST_KNOWN_HEADS:
                app.known_heads.clear()
            app.known_heads[head] = path, headers, length

    def shutdown(self) -> None:
        """Accept no further request than one that has arrived in part."""
        if self._is_coming and not self._is_answering():
            self._is_stopping = True
        else:
            super().shutdown()

    # ---- timeouts -------------------------------------------------------------------------------

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        # the requests that went the ordinary way, from the first unanswered one on
        self._cycles: deque[RequestResponseCycle] = deque()
        app: Any = self.app
        self._patience = app.settings.read_timeout
        self._until_read = self.loop.call_later(self._patience, self._give_up)

    def data_received(self, data: bytes) -> None:
        if self._is_ended or self._is_answered_by_head(data):
            return
        is_new = not self._is_coming
        self._answered = None
        self._unfinished += len(data)
        super().data_received(data)
        if self._is_ended:
            return
        if is_new:
            self._remember_head(data)
        if self._unfinished > MOST_HEAD and not self.transport.is_closing():
            self._hang_up(_LONG_HEAD)
            return
        # line ends before a request stop uvicorn's timer, too
        is_idle = self.timeout_keep_alive_task is None and not self._is_answering()
        if self._until_read is None and (self._is_coming or is_idle) and not self.transport.is_closing():
            self._until_read = self.loop.call_later(self._patience, self._give_up)

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def pause_writing(self) -> None:
        super().pause_writing()
        self._until_taken = self.loop.call_later(self._patience, self.transport.abort)

    def resume_writing(self) -> None:
        self._until_taken = _stopped(self._until_taken)
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._until_read = _stopped(self._until_read)
        self._until_taken = _stopped(self._until_taken)
        self._until_probed = _stopped(self._until_probed)
        super().connection_lost(exc)
        for cycle in self._cycles:  # uvicorn tells only the last one, but the first is the one that runs
            if not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()

    def _give_up(self) -> None:
        self._until_read = None
        if not self.transport.is_closing():
            self._hang_up(_SLOW)

    def _hang_up(self, answer: bytes) -> None:
        """Close the connection; a request that has arrived in part is told why."""
        self._end(answer if self._is_coming else b"")

    # ---- the end of a connection ----------------------------------------------------------------

    def eof_received(self) -> bool:  # type: ignore[override]  # uvicorn's always hangs up
        """Answer a client that sends nothing more; whether there is something to answer."""
        self._end(b"")
        is_answering = not self.transport.is_closing()
        if is_answering:
            self._until_probed = self.loop.call_later(_FIRST_PROBE, self._probe, _FIRST_PROBE)
        return is_answering

    def _probe(self, waited: float) -> None:
        """Write what a client skips: its connection is lost then if it is not there to read the answer.

        HTTP/1.0 has nothing to skip, so its clients are taken to be gone.
        """
        cycle = next((each for each in self._cycles if not each.response_complete), None)
        if cycle is None or self.transport.is_closing():
            return
        if not cycle.response_started:
            if cycle.scope["http_version"] == "1.0":
                self.transport.close()
                return
            self.transport.write(_PROBE)
        wait = min(2 * waited, _LONGEST_PROBE)
        self._until_probed = self.loop.call_later(wait, self._probe, wait)

    def _end(self, last_words: bytes) -> None:
        """Read nothing more, answer the requests that have arrived as a whole, send the last words, and close."""
        self._is_ended = True
        self._until_read = _stopped(self._until_read)
        if self.pipeline and self.pipeline[0][0].more_body:  # a request without its end, behind another
            self.pipeline.popleft()
            self._cycles.pop()
            self.cycle = self._cycles[-1]
        if self._is_answering() and not self.cycle.more_body:
            self._last_words = self._last_words or last_words
            if not self._last_words:
                self.cycle.keep_alive = False
            return
        if not (self._is_answering() and self.cycle.response_started):
            self.transport.write(last_words)
        self.transport.close()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._is_ended and not self._is_answering() and not self.transport.is_closing():
            self.transport.write(self._last_words)
            self.transport.close()


def _stopped(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    """Cancel a timer, if there is one, and return None to store in its place."""
    if timer is not None:
        timer.cancel()
    return None
