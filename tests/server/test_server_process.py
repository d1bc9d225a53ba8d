"""`ggufbpe serve` as a process: what comes over sockets, official clients, logs, and how it ends."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest
import uvicorn
import uvloop
from conftest import GPT2
from stores import ollama_layer, ollama_model
from uvicorn.server import ServerState

from ggufbpe import Tokenizer
from ggufbpe.server.app import Application
from ggufbpe.server.protocol import Protocol
from ggufbpe.server.run import listening_sockets
from ggufbpe.server.settings import Settings

MESSAGES = [{"role": "user", "content": "What is 2 + 2?"}]


class Server:
    """A process that serves GPT-2's vocabulary, and its address."""

    def __init__(self, *flags: str, program: Sequence[str] = ("-m", "ggufbpe")) -> None:
        command = [sys.executable, *program, "serve", "-m", str(GPT2), "--port", "0", *flags]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        assert line.startswith("ggufbpe: listening at http://127.0.0.1:"), line
        self.url = line.split()[-1]
        self.port = urlsplit(self.url).port

    def ask(self, path: str, body: Any = None) -> Any:
        """The JSON of an answer."""
        data = None if body is None else json.dumps(body).encode()
        with urlopen(Request(self.url + path, data), timeout=20) as answer:
            return json.load(answer)

    def numbers(self) -> str:
        """Its metrics."""
        with urlopen(f"{self.url}/metrics", timeout=20) as answer:
            return str(answer.read().decode())

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def exchange(self, *parts: bytes, pause: float = 0.05) -> bytes:
        """What comes back for parts sent one by one, until the server hangs up, or nothing comes for a while."""
        with self.connect() as connection:
            for part in parts:
                connection.sendall(part)
                time.sleep(pause)
            if not parts[-1]:
                connection.shutdown(socket.SHUT_WR)
            return everything(connection)

    def stop(self) -> tuple[int, list[str]]:
        """End it by SIGTERM; the exit code, and the lines of its log."""
        self.process.send_signal(signal.SIGTERM)
        return self.ended()

    def ended(self) -> tuple[int, list[str]]:
        """Wait for its end; the exit code, and the lines of its log."""
        _, log = self.process.communicate(timeout=40)
        return self.process.returncode, log.splitlines()


def everything(connection: socket.socket, patience: float = 3) -> bytes:
    connection.settimeout(patience)
    found = b""
    try:
        while part := connection.recv(1 << 16):
            found += part
    except TimeoutError:
        found += b" and then nothing"
    except ConnectionResetError:
        pass
    return found


def post(body: bytes, path: str = "/tokenize", headers: str = "", version: str = "1.1") -> bytes:
    """The bytes of a request."""
    length = (
        ""
        if "transfer-encoding" in headers or "content-length" in headers
        else f"content-length: {len(body)}\r\n"
    )
    return f"POST {path} HTTP/{version}\r\nhost: localhost\r\n{length}{headers}\r\n".encode() + body


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    found = Server("--read-timeout", "1", "--log-requests", "--max-body", "1")
    yield found
    found.stop()


@pytest.fixture(scope="module")
def quick_server() -> Iterator[Server]:
    """One that logs no requests, and so answers short ones at once."""
    found = Server("--read-timeout", "1", "--max-body", "1")
    yield found
    found.stop()


CLOSE = "connection: close\r\n"
BODY = b'{"content": "Hello world"}'
IDS = b'{"tokens":[15496,995]}'
OK = [200]
LONG = [b"a" * 50_000] * 2
HEADERS = [b"x: a\r\n" * 10_000] * 2
CHUNKS = post(b"", headers="transfer-encoding: chunked\r\n")


@pytest.mark.slow
@pytest.mark.parametrize("which", ["server", "quick_server"])
@pytest.mark.parametrize(
    ("parts", "statuses"),
    [
        pytest.param([post(BODY, headers=CLOSE)], OK, id="a request"),
        pytest.param([post(BODY), post(BODY, headers=CLOSE)], OK * 2, id="two requests"),
        pytest.param([post(BODY) + post(BODY) + post(BODY, headers=CLOSE)], OK * 3, id="three at once"),
        pytest.param(
            [post(BODY) + post(b'{"texts": "a"}', "/v1/count") + post(BODY, headers=CLOSE)],
            OK * 3,
            id="three at once, one of them longer",
        ),
        pytest.param([b"not HTTP\r\n\r\n"], [400], id="no head"),
        pytest.param([post(BODY, version="1.0")], OK, id="1.0"),
        pytest.param(
            [post(BODY)[:-5], post(BODY)[-5:], post(BODY, headers=CLOSE)], OK * 2, id="a body in two parts"
        ),
        pytest.param([b"\r\n", post(BODY, headers=CLOSE)], OK, id="a line end before it"),
        pytest.param(
            [post(BODY), post(BODY)[:-5], post(BODY)[-5:], post(BODY, headers=CLOSE)],
            OK * 3,
            id="a known head with half of its body",
        ),
        pytest.param(
            [post(BODY), post(BODY) * 2 + post(BODY, headers=CLOSE)], OK * 4, id="three with a known head"
        ),
        pytest.param([post(BODY), post(BODY), b"and more"], [200, 200, 400], id="more after a known head"),
        pytest.param(
            [post(BODY), post(b"{" + BODY[1:-1] + b"]"), post(BODY, headers=CLOSE)],
            [200, 400, 200],
            id="what is refused, with a known head",
        ),
        pytest.param([post(BODY), post(BODY)[:-26]], [200, 408], id="a known head without its body"),
        pytest.param([b"\r\n" + post(BODY), post(BODY, headers=CLOSE)], OK * 2, id="a line end in the read"),
        pytest.param(
            [post(b"1a\r\n" + BODY + b"\r\n0\r\n\r\n", headers="transfer-encoding: chunked\r\n" + CLOSE)],
            OK,
            id="in chunks",
        ),
        pytest.param(
            [post(b"", headers="expect: 100-continue\r\ncontent-length: 26\r\n" + CLOSE), BODY],
            [100, 200],
            id="after a question",
        ),
        pytest.param([post(BODY), b"and more"], [200, 400], id="a body too long"),
        pytest.param([post(BODY, headers="content-length: 40\r\n")], [408], id="a body too short"),
        pytest.param([post(BODY, headers="content-length: 9999\r\n")], [408], id="a long body too short"),
        pytest.param([post(BODY, "/v1/count", "content-length: 40\r\n")], [408], id="another body too short"),
        pytest.param([post(BODY, headers="content-length: -1\r\n")], [400], id="a length below zero"),
        pytest.param(
            [post(BODY, headers="content-length: 2000000\r\n" + CLOSE)], [413], id="a body too large"
        ),
        pytest.param([b"POST /tokenize HTTP/1.1\r\nhost: localh"], [408], id="half a head"),
        pytest.param([b"POST /tokenize HTTP/1.1\r\nx: ", *LONG], [431], id="a header without an end"),
        pytest.param([b"POST /tokenize HTTP/1.1\r\n", *HEADERS], [431], id="headers without an end"),
        pytest.param([b"POST /", *LONG], [431], id="an address without an end"),
        pytest.param([CHUNKS, b"0\r\nx: ", *LONG], [431], id="a trailer without an end"),
        pytest.param([CHUNKS, b"1;x=", *LONG], [431], id="the head of a chunk without an end"),
        pytest.param([post(BODY), b"POST /tok"], [200, 408], id="a request and half a head"),
        pytest.param([b"\r\n"], [], id="a line end"),
        pytest.param([post(BODY)[:-5], b""], [], id="who hangs up"),
        pytest.param([post(BODY, headers="upgrade: h2c\r\nconnection: upgrade\r\n")], [400], id="an upgrade"),
        pytest.param([b"\x16\x03\x01\x02\x00"], [400], id="TLS"),
    ],
)
def test_what_comes_over_a_socket(
    request: pytest.FixtureRequest, which: str, parts: list[bytes], statuses: list[int]
) -> None:
    found = request.getfixturevalue(which).exchange(*parts)
    lines = [line for line in found.split(b"\r\n") if b"HTTP/1.1 " in line]
    assert [int(line.partition(b"HTTP/1.1 ")[2][:3]) for line in lines] == statuses
    assert found.count(IDS) == (statuses.count(200) - (b"counts" in found))


@pytest.fixture(scope="module")
def guarded_server() -> Iterator[Server]:
    """A server that asks for a key."""
    found = Server("--api-key", "other, secret ")
    yield found
    found.stop()


def raw_request(*headers: str, trailers: str = "", version: str = "1.1") -> bytes:
    """A chunked POST whose head has exactly these headers."""
    head = "".join(f"{each}\r\n" for each in (*headers, "transfer-encoding: chunked", "connection: close"))
    start = f"POST /tokenize HTTP/{version}\r\n{head}\r\n"
    return start.encode() + b"%x\r\n%s\r\n0\r\n%s\r\n" % (len(BODY), BODY, trailers.encode())


KEY = "x-api-key: secret"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("request_", "status"),
    [
        pytest.param(raw_request("host: localhost", KEY), 200, id="a key"),
        pytest.param(raw_request("host: localhost", trailers=f"{KEY}\r\n"), 401, id="a key in a trailer"),
        pytest.param(
            raw_request("host: localhost", trailers="authorization: Bearer secret\r\n"),
            401,
            id="Authorization in a trailer",
        ),
        pytest.param(
            raw_request("host: evil.example", KEY, trailers="host: localhost\r\n"),
            403,
            id="a host in a trailer",
        ),
        pytest.param(
            raw_request("host: localhost", KEY, trailers="host: evil.example\r\norigin: null\r\n"),
            200,
            id="trailers are dropped",
        ),
        pytest.param(raw_request("host: localhost", f"{KEY} \t"), 200, id="white space after a key"),
        pytest.param(raw_request("host: localhost \t", KEY), 200, id="white space after a host"),
        pytest.param(raw_request("host: localhost", "host: localhost", KEY), 400, id="two hosts"),
        pytest.param(
            raw_request("host: evil.example", "host: localhost", KEY), 400, id="two hosts that differ"
        ),
        pytest.param(raw_request(KEY), 400, id="no host"),
        pytest.param(
            post(BODY, headers=f"host: localhost\r\n{KEY}\r\nconnection: close\r\n"),
            400,
            id="two hosts of a short request",
        ),
        pytest.param(
            post(BODY, headers=f"{KEY}\r\nconnection: close\r\n", version="1.0").replace(
                b"host: localhost\r\n", b""
            ),
            200,
            id="no host in HTTP/1.0",
        ),
    ],
)
def test_only_the_head_of_a_request_lets_it_in(guarded_server: Server, request_: bytes, status: int) -> None:
    found = guarded_server.exchange(request_)
    assert found.startswith(b"HTTP/1.1 %d " % status)
    if status != 200:
        assert "error" in json.loads(found.partition(b"\r\n\r\n")[2])


def test_clients_that_send_before_they_read_learn_why_a_body_is_refused(quick_server: Server) -> None:
    """As Python's do: what they still send when the connection is closed breaks it."""
    for _ in range(3):
        with pytest.raises(HTTPError) as error:
            urlopen(Request(f"{quick_server.url}/tokenize", b"a" * (3 << 20)), timeout=20)
        assert error.value.code == 413
        assert "more than 1048576 bytes" in json.load(error.value)["error"]["message"]


def test_many_connections_at_once(quick_server: Server) -> None:
    """Once its model is open: until then, requests wait, and of more than 256 the others get 429."""
    first = quick_server.connect()
    first.sendall(post(BODY, headers=CLOSE))
    assert IDS in everything(first)
    first.close()
    connections = [quick_server.connect() for _ in range(300)]
    for connection in connections:
        connection.sendall(post(BODY, headers=CLOSE))
    assert [IDS in everything(connection) for connection in connections] == [True] * 300
    for connection in connections:
        connection.close()


def test_who_comes_with_others_is_accepted_before_those_are_served_twice() -> None:
    """48 clients wait; between two turns of the loop, connections that are accepted may be served."""
    turns_at: list[int] = []

    class Accepted(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            turns_at.append(turns)

    turns = 0

    async def accept() -> None:
        nonlocal turns
        loop = asyncio.get_running_loop()
        sockets = listening_sockets(Settings({"gpt2": str(GPT2)}, port=0))
        clients = [socket.create_connection(sockets[0].getsockname()) for _ in range(48)]
        servers = [await loop.create_server(Accepted, sock=each) for each in sockets]
        while len(turns_at) < len(clients):
            turns += 1
            await asyncio.sleep(0)
        for each in (*servers, *clients, *sockets):
            each.close()

    uvloop.run(accept())
    assert turns_at[-1] - turns_at[0] < 48 / 8


class Clock(asyncio.SelectorEventLoop):
    """A loop whose timers are run by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.timers: list[asyncio.TimerHandle] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Any, *args: Any, context: Any = None) -> asyncio.TimerHandle:
        self.timers.append(asyncio.TimerHandle(self.now + delay, callback, args, self, context))
        return self.timers[-1]

    def go_to(self, now: float) -> None:
        self.now = now
        for timer in [each for each in self.timers if each.when() <= now]:
            self.timers.remove(timer)
            if not timer.cancelled():
                timer._run()


class Taken(asyncio.Transport):
    """What a connection writes."""

    answers = 0
    is_closed = False

    def write(self, data: Any) -> None:
        self.answers += data.count(IDS)

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def connection() -> Iterator[tuple[Clock, Protocol, Taken]]:
    """One that is hung up after 30 seconds without a request."""
    app, clock, taken = Application(Settings({"gpt2": str(GPT2)})), Clock(), Taken()
    app.models.named("gpt2")
    config = uvicorn.Config(app, ws="none", timeout_keep_alive=30, proxy_headers=False, log_config=None)
    config.load()
    found = Protocol(config, ServerState(), {}, clock)
    found.connection_made(taken)
    yield clock, found, taken
    clock.close()


def test_heads_that_are_known_are_few(
    connection: tuple[Clock, Protocol, Taken], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ggufbpe.server.protocol.MOST_KNOWN_HEADS", 3)
    _, protocol, taken = connection
    for number in range(8):
        for _ in range(2):
            protocol.data_received(post(BODY, headers=f"x: {'a' * number * 200}\r\n"))
        assert 0 < len(protocol.app.known_heads) <= 3
    assert taken.answers == 16


def test_a_connection_is_idle_from_its_last_short_request_on(
    connection: tuple[Clock, Protocol, Taken],
) -> None:
    clock, protocol, taken = connection
    closed = []
    for now in (0, 20, 40, 69, 71):
        clock.go_to(now)
        closed.append(taken.is_closed)
        if now <= 40:
            protocol.data_received(post(BODY))
    assert (closed, taken.answers) == ([False] * 4 + [True], 3)


def test_texts_of_every_length_have_the_same_ids(quick_server: Server) -> None:
    """Short ones are answered at once, long ones by threads."""
    tok = Tokenizer.from_gguf(GPT2)
    texts = ["Hello wörld 者 " * count for count in (0, 1, 100, 300, 1000, 30_000)]
    with ThreadPoolExecutor(8) as pool:
        found = list(
            pool.map(lambda text: quick_server.ask("/tokenize", {"content": text})["tokens"], texts * 3)
        )
    assert found == [tok.encode(text) for text in texts] * 3


@pytest.mark.slow
def test_a_client_that_takes_nothing_is_dropped(quick_server: Server) -> None:
    with quick_server.connect() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        connection.sendall(post(json.dumps({"content": "a b " * 200_000, "with_pieces": True}).encode()))
        time.sleep(3)
        found = everything(connection)
    assert 0 < len(found) < length_of(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/tokenize", {"content": " a" * 450_000, "with_pieces": True}),
        ("/v1/tokens", {"text": " a" * 450_000}),
    ],
)
def test_a_client_that_is_slow_gets_all_of_its_answer(quick_server: Server, path: str, body: Any) -> None:
    """It takes longer than the server waits for one that takes nothing."""
    found = b""
    with quick_server.connect() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        connection.sendall(post(json.dumps(body).encode(), path, CLOSE))
        while part := connection.recv(1 << 18):
            found += part
            time.sleep(len(part) / 4e6)
    assert len(found.partition(b"\r\n\r\n")[2]) == length_of(found)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        pytest.param("/tokenize", {"content": " a" * 450_000, "with_pieces": True}, id="streamed"),
        pytest.param("/v1/tokens", {"text": " a" * 450_000}, id="made as a whole"),
    ],
)
def test_an_answer_ends_when_its_client_hangs_up(quick_server: Server, path: str, body: Any) -> None:
    """Nobody is there when most of it would be made, and it is not counted as answered."""
    gone = re.compile(rf'requests_total{{endpoint="{path}",status="499"}} (.*)').findall
    before = gone(quick_server.numbers())
    with quick_server.connect() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        connection.sendall(post(json.dumps(body).encode(), path))
        connection.recv(1000)
    deadline = time.monotonic() + 20
    while gone(quick_server.numbers()) == before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert gone(quick_server.numbers()) == [str(float(before[0] if before else 0) + 1)]


@pytest.mark.slow
def test_who_hangs_up_with_requests_behind_the_one_that_runs() -> None:
    """The one that runs is given up, those behind it never start, and nothing is logged as a failure."""
    server = Server("--max-body", "32")
    slow = "".join(map(chr, range(0x4E00, 0x9000))) * 400  # takes about a second
    first = post(json.dumps({"texts": slow}, ensure_ascii=False).encode(), "/v1/count")
    counted = re.compile(r'requests_total{endpoint="/v1/count",status="(.*)"} (.*)').findall
    with server.connect() as connection:
        connection.sendall(first + post(BODY, "/v1/count") * 20)
    deadline = time.monotonic() + 20
    while not counted(server.numbers()) and time.monotonic() < deadline:
        time.sleep(0.05)
    found = counted(server.numbers())
    _, log = server.stop()
    assert (found, [line for line in log if '"error"' in line]) == ([("499", "1.0")], [])


@pytest.mark.slow
def test_a_second_ctrl_c_ends_what_runs() -> None:
    """Its client gets an answer, and the log has no traceback."""
    server = Server()
    template = "{% macro m(n) %}{% if n %}{{ m(n-1) }}{{ m(n-1) }}{% endif %}{% endmacro %}{{ m(60) }}"
    body = json.dumps({"messages": MESSAGES, "chat_template": template}).encode()  # takes some seconds
    with server.connect() as connection:
        connection.sendall(post(body, headers="expect: 100-continue\r\n").removesuffix(body))
        assert connection.recv(100).startswith(b"HTTP/1.1 100 ")  # so it is at work
        connection.sendall(body)
        for _ in range(2):
            server.process.send_signal(signal.SIGINT)
            time.sleep(0.5)
        answer = everything(connection, 20)
    code, log = server.ended()
    status, _, content = answer.partition(b"\r\n")[0], *answer.partition(b"\r\n\r\n")[1:]
    assert status == b"HTTP/1.1 503 Service Unavailable"
    assert json.loads(content)["error"]["message"] == "the server is shutting down"
    assert (code, [line for line in log if "Traceback" in line]) == (130, [])


@pytest.mark.slow
def test_work_that_no_template_does_keeps_no_server_from_ending() -> None:
    """A thread cannot be stopped: the process waited for its work after the client was told that it ends."""
    program = (
        "import sys, time; from ggufbpe import Tokenizer; from ggufbpe.cli import main; "
        "Tokenizer.split = lambda *_, **__: time.sleep(600); sys.exit(main(sys.argv[1:]))"
    )
    server = Server(program=("-c", program))
    with server.connect() as connection:
        connection.sendall(post(json.dumps({"text": "a", "size": 1}).encode(), "/v1/split"))
        deadline = time.monotonic() + 20
        while not re.search(r'requests_in_threads{work="\w+"} 1\.0', server.numbers()):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        for _ in range(2):
            server.process.send_signal(signal.SIGINT)
            time.sleep(0.5)
        assert everything(connection, 20).startswith(b"HTTP/1.1 503 ")
    assert server.ended()[0] == 130  # long before the work would have


def length_of(answer: bytes) -> int:
    """What the head says."""
    return int(answer.partition(b"content-length: ")[2].partition(b"\r")[0])


# ---- official clients -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tokens() -> int:
    """Those of `MESSAGES`."""
    return len(Tokenizer.from_gguf(GPT2).apply_chat_template(MESSAGES, chat_template="known:chatml"))


@pytest.mark.slow
def test_the_client_of_anthropic_counts(server: Server, tokens: int) -> None:
    anthropic = pytest.importorskip("anthropic")

    with anthropic.Anthropic(base_url=server.url, api_key="none") as client:
        found = client.messages.count_tokens(model="gpt2", messages=MESSAGES)
        with pytest.raises(anthropic.BadRequestError, match="content"):
            client.messages.count_tokens(model="gpt2", messages=[{"role": "user", "content": 5}])
    assert found.input_tokens == tokens


@pytest.mark.parametrize("api", ["anthropic", "openai"])
def test_official_clients_get_the_reason_why_nothing_is_generated(server: Server, api: str) -> None:
    anthropic = pytest.importorskip("anthropic")
    openai = pytest.importorskip("openai")

    if api == "anthropic":
        with (
            anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0) as client,
            pytest.raises(anthropic.APIStatusError, match="only counts") as error,
        ):
            client.messages.create(model="gpt2", messages=MESSAGES, max_tokens=5)
    else:
        with (
            openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client,
            pytest.raises(openai.APIStatusError, match="only counts") as error,
        ):
            client.chat.completions.create(model="gpt2", messages=MESSAGES)
    assert error.value.status_code == 501


def test_the_client_of_openai_counts(server: Server, tokens: int) -> None:
    openai = pytest.importorskip("openai")

    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none") as client:
        found = client.responses.input_tokens.count(model="gpt2", input="What is 2 + 2?")
        names = [model.id for model in client.models.list()]
        with pytest.raises(openai.BadRequestError, match="input_file"):
            client.responses.input_tokens.count(
                model="gpt2", input=[{"role": "user", "content": [{"type": "input_file"}]}]
            )
    assert (found.input_tokens, found.object, names) == (tokens, "response.input_tokens", ["gpt2"])


# ---- its end --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("length", [26, 26 + 5000])
def test_what_was_begun_is_answered(length: int) -> None:
    """Half of a request is there when the server is told to end, and it takes no more."""
    server = Server()
    data = post(BODY + b" " * (length - 26))
    with server.connect() as begun, server.connect() as idle:
        begun.sendall(data[:-2])
        server.ask("/health")
        server.process.send_signal(signal.SIGTERM)
        assert everything(idle) == b""
        begun.sendall(data[-2:])
        answer = everything(begun)
    assert (answer[:12], answer[-len(IDS) :]) == (b"HTTP/1.1 200", IDS)
    assert server.ended()[0] == 0


@pytest.mark.slow
def test_the_log_is_json(capfd: pytest.CaptureFixture[str]) -> None:
    server = Server("--log-requests")
    server.ask("/tokenize", {"content": "a secret"})
    code, lines = server.stop()
    found = [json.loads(line) for line in lines]
    assert (code, [each["event"] for each in found]) == (0, ["request", "stopped"])
    assert (found[0]["path"], found[0]["status"], found[0]["received"]) == ("/tokenize", 200, 23)


@pytest.mark.slow
def test_several_processes() -> None:
    server = Server("--workers", "2")
    deadline = time.monotonic() + 30
    answers = [server.ask("/tokenize", {"content": "Hello world"}) for _ in range(20)]
    numbers = server.numbers()
    assert time.monotonic() < deadline
    assert answers == [json.loads(IDS)] * 20
    assert 'ggufbpe_requests_total{endpoint="/tokenize",status="200"} 20.0' in numbers
    assert server.stop()[0] == 0


@pytest.mark.slow
def test_processes_end_when_the_one_that_started_them_is_killed() -> None:
    server = Server("--workers", "2")
    for _ in range(20):  # until both have opened the model
        server.ask("/tokenize", {"content": "Hello world"})
    server.process.kill()
    code, lines = server.ended()  # once all of them have closed the log
    assert code == -signal.SIGKILL
    assert [json.loads(line)["event"] for line in lines] == []


@pytest.mark.slow
def test_a_restart_replaces_the_processes_while_the_server_answers() -> None:
    server = Server("--workers", "2")
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
    for _ in range(20):  # until both have opened the model
        server.ask("/tokenize", {"content": "Hello world"})
    before = set(children.read_text().split())
    server.process.send_signal(signal.SIGHUP)
    deadline = time.monotonic() + 120
    while len(before & set(children.read_text().split())) > 1:  # multiprocessing's own process stays
        assert server.ask("/tokenize", {"content": "Hello world"}) == json.loads(IDS)
        assert time.monotonic() < deadline
        time.sleep(0.1)
    open_models = 0.0
    while (
        not 1 <= open_models <= 2
    ):  # of the new processes alone, as soon as one of them has opened the model
        assert time.monotonic() < deadline, open_models
        server.ask("/tokenize", {"content": "Hello world"})
        [number] = re.findall(r"^ggufbpe_models_open (.*)$", server.numbers(), re.MULTILINE)
        open_models = float(number)
    assert server.stop()[0] == 0


def test_models_of_ollama_are_served_by_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path))
    layer = ollama_layer(tmp_path, GPT2.read_bytes())
    ollama_model(tmp_path, "registry.ollama.ai/library/gemma3/latest", [layer])
    server = Server("-m", "ollama:gemma3")
    answer = server.ask("/tokenize", {"model": "ollama:gemma3", "content": "Hello world"})
    assert (answer, server.stop()[0]) == (json.loads(IDS), 0)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["-m", "nothing.gguf"], "nothing.gguf: No such file or directory"),
        (["-m", "hf:far/Model-GGUF", "--offline"], "--offline was given"),
        (["--port", "70000"], "--port must be 0 to 65535, not 70000"),
        (["--api-key", ","], "--api-key and --api-key-file contain no key"),
        (["--api-key", " ,\t"], "--api-key and --api-key-file contain no key"),
        (
            ["-m", str(GPT2), "-m", f"gpt2={GPT2}"],
            "two models have the name 'gpt2'; give one another name: -m NAME=PATH",
        ),
        (["--host", "203.0.113.7", "--api-key", "k"], "Cannot assign requested address"),
    ],
)
def test_what_it_does_not_start_with(
    capfdbinary: pytest.CaptureFixture[bytes], flags: list[str], message: str
) -> None:
    from ggufbpe.cli import main

    assert main(["serve", *flags]) == 2
    assert message in capfdbinary.readouterr().err.decode()


def test_a_busy_port_is_reported_with_the_flag_that_chooses_another(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    from ggufbpe.cli import main

    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert main(["serve", "-m", str(GPT2), "--port", str(port)]) == 2
    assert capfdbinary.readouterr().err.decode() == (
        f"ggufbpe: error: port {port} is already in use, maybe by another server; "
        "choose another with --port, or a free one with --port 0\n"
    )
