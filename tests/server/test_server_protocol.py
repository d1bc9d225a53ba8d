"""How a connection ends: requests that have arrived are answered in their order, unless their client is gone."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn
import uvloop
from uvicorn.server import ServerState

from ggufbpe.server.protocol import Protocol

PATIENCE = 20  # seconds


class Waiting:
    """An application that answers each request with its path, but not before it is told to go on."""

    quick_paths: Mapping[bytes, str] = {}
    settings = SimpleNamespace(read_timeout=PATIENCE)

    def __init__(self) -> None:
        self.known_heads: dict[bytes, Any] = {}
        self.may_answer = asyncio.Event()
        self.has_begun = asyncio.Event()
        self.is_client_gone = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body", False):
            pass
        self.has_begun.set()
        gone = asyncio.ensure_future(receive())
        ready = asyncio.ensure_future(self.may_answer.wait())
        await asyncio.wait((gone, ready), return_when=asyncio.FIRST_COMPLETED)
        if gone.done():
            self.is_client_gone.set()
            return
        gone.cancel()
        body = scope["path"].encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": body})


class Connection:
    """A client's socket, the application, and the protocol that connects them."""

    def __init__(self, app: Waiting, client: socket.socket, protocol: Protocol) -> None:
        self.app = app
        self.client = client
        self.protocol = protocol

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.client, data)

    async def received(self) -> bytes:
        """Everything until the server closes the connection."""
        loop, found = asyncio.get_running_loop(), b""
        while part := await asyncio.wait_for(loop.sock_recv(self.client, 1 << 16), PATIENCE):
            found += part
        return found


def connected(steps: Callable[[Connection], Coroutine[Any, Any, None]]) -> None:
    """Run `steps` with a connection."""

    async def run() -> None:
        loop, app = asyncio.get_running_loop(), Waiting()
        config = uvicorn.Config(app, ws="none", proxy_headers=False, log_config=None)
        config.load()
        config.loaded_app = app  # type: ignore[assignment]
        protocols: list[Protocol] = []

        def protocol() -> Protocol:
            protocols.append(Protocol(config, ServerState(), {}))
            return protocols[-1]

        server = await loop.create_server(protocol, "127.0.0.1", 0)
        with socket.socket() as client:
            client.setblocking(False)
            await loop.sock_connect(client, server.sockets[0].getsockname())
            await until(lambda: bool(protocols))
            try:
                await steps(Connection(app, client, protocols[0]))
            finally:
                protocols[0].transport.abort()
                server.close()
                app.may_answer.set()

    uvloop.run(asyncio.wait_for(run(), 2 * PATIENCE))


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds; `connected` limits the time."""
    while not holds():
        await asyncio.sleep(0.01)


def request(path: str, body: bytes = b"{}", headers: str = "", version: str = "1.1") -> bytes:
    head = f"POST {path} HTTP/{version}\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n{headers}\r\n"
    return head.encode() + body


def statuses_and_bodies(answers: bytes) -> list[tuple[int, bytes]]:
    """The status and the first two bytes of the body of each answer; those of interim answers are left out."""
    found = []
    for answer in answers.split(b"HTTP/1.1 ")[1:]:
        if not answer.startswith(b"100 "):
            found.append((int(answer[:3]), answer.partition(b"\r\n\r\n")[2][:2]))
    return found


GARBAGE = b"GARBAGE\r\n\r\n"
HALF_A_HEAD = b"POST /c HTTP/1.1\r\nhost: l"
BROKEN_CHUNKS = b"POST /c HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"
GZIP = BROKEN_CHUNKS.replace(b"chunked", b"gzip, Chunked").replace(b"zz", b"2\r\nab\r\n0\r\n")
TWICE = BROKEN_CHUNKS.replace(b"host: localhost", b"transfer-encoding: gzip")
UPGRADE = request("/c", headers="connection: upgrade\r\nupgrade: h2c\r\n")
A, B = (200, b"/a"), (200, b"/b")


@pytest.mark.parametrize(
    ("data", "answers"),
    [
        pytest.param(request("/a") + GARBAGE, [A, (400, b'{"')], id="garbage behind a request"),
        pytest.param(request("/a") + request("/b") + GARBAGE, [A, B, (400, b'{"')], id="behind two"),
        pytest.param(request("/a") + BROKEN_CHUNKS, [A, (400, b'{"')], id="broken chunks behind a request"),
        pytest.param(request("/a") + GZIP, [A, (501, b'{"')], id="compressed chunks behind a request"),
        pytest.param(GZIP + request("/b"), [(501, b'{"')], id="compressed chunks"),
        pytest.param(GZIP.replace(b"gzip, ", b"x"), [(400, b'{"')], id="chunks of another kind"),
        pytest.param(GZIP.replace(b"Chunked", b"identity"), [(400, b'{"')], id="no chunks in the end"),
        pytest.param(TWICE, [(501, b'{"')], id="compressed chunks, in two headers"),
        pytest.param(
            GZIP.replace(b"gzip, ", b"").replace(b"host:", b"connection: close\r\nhost:"),
            [(200, b"/c")],
            id="chunks",
        ),
        pytest.param(request("/a") + UPGRADE, [A, (400, b'{"')], id="an upgrade behind a request"),
        pytest.param(request("/a", headers="connection: close\r\n") + GARBAGE, [A], id="behind the last one"),
    ],
)
@pytest.mark.parametrize("is_half_closed", [False, True])
def test_what_is_refused_is_answered_after_the_requests_before_it(
    data: bytes, answers: list[tuple[int, bytes]], is_half_closed: bool
) -> None:
    async def steps(connection: Connection) -> None:
        await connection.send(data)
        if is_half_closed:
            connection.client.shutdown(socket.SHUT_WR)
        await until(lambda: connection.protocol._is_ended or b"close" in data)
        connection.app.may_answer.set()
        assert statuses_and_bodies(await connection.received()) == answers

    connected(steps)


def test_a_request_that_stops_arriving_is_refused_after_the_one_before_it() -> None:
    async def steps(connection: Connection) -> None:
        await connection.send(request("/a") + HALF_A_HEAD)
        await until(lambda: connection.protocol._is_coming)
        connection.protocol._give_up()  # as its timer does
        connection.app.may_answer.set()
        assert statuses_and_bodies(await connection.received()) == [A, (408, b'{"')]

    connected(steps)


def test_a_head_that_is_too_long_is_refused_after_the_request_before_it() -> None:
    async def steps(connection: Connection) -> None:
        await connection.send(request("/a") + HALF_A_HEAD)
        await until(lambda: connection.protocol._is_coming)
        await connection.send(b"a" * 100_000)
        await until(lambda: connection.protocol._is_ended)
        connection.app.may_answer.set()
        assert statuses_and_bodies(await connection.received()) == [A, (431, b'{"')]

    connected(steps)


@pytest.mark.parametrize(
    ("data", "answers"),
    [
        pytest.param(request("/a"), [A], id="a request"),
        pytest.param(request("/a") + request("/b"), [A, B], id="two requests"),
        pytest.param(request("/a") + HALF_A_HEAD, [A], id="a request and half a head"),
        pytest.param(request("/a") + request("/b")[:-1], [A], id="a request and half of another"),
        pytest.param(request("/a", version="1.0"), [A], id="HTTP/1.0"),
        pytest.param(request("/a")[:-1], [], id="half a request"),
    ],
)
def test_who_sends_nothing_more_is_answered(
    data: bytes, answers: list[tuple[int, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ggufbpe.server.protocol._FIRST_PROBE", 2 * PATIENCE)  # the answer comes before

    async def steps(connection: Connection) -> None:
        await connection.send(data)
        connection.client.shutdown(socket.SHUT_WR)
        await until(lambda: connection.protocol._is_ended)
        connection.app.may_answer.set()
        found = await connection.received()
        assert statuses_and_bodies(found) == answers
        assert found.count(b"connection: close\r\n") == bool(answers)

    connected(steps)


def test_who_sends_nothing_more_may_wait_for_long() -> None:
    async def steps(connection: Connection) -> None:
        await connection.send(request("/a"))
        connection.client.shutdown(socket.SHUT_WR)
        await until(lambda: connection.protocol._is_ended)
        for waited in (1, 2, 4):
            connection.protocol._probe(waited)
        connection.app.may_answer.set()
        found = await connection.received()
        assert found.count(b"HTTP/1.1 100 Continue\r\n\r\n") >= 3
        assert statuses_and_bodies(found) == [A]

    connected(steps)


@pytest.mark.parametrize("version", ["1.1", "1.0"])
@pytest.mark.parametrize("is_half_closed", [False, True])
def test_the_request_of_who_goes_away_is_dropped(version: str, is_half_closed: bool) -> None:
    async def steps(connection: Connection) -> None:
        await connection.send(request("/a", version=version))
        await connection.app.has_begun.wait()
        if is_half_closed:
            connection.client.shutdown(socket.SHUT_WR)
            await until(lambda: connection.protocol._is_ended)
        connection.client.close()
        await asyncio.wait_for(connection.app.is_client_gone.wait(), PATIENCE)

    connected(steps)
