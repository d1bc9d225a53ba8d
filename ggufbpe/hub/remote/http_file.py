"""Reads ranges of a remote file over HTTP, guarding against hostile and broken servers.

Guards against hostile and broken servers: redirects are followed one by one, credentials are never sent to another
server, and no redirect leads into this machine or its network, except from a host there to itself. Link-local
addresses, where clouds keep secrets, are never asked. Every response must match its request: the range, the length, no
compression, the same file as before. A busy server is asked again when it says, a silent one once more.

What a status such as 404 means for the user is in refusals.py; how the hub and Ollama name files is in huggingface.py
and ollama_registry.py.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Mapping
from time import monotonic
from typing import Any
from urllib.parse import urljoin, urlsplit

from ... import __version__
from ..._util.errors import RemoteError
from ..._util.extras import NotInstalledError, imported
from ...gguf.source import ByteRange
from .answer_deadline import AnswerDeadline
from .hosts import Lookups, origin
from .pinned_transport import PinnedTransport
from .range_stream import RangePart
from .refusals import answer_error
from .retries import TRIES, Retries

TIMEOUT = 10.0  # seconds to connect, until an answer begins, and between two blocks
HEADER_TIMEOUT = 20.0  # seconds until the header of an answer is complete, however it arrives
LEAST = 4096  # bytes that must arrive within the same time
REDIRECTS = 10
SILENT_TRIES = 2  # how often to a server that takes it and sends nothing
_RANGE = re.compile(r"bytes ([0-9]{1,19})-([0-9]{1,19})/([0-9]{1,19})")


class UnchangedError(Exception):
    """The server says that the file has not changed."""


def http_library() -> Any:
    """httpx2, or httpx, which has the same interface and is what older versions of huggingface_hub bring."""
    try:
        return imported("httpx2", "hub", "a remote model")
    except NotInstalledError:
        return imported("httpx", "hub", "a remote model")


class Client:
    """Sends the requests for one model."""

    def __init__(self, name: str, named: str, secret: Mapping[str, str] | None = None) -> None:
        """`name` is what errors call the model; `named` is the address that the user or a setting gave.

        `secret` holds headers for that address's server only.
        """
        self.name = name
        self.connecting = 0.0  # seconds until a new connection could be used, the most so far
        self._http = http_library()
        self._named, self._secret = named, dict(secret or {})
        self._hosts = Lookups()
        self._sockets: list[socket.socket] = []  # of all connections that were made
        transport = PinnedTransport(self._http, self._hosts)
        self._client = self._http.Client(follow_redirects=False, timeout=TIMEOUT, transport=transport)
        self._client.headers.update({"Accept-Encoding": "identity", "User-Agent": f"ggufbpe/{__version__}"})

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def get(self, url: str, headers: Mapping[str, str]) -> Any:
        """The response, 200 to 304, with its body unread. Its `url` is where redirects led."""
        retries, redirects = Retries(), 0
        while True:
            self._require_allowed_host(url)
            secret = self._secret if origin(url) == origin(self._named) else {}
            response = self._sent(url, {**headers, **secret}, retries.sent)
            if response is None:
                retries.wait()
            elif response.is_redirect and response.status_code != 304:
                response.close()
                redirects += 1
                url = self._redirected(url, response.headers.get("Location"), redirects)
            elif response.status_code < 400:
                return response
            else:
                response.close()
                if not retries.wait_for_busy(response.status_code, response.headers):
                    raise answer_error(self.name, response.status_code, url, response.headers)

    def require_allowed(self, url: str) -> None:
        """`RemoteError` if a redirect from the named address to `url`, which another library followed, is refused."""
        self._require_allowed_host(self._named)
        if url != self._named:
            self._redirected(self._named, url, 1)

    def blocks(self, response: Any, skip: int, size: int) -> Iterator[bytes]:
        """`size` bytes of the body from `skip` on, as they arrive. They end early if the connection breaks."""
        came, since, left = 0, monotonic(), size
        body = response.iter_raw()
        try:
            for block in body:
                came += len(block)
                if monotonic() - since > TIMEOUT:
                    if came < LEAST:
                        return
                    came, since = 0, monotonic()
                skipped = min(skip, len(block))
                skip -= skipped
                block = block[skipped : skipped + left]
                left -= len(block)
                if not left and response.status_code == 206:
                    next(body, b"")  # the end of the answer, so that its connection can be used again
                if block:
                    yield block
                if not left:
                    return
        except (self._http.TransportError, self._http.StreamError):
            return

    def _require_allowed_host(self, url: str) -> None:
        """`RemoteError` for a link-local address or a metadata service, whoever gave it."""
        host = _host(url)
        if self._hosts.is_never_asked(host):
            raise RemoteError(
                f"{host} is a link-local address or a cloud's metadata service, which is never asked",
                path=self.name,
                remedy="give the address of a server that has models",
            )

    def _sent(self, url: str, headers: Mapping[str, str], tries: int) -> Any:
        """The response to the request that is sent for the `tries`th time; None if one more may help."""
        begun = monotonic()
        deadline = AnswerDeadline(HEADER_TIMEOUT, self._sockets)

        def note(event: str, info: Mapping[str, Any]) -> None:
            if event.endswith("send_request_headers.started"):
                self.connecting = max(self.connecting, monotonic() - begun)
            deadline(event, info)

        try:
            request = self._client.build_request("GET", url, headers=headers, extensions={"trace": note})
            return self._client.send(request, stream=True)
        except (self._http.TransportError, self._http.InvalidURL, UnicodeError) as error:
            is_late, is_silent = deadline.has_passed, isinstance(error, self._http.ReadTimeout)
            again = self._http.ReadError, self._http.RemoteProtocolError, self._http.ReadTimeout
            if not is_late and isinstance(error, again) and tries < (SILENT_TRIES if is_silent else TRIES):
                return None
            what = f"cannot be reached ({str(error) or type(error).__name__})"
            if is_late:
                what = f"did not finish the header of its answer within {HEADER_TIMEOUT:g} seconds"
            elif is_silent:
                what = f"was asked {tries} times and sent no answer within {TIMEOUT:g} seconds"
            raise RemoteError(
                f"{_host(url) or 'the server'} {what}",
                path=self.name,
                remedy="check the network and the address; models that were read before open with offline=True",
            ) from None

    def _redirected(self, url: str, location: str | None, count: int) -> str:
        """The target of a redirect, if it may be followed."""
        problem, remedy = "", "give the address of the file itself"
        target = _joined(url, location or "")
        parts = urlsplit(target)
        if location is None or parts.scheme not in ("http", "https") or not parts.hostname:
            problem = "a redirect leads nowhere"
        elif count > REDIRECTS:
            problem = f"more than {REDIRECTS} redirects, one after the other"
        elif parts.scheme == "http" and urlsplit(url).scheme == "https":
            problem = f"a redirect leads from https to http, at {parts.hostname}"
        elif not self._hosts.may_lead_to(_host(url), parts.hostname):
            self._require_allowed_host(target)  # so that none that is refused even then is advised below
            problem = f"a redirect leads to {parts.hostname}, which is this machine or its own network"
            remedy = "if that is meant, give that address itself"
        if problem:
            raise RemoteError(problem, path=self.name, remedy=remedy)
        return target


def _host(url: str) -> str:
    return urlsplit(url).hostname or ""


def _joined(url: str, location: str) -> str:
    """`location` resolved against `url`; "" if it is invalid."""
    try:
        target = urljoin(url, location)
        urlsplit(target).port  # noqa: B018 - raises where it is none
    except ValueError:
        return ""
    return target


class HTTPFile:
    """A file at an address, requested in ranges."""

    def __init__(
        self, client: Client, url: str, *, size: int | None = None, known: str | None = None
    ) -> None:
        """`size` is the file's, if known; `known` is its cached version, which may still be current."""
        self.name = client.name
        self.version: str | None = None  # an ETag or a date
        self._client = client
        self._url = url  # then where redirects led to
        self._size, self._known = size, known
        self._has_ranges: bool | None = None  # unknown until the first response

    def open(self, span: ByteRange) -> RangePart:
        """The range. `UnchangedError` if the file still has the known version."""
        headers = {"Range": f"bytes={span.start}-{span.end - 1}"}
        if self._known and self._known.isascii():  # others cannot be sent back
            is_tag = self._known.startswith(('"', "W/"))
            headers["If-None-Match" if is_tag else "If-Modified-Since"] = self._known
        if self.version is not None and self.version.startswith('"') and self.version.isascii():
            headers["If-Range"] = self.version
        response = self._client.get(self._url, headers)
        try:
            return self._checked(response, span)
        except BaseException:
            response.close()
            raise

    @property
    def connecting(self) -> float:
        """The seconds that a new connection takes; 0 before the first."""
        return self._client.connecting

    def check(self) -> None:
        """Do nothing: every range was checked."""

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def _checked(self, response: Any, span: ByteRange) -> RangePart:
        """The part in a response, if it is what was requested."""
        status, headers = response.status_code, response.headers
        if status == 304 and self._known:
            raise UnchangedError
        if headers.get("Content-Encoding", "identity").lower() != "identity":
            raise self._wrong("the server sends the file compressed, although no compression was requested")
        length = headers.get("Content-Length", "")
        if status == 206:
            match = _RANGE.fullmatch(headers.get("Content-Range", "").strip())
            if not match:
                raise self._wrong("the server does not say which range it sends, or of how many bytes")
            start, end, size = int(match[1]), int(match[2]) + 1, int(match[3])
            if start != span.start or not start < end <= min(span.end, size):
                raise self._wrong("the server sends a range other than the one requested")
        elif status == 200:
            if not length.isdecimal():
                is_page = headers.get("Content-Type", "").lower().startswith("text/html")
                unknown = "the server supports no ranges, and does not say how long the file is"
                raise self._wrong("the server sends a web page, not a GGUF" if is_page else unknown)
            start, end = 0, int(length)
            size = end
        else:
            raise answer_error(self.name, status, str(response.url), headers)
        if length and length != str(end - start):
            raise self._wrong(f"the server says that {length} bytes come where {end - start} should")
        self._check_version(headers, size)
        if self._has_ranges and status == 200:
            raise self._wrong("the server sent a range before, and now sends the whole file")
        self._has_ranges = status == 206
        self._url, self._known = str(response.url), None
        skip = span.start - start
        blocks = self._client.blocks(response, skip, end - start - skip)
        return RangePart(ByteRange(span.start, end), blocks, size, response.close)

    def _check_version(self, headers: Mapping[str, str], size: int) -> None:
        """Note the file's version, or check that it has not changed."""
        version = headers.get("ETag") or headers.get("Last-Modified") or ""
        if self.version is None:
            if self._size not in (None, size):
                raise self._wrong(f"the file has {size} bytes, and {self._size} were announced")
            self.version, self._size = version, size
        elif (version, size) != (self.version, self._size):
            raise RemoteError(
                "the file was replaced while it was read", path=self.name, remedy="open it again"
            )

    def _wrong(self, problem: str) -> RemoteError:
        return RemoteError(problem, path=self.name, remedy="download the file another way, and give its path")
