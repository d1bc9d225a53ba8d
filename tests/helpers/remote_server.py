"""A server on the loopback that stands in for far ones: ranges of files, the hub, Ollama's registry, and misbehaviour.

It is the same server under two names, `home` (127.0.0.1) and `cdn` (localhost), which clients take for two. Files are
a few bytes and then zeros, however large. Every request is noted with the bytes that it asked for and was sent.
"""

from __future__ import annotations

import json
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
ZEROS = bytes(1 << 16)


class Line:
    """What all answers come over: while one has it, the others wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free = 0.0  # when nothing is under way any more

    def wait(self, seconds: float) -> None:
        """Return when what takes so long has come."""
        with self._lock:
            self._free = max(self._free, time.monotonic()) + seconds
            end = self._free
        time.sleep(max(end - time.monotonic(), 0))


@dataclass
class Served:
    """What the server has at a path, and how it behaves there."""

    head: bytes = b""
    size: int = 0  # of the whole file; 0 is that of `head`
    headers: dict[str, str] = field(default_factory=lambda: {"ETag": '"one"'})
    has_ranges: bool = True
    refusals: list[tuple[int, dict[str, str]]] = field(default_factory=list)  # what is answered first
    cuts: list[int] = field(default_factory=list)  # bytes after which the line is cut, for one answer each
    changes: Callable[[dict[str, str], int], None] | None = None  # of the headers of an answer, by its number
    latency: float = 0.0  # seconds
    rate: float = 0.0  # bytes in a second, of all answers together; 0 is as fast as it can
    answers: int = 0
    redirect: str = ""
    line: Line = field(default_factory=lambda: Line())

    @property
    def length(self) -> int:
        return self.size or len(self.head)

    def blocks(self, start: int, end: int) -> Iterator[bytes]:
        """The bytes from `start` to `end`, as fast as they may come."""
        step = 1 << 14 if self.rate else 1 << 16
        while start < end:
            stop = min(start + step, end)
            if self.rate:
                self.line.wait((stop - start) / self.rate)
            block = self.head[start:stop]
            yield block + ZEROS[: stop - start - len(block)]
            start = stop


@dataclass
class Request:
    """What was asked."""

    method: str
    host: str
    path: str
    headers: dict[str, str]
    client: int  # the port of the connection's other end
    asked: int = 0  # bytes
    end: int = 0  # of the range
    sent: int = 0


class RemoteServer:
    """The server; `files` are by path, `requests` in the order in which they came.

    With a certificate (a PEM file with its key) it speaks TLS, and notes the `names` that handshakes ask for.
    """

    def __init__(self, certificate: str | None = None) -> None:
        self.files: dict[str, Served] = {}
        self.requests: list[Request] = []
        owner = self

        class Handler(_Handler):
            server_of_test = owner

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self.names: list[str | None] = []
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            context.sni_callback = lambda _, name, __: self.names.append(name)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]
        self.home, self.cdn = f"http://127.0.0.1:{self.port}", f"http://localhost:{self.port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def clear(self) -> None:
        """Forget the files and the requests."""
        self.files.clear()
        self.requests.clear()

    @property
    def asked(self) -> int:
        """Bytes that were asked for in all, by ranges."""
        return sum(request.asked for request in self.requests)

    def put(self, path: str, head: bytes = b"", **how: Any) -> str:
        """A file at a path; returns its address."""
        self.files[path] = Served(head, **how)
        return self.home + path

    def put_hub(self, repository: str, files: dict[str, Served], revision: str = "main") -> None:
        """A repository: its tree, and its files, whose bytes are on the CDN, at a signed address."""
        tree = [
            {"type": "file", "path": name, "size": file.length, "oid": "0" * 40}
            for name, file in files.items()
        ]
        for each in {revision, COMMIT}:
            self.files[f"/api/models/{repository}/tree/{each}"] = Served(
                json.dumps(tree).encode(), headers={"Content-Type": "application/json"}
            )
            for name, file in files.items():
                path = f"/cdn/{repository}/{name}"
                self.files[path] = file
                headers = {
                    "X-Repo-Commit": COMMIT,
                    "X-Linked-Etag": file.headers["ETag"],
                    "X-Linked-Size": str(file.length),
                    "ETag": '"of the pointer"',
                }
                address = f"{self.cdn}{path}?X-Amz-Signature=secret"
                self.files[f"/{repository}/resolve/{each}/{name}"] = Served(headers=headers, redirect=address)

    def put_ollama(self, name: str, tag: str, file: Served, digest: str, **layer: Any) -> None:
        """A model of the registry: its manifest, and its blob, which is on the CDN."""
        model = {
            "mediaType": "application/vnd.ollama.image.model",
            "digest": digest,
            "size": file.length,
            **layer,
        }
        manifest = {
            "schemaVersion": 2,
            "layers": [
                {"mediaType": "application/vnd.ollama.image.license", "digest": "x", "size": 1},
                model,
            ],
        }
        self.files[f"/v2/{name}/manifests/{tag}"] = Served(json.dumps(manifest).encode())
        self.files[f"/v2/{name}/blobs/{digest}"] = Served(redirect=f"{self.cdn}/r2/{digest}?signature=secret")
        self.files[f"/r2/{digest}"] = file


@contextmanager
def remote_server(certificate: str | None = None) -> Iterator[RemoteServer]:
    """A server, until the end of the block."""
    server = RemoteServer(certificate)
    try:
        yield server
    finally:
        server.close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # as servers do; else an answer's end waits for 40 ms
    server_of_test: RemoteServer

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        parts = urlsplit(self.path)  # a whole address where this stands in for a proxy
        host = parts.netloc or self.headers["Host"]
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, host, parts.path, headers, self.client_address[1])
        self.server_of_test.requests.append(request)
        file = self.server_of_test.files.get(parts.path)
        if file is None:
            return self._head(404, {"Content-Length": "0"})
        time.sleep(file.latency)
        if file.refusals:
            status, headers = file.refusals.pop(0)
            return self._head(status, {"Content-Length": "0", **headers})
        if file.redirect:
            return self._head(302, {"Content-Length": "0", "Location": file.redirect, **file.headers})
        self._send(file, request)
        return None

    def _send(self, file: Served, request: Request) -> None:
        start, end, status = 0, file.length, 200
        headers = dict(file.headers)
        said = re.fullmatch(r"bytes=(\d+)-(\d+)", request.headers.get("range", ""))
        if said:
            request.end = int(said[2]) + 1
            request.asked = request.end - int(said[1])
        number, file.answers = file.answers, file.answers + 1
        is_same = request.headers.get("if-range", headers.get("ETag")) == headers.get("ETag")
        if "ETag" in headers and request.headers.get("if-none-match") == headers["ETag"]:
            return self._head(304, headers)
        if said and file.has_ranges and is_same:
            start, end, status = int(said[1]), min(request.end, file.length), 206
            if start >= file.length:
                return self._head(416, {"Content-Length": "0", "Content-Range": f"bytes */{file.length}"})
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{file.length}"
        headers["Content-Length"] = str(end - start)
        if file.changes:
            file.changes(headers, number)
        self._head(status, {name: value for name, value in headers.items() if value})
        if self.command == "HEAD":
            return None
        cut = file.cuts.pop(0) if file.cuts else end - start
        with suppress(OSError):
            for block in file.blocks(start, min(end, start + cut)):
                self.wfile.write(block)
                request.sent += len(block)
        if cut < end - start:
            self.close_connection = True
        return None

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
