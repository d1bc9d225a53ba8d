"""The ASGI application: routes requests and enforces the server's limits.

Short requests are answered at once; others are answered in a thread. JSON endpoints are dispatched here and not by
Starlette, whose requests and routes take as long as encoding a short text. Starlette serves the pages.
"""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

import orjson

from ..chat.template.run_limits import watched_by
from .endpoints import ENDPOINTS, Endpoint
from .failures import RequestError, not_found, to_request_error, too_large
from .guard import Guard, check_host_count
from .metrics import LOG, OTHER, Metrics, log_event
from .pages import PAGES, pages
from .rendering import LATER, GoneError, SlowRequests, TemplateTime
from .request_body import has_field, parsed_body
from .served_models import Models
from .settings import Settings
from .streamed_answers import StreamedAnswer, answer_json, json_or_stream, sent_parts
from .unsupported import NEEDING_WEIGHTS, needs_weights
from .worker_threads import Work

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

MOST_DROPPED = 1 << 26  # bytes of a refused body that are still read
HELD_BODIES = 16  # of the largest size, whether received or still arriving
MOST_LONG_WAITING = 16  # requests for the one thread that does long work
_KNOWN_PATHS = frozenset(path for _, path in (*ENDPOINTS, *NEEDING_WEIGHTS)) | PAGES
_METHODS = frozenset(
    "CONNECT DELETE GET OPTIONS PATCH POST PUT TRACE".split()
)  # any other text may be a secret
_JSON = (b"content-type", b"application/json; charset=utf-8")
_NO_SNIFFING = (b"x-content-type-options", b"nosniff")
_QUICK_HEAD = (
    b"HTTP/1.1 200 OK\r\nserver: ggufbpe\r\ncontent-type: application/json; charset=utf-8\r\n"
    b"x-content-type-options: nosniff\r\ncontent-length: %d\r\n\r\n%s"
)


class Application:
    """A server's answers. Open models and metrics belong to the instance, so a process may have several.

    `at_once` is for the protocol: it makes the whole HTTP response to a short request without starting a task.
    """

    quick_bytes = 4096  # longest body that a quick endpoint answers without a thread
    quick_paths: Mapping[bytes, str] = {
        path.encode(): path
        for (method, path), each in ENDPOINTS.items()
        if each.is_quick and method == "POST"
    }

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.models = Models(
            settings.models, settings.most_open, settings.overrides, settings.mmproj, settings.media_path
        )
        self.metrics = Metrics()
        self._guard = Guard(settings)
        self._slow = SlowRequests(self.metrics.slow.set)
        times = settings.timeout, settings.template_timeout
        ordinary, long = (self.metrics.in_threads.labels(each).set for each in ("ordinary", "long"))
        self._work = Work(settings.threads, settings.most_waiting, *times, self._slow, ordinary)
        self._long_work = Work(1, min(settings.most_waiting, MOST_LONG_WAITING), *times, self._slow, long)
        self.room = HELD_BODIES * settings.most_body  # bytes of bodies that may still be accepted
        # Of short requests; protocol.py keeps them.
        self.known_heads: dict[bytes, tuple[str, Mapping[bytes, bytes], int]] = {}
        self._pages = pages(self.metrics, self.models)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        answer = _Answer(self, scope, receive, send)
        try:
            await answer.make()
        except GoneError:
            answer.status = 499  # as proxies log it
        except asyncio.CancelledError:  # shutdown took too long, or there was a second Ctrl-C
            await answer.refuse(RequestError(503, "the server is shutting down"))
        except Exception as error:
            failure = to_request_error(error)
            if failure.status == 500 and not isinstance(error, RequestError):
                LOG.error("failed", exc_info=error, extra={"told": {"path": answer.known_path}})
            _forget_frames(error)
            await answer.refuse(failure)
        finally:
            answer.end()

    async def _live(self, receive: Receive, send: Send) -> None:
        """Answer the messages of ASGI's lifespan protocol, and close when the server ends in whatever way."""
        await receive()
        await send({"type": "lifespan.startup.complete"})
        try:
            await receive()
        finally:
            self._close()
        await send({"type": "lifespan.shutdown.complete"})

    def _close(self) -> None:
        self._work.close()
        self._long_work.close()

    def at_once(self, path: str, headers: Mapping[bytes, bytes], data: bytes) -> bytes | None:
        """The whole response to a short POST; None for what takes the ordinary way, as every refusal does."""
        if self.settings.logs_requests or b"origin" in headers or b"content-encoding" in headers:
            return None
        start = time.perf_counter()
        try:
            self._guard.check("POST", path, headers)
            content = self.quick_content(ENDPOINTS["POST", path], parsed_body(data))
        except Exception:
            return None
        if content is None:
            return None
        self.metrics.note(path, 200, time.perf_counter() - start, len(data), len(content))
        return _QUICK_HEAD % (len(content), content)

    def quick_content(self, endpoint: Endpoint, body: Any) -> bytes | None:
        """The JSON of an answer if its model is open and native; None if a thread should make it.

        A chat always goes to a thread: its template may loop for seconds.
        """
        if has_field(body, "messages"):
            return None
        tokenizer = self.models.if_open(self.models.chosen(body))
        if tokenizer is None or tokenizer.engine != "native":
            return None
        return answer_json(endpoint.answer(self.models, body))


class _Answer:
    """One request and its answer."""

    def __init__(self, server: Application, scope: Scope, receive: Receive, send: Send) -> None:
        self._start = time.perf_counter()
        self._server = server
        self._scope = scope
        self._receive = receive
        self._send = send
        self._gone: asyncio.Task[None] | None = None
        self._headers: Mapping[bytes, bytes] = dict(scope["headers"])
        self._method: str = "GET" if scope["method"] == "HEAD" else scope["method"]
        self._endpoint: Endpoint | None = ENDPOINTS.get((self._method, scope["path"]))
        self._received = 0
        self._sent = 0
        self._is_begun = False
        self._is_body_coming = self._method == "POST" and b"expect" not in self._headers
        self._told: dict[str, str] = {}  # for the log: the model, and why the request is refused
        self.status = 0

    @property
    def known_path(self) -> str:
        """The path if it is one of the server's, else `OTHER`."""
        path: str = self._scope["path"]
        return path if path in _KNOWN_PATHS else OTHER

    async def make(self) -> None:
        """Answer the request; what goes wrong is raised."""
        guard = self._server._guard
        check_host_count(self._scope.get("http_version", "1.0"), self._scope["headers"])
        guard.check(self._method, self._scope["path"], self._headers)
        if self._endpoint is None:
            if (self._method, self._scope["path"]) in NEEDING_WEIGHTS:
                raise needs_weights(self._scope["path"])
            if self._method == "OPTIONS" and guard.allows(self._headers.get(b"origin")):
                await self._write(204, b"", guard.answer_headers(self._headers, True))
            elif self._method == "GET" and self._scope["path"] in PAGES:
                await self._server._pages(self._scope, self._receive, self._show)
            else:
                raise not_found()
            return
        if self._method == "GET":
            body = dict(parse_qsl(self._scope["query_string"].decode("latin-1")))
            content = await self._content(self._endpoint, b"", body)
        else:
            content = await self._content(self._endpoint, await self._body(), None)
        await self._write(200, content, [_JSON])

    async def _content(self, endpoint: Endpoint, data: bytes, body: Any) -> bytes | StreamedAnswer:
        server = self._server
        if endpoint.is_quick and len(data) <= server.quick_bytes:
            body = parsed_body(data) if body is None else body
            _tell_model(endpoint, server.models, body, self._told)
            content = server.quick_content(endpoint, body)
            if content is not None:
                return content
        work = server._long_work if endpoint.is_long else server._work
        answered = partial(_answered, endpoint, server.models, data, body, self._told)
        return await work.done(answered, self._until_gone)

    def _until_gone(self) -> asyncio.Task[None]:
        """What is done when the client has hung up."""
        if self._gone is None:
            self._gone = asyncio.ensure_future(_disconnected(self._receive))
        return self._gone

    async def _body(self) -> bytes:
        """The body. `RequestError` 413 if it is too long, or its Content-Length says so; 415 if it is compressed."""
        most = self._server.settings.most_body
        if self._headers.get(b"content-encoding", b"").lower() not in (b"", b"identity"):
            raise RequestError(415, "a body with a Content-Encoding is not read: send it uncompressed")
        said = self._headers.get(b"content-length", b"")
        if said.isdigit() and (len(said) > 18 or int(said) > most):
            raise too_large(f"the body has more than {most} bytes")
        parts: list[bytes] = []
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise GoneError
            part: bytes = message.get("body", b"")
            self._received += len(part)
            self._server.room -= len(part)
            if self._received > most:
                raise too_large(f"the body has more than {most} bytes")
            if self._server.room < 0:
                raise RequestError(503, "the bodies of all requests are too large together", LATER)
            if not message.get("more_body", False):
                self._is_body_coming = False
                return b"".join((*parts, part)) if parts else part
            parts.append(part)

    async def refuse(self, failure: RequestError) -> None:
        """Answer with what went wrong, unless a response has begun."""
        self._told["reason"] = failure.reason
        if self._is_begun:
            return
        content = failure.to_dict()
        if self._scope["path"].startswith("/api/"):  # Ollama's form, whichever program the endpoint follows
            content = {"error": failure.message}
        elif self._scope["path"] == "/v1/messages":  # Anthropic's, which has the same fields within
            content = {"type": "error", **content}
        headers = [_JSON, *((name.encode(), value.encode()) for name, value in failure.headers.items())]
        await self._write(failure.status, orjson.dumps(content), headers)

    async def _write(
        self, status: int, content: bytes | StreamedAnswer, headers: list[tuple[bytes, bytes]]
    ) -> None:
        if status != 204:  # a preflight is answered without a body, and has its own headers
            size = content.size if isinstance(content, StreamedAnswer) else len(content)
            headers += [(b"content-length", str(size).encode()), _NO_SNIFFING]
            headers += self._server._guard.answer_headers(self._headers, False)
        await self._noted({"type": "http.response.start", "status": status, "headers": headers})
        last = b""
        for part in sent_parts(content):
            if last:
                gone = self._until_gone()
                await self._noted({"type": "http.response.body", "body": last, "more_body": True})
                await asyncio.sleep(0)  # give other requests a turn, however fast this client reads
                if gone.done():
                    raise GoneError
            last = part
        if self._is_body_coming:
            await self._noted({"type": "http.response.body", "body": last, "more_body": True})
            await self._drop_rest()
            last = b""
        await self._noted({"type": "http.response.body", "body": last})

    async def _drop_rest(self) -> None:
        """Read and drop what is left of a refused body, at most `MOST_DROPPED` bytes of it.

        Clients that send all of a body before they read would get a broken connection in place of the answer.
        """
        with suppress(asyncio.TimeoutError, asyncio.CancelledError):
            await asyncio.wait_for(self._drop(), self._server.settings.read_timeout)

    async def _drop(self) -> None:
        dropped = 0
        while self._is_body_coming and dropped < MOST_DROPPED:
            message = await self._receive()
            dropped += len(message.get("body", b""))
            self._is_body_coming = message.get("more_body", False)

    async def _show(self, message: MutableMapping[str, Any]) -> None:
        """Send a message of a page, which other origins may read as they may read an answer."""
        if message["type"] == "http.response.start":
            cors_headers = self._server._guard.answer_headers(self._headers, False)
            message = {**message, "headers": [*message["headers"], *cors_headers]}
        await self._noted(message)

    async def _noted(self, message: MutableMapping[str, Any]) -> None:
        """Send a message, and note its status and size."""
        if message["type"] == "http.response.start":
            self._is_begun, self.status = True, message["status"]
        else:
            self._sent += len(message.get("body", b""))
        await self._send(message)

    def end(self) -> None:
        """Free the body's room, count the request, and log it if it should be logged."""
        if self._gone is not None:
            self._gone.cancel()
        self._server.room += self._received
        seconds = time.perf_counter() - self._start
        server = self._server
        server.metrics.note(self.known_path, self.status, seconds, self._received, self._sent)
        if server.settings.logs_requests or self.status in (401, 403, 408, 429, 500, 503):
            log_event(
                logging.INFO if self.status < 500 else logging.ERROR,
                "request",
                method=self._method if self._method in _METHODS else OTHER,
                path=self.known_path,
                status=self.status,
                milliseconds=round(seconds * 1000, 3),
                received=self._received,
                sent=self._sent,
                **self._told,
            )


def _forget_frames(error: BaseException | None) -> None:
    """Free what the frames hold of an error and of those before it.

    They hold the future that holds the error: a cycle that would keep the body until it is collected.
    """
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error.__traceback__ = None
        error = error.__context__


async def _disconnected(receive: Receive) -> None:
    """Ends when the client hangs up."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _tell_model(endpoint: Endpoint, models: Models, body: Any, told: dict[str, str]) -> None:
    """Put the name of the model that answers into `told`, if it is one model."""
    if endpoint.takes_model and not has_field(body, "models"):
        with suppress(RequestError):  # a name that no model has may be any text
            told["model"] = models.chosen(body)


def _answered(
    endpoint: Endpoint,
    models: Models,
    data: bytes,
    body: Any,
    told: dict[str, str],
    rendering: TemplateTime,
) -> bytes | StreamedAnswer:
    """The JSON of an answer; `rendering` watches the chat templates that it takes, `told` gets what the log has."""
    body = parsed_body(data) if body is None else body
    _tell_model(endpoint, models, body, told)
    rendering.model = partial(models.chosen, body)
    with watched_by(rendering.look):
        return json_or_stream(endpoint.answer(models, body))
