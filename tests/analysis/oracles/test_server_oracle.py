"""A running llama-server as an oracle, played by one that answers as it is told."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from small_models import small_tokenizer

from ggufbpe.analysis.oracles.chat_answers import Prompt, Refused
from ggufbpe.analysis.oracles.oracle import Failure, OracleError
from ggufbpe.analysis.oracles.server_oracle import Server

TOKENIZER = small_tokenizer()
RENDER, COUNT = "/apply-template", "/v1/chat/completions/input_tokens"
CHAT = {"messages": [{"role": "user", "content": "a"}]}
OK: dict[str, tuple[int, Any]] = {"/tokenize": (200, {"tokens": [1, 2]})}


class Answers(BaseHTTPRequestHandler):
    """Answers each path with what `self.server.answers` has, and notes what is asked."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.server.asked.append((self.path, json.loads(body or b"null")))  # type: ignore[attr-defined]
        self.answer()

    def do_GET(self) -> None:
        self.answer()

    def answer(self) -> None:
        status, said = self.server.answers[self.path]  # type: ignore[attr-defined]
        body = said if isinstance(said, bytes) else json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def http() -> Iterator[Any]:
    server: Any = HTTPServer(("127.0.0.1", 0), Answers)
    server.answers, server.asked = dict(OK), []
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def opened(http: Any) -> Server:
    return Server(f"127.0.0.1:{http.server_port}", "model.gguf", TOKENIZER, 60)


def test_texts(http: Any) -> None:
    oracle = opened(http)
    assert oracle.name == f"llama-server at 127.0.0.1:{http.server_port}"
    http.asked.clear()
    found = oracle.encode(["naïf".encode(), b"a\xff"], True, False)
    assert found == [
        [1, 2],
        Failure("refused", "the text is not UTF-8 at byte 1, which JSON cannot carry"),
    ]
    assert http.asked == [("/tokenize", {"content": "naïf", "add_special": True, "parse_special": False})]


@pytest.mark.parametrize(
    ("answer", "kind", "detail"),
    [
        ((200, b"<html>"), "garbage", "'<html>'"),
        ((200, {"tokens": ["a"]}), "garbage", "is not a list of ids"),
        ((200, {"tokens": [True]}), "garbage", "is not a list of ids"),
        ((200, b"[" * 100_000), "garbage", "is not a list of ids"),
        ((500, b"oh\x1b"), "refused", "HTTP 500: 'oh\\x1b'"),
    ],
)
def test_faults(answer: tuple[int, Any], kind: str, detail: str, http: Any) -> None:
    oracle = opened(http)
    http.answers["/tokenize"] = answer
    [fault] = oracle.encode([b"a"], True, True)
    assert isinstance(fault, Failure)
    assert fault.kind == kind
    assert detail in fault.detail
    with pytest.raises(OracleError, match="no llama-server answers at"):
        opened(http)


@pytest.mark.parametrize("url", ["ftp://host", "http://", "file:///etc/passwd"])
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(OracleError, match="is no address of a server"):
        Server(url, "model.gguf", TOKENIZER, 60)


THROWN = "\n------------\nWhile executing CallExpression at line 3, column 5 in source:\n...\nError: not so"


@pytest.mark.parametrize(
    ("rendered", "counted", "expected"),
    [
        ((200, {"prompt": "<é>"}), (200, {"input_tokens": 7}), Prompt("<é>".encode(), 7)),
        ((200, {"prompt": "a"}), (200, {}), Prompt(b"a", None)),
        ((200, {"prompt": "a"}), (200, {"input_tokens": True}), Prompt(b"a", None)),
        ((400, {"error": {"message": "no tools"}}), None, Refused("no tools")),
        ((500, {"error": {"message": THROWN}}), None, Refused("not so", 3)),
        ((200, {"prompt": "a"}), (400, {"error": {"message": "no"}}), Refused("no")),
        ((404, {"error": {"message": "no"}}), None, None),
        ((500, b"oh"), None, None),
        ((200, {}), None, None),
    ],
)
def test_chats(rendered: tuple[int, Any], counted: Any, expected: Any, http: Any) -> None:
    http.answers |= {RENDER: rendered, COUNT: counted}
    answer = opened(http).chat(CHAT)
    assert http.asked[1] == (RENDER, CHAT)
    if expected is not None:
        assert answer == expected
    else:
        assert isinstance(answer, Failure)
        assert (answer.kind, RENDER in answer.detail) == ("garbage", True)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ((200, {"chat_template": "a", "chat_template_tool_use": "b"}), {"": "a", "tool_use": "b"}),
        ((200, {"chat_template": "a"}), {"": "a"}),
        ((200, {"chat_template": ""}), {}),
        ((200, {"chat_template": 5}), {}),
        ((200, b"["), {}),
        ((404, {}), {}),
    ],
)
def test_templates(answer: tuple[int, Any], expected: dict[str, str], http: Any) -> None:
    http.answers["/props"] = answer
    assert opened(http).chat_templates() == expected
