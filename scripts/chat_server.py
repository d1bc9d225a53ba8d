"""llama-server of the newer state, asked about chats: its prompt, or why it refuses, and the number of tokens.

The wheel of the newer state runs llama.cpp's own HTTP server inside a process, with all of its addresses; `ChatServer`
keeps it in a child, since a template or a chat may end it, and starts it anew then. One child goes from template
to template, and answers about 2,000 questions a second.

But: the wheel does not read llama-server's command line, so what that decides is set here: `preserve_reasoning` is on
(common/arg.cpp). A template is taken as if it stood in the model's file.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import select
import subprocess
import sys
import time
from types import TracebackType
from typing import Any, NamedTuple

from reference import xllamacpp_packages

TIMEOUT = 60  # seconds; an answer takes less than one


class Refusal(NamedTuple):
    """What the server answers to a chat that it does not take."""

    status: int
    message: str


class Answer(NamedTuple):
    """The prompt of a chat, and how many tokens it has."""

    prompt: str
    tokens: int


class ServerGoneError(RuntimeError):
    """The server ended: llama.cpp aborted on a template or a chat."""


class ChatServer:
    """A server for one model, with one template at a time, and with a projector if a file of one is given."""

    def __init__(self, model: str | os.PathLike[str], mmproj: str | os.PathLike[str] | None = None) -> None:
        self._model = str(model)
        self._mmproj = None if mmproj is None else str(mmproj)
        self._child: subprocess.Popen[str] | None = None
        self._connection: http.client.HTTPConnection | None = None
        self._template: str | None = None

    def __enter__(self) -> ChatServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            for pipe in (self._child.stdin, self._child.stdout):
                if pipe is not None:
                    pipe.close()
        self._hang_up()
        self._child = None

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def open(self, template: str | None, model: str | os.PathLike[str] | None = None) -> str | None:
        """Go over to a template; None is the one in the model's file, or what a file without one gets.

        Returns None, or why the server does not start with it. Raises `ServerGoneError`.
        """
        self._model = str(model or self._model)
        self._template = template
        for _ in range(2):
            line = self._start()
            if line is not None:
                break
            self.close()
        if not line:
            self.close()
            raise ServerGoneError("the server ended while it took a template")
        found: dict[str, str] = json.loads(line)
        self._hang_up()
        if "refused" in found:
            return found["refused"]
        address = found["address"].removeprefix("http://")
        self._connection = http.client.HTTPConnection(address, timeout=TIMEOUT)
        return None

    def _start(self) -> str | None:
        """What the child says of the model and the template: "" if it ended, None if it says nothing.

        It may say nothing for ever: a server that is ended while it still starts waits for itself.
        """
        if self._child is None:
            self._child = subprocess.Popen(
                [sys.executable, __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                encoding="utf-8",
                env={**os.environ, "PYTHONPATH": str(xllamacpp_packages()), "TZ": "UTC"},
            )
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        try:
            self._child.stdin.write(json.dumps([self._model, self._template, self._mmproj]) + "\n")
            self._child.stdin.flush()
        except BrokenPipeError:
            return ""
        if not select.select([self._child.stdout], [], [], TIMEOUT)[0]:
            return None
        return self._child.stdout.readline()

    def ask(self, request: dict[str, Any]) -> Answer | Refusal:
        """The answer to a chat. Raises `ServerGoneError`, after which the server runs again."""
        rendered = self._post("/apply-template", request)
        if isinstance(rendered, Refusal):
            return rendered
        counted = self.count(request)
        return counted if isinstance(counted, Refusal) else Answer(rendered["prompt"], counted)

    def count(self, request: dict[str, Any]) -> int | Refusal:
        """The number of tokens of a chat, or why it is refused. Raises `ServerGoneError` as `ask`."""
        counted = self._post("/v1/chat/completions/input_tokens", request)
        return counted if isinstance(counted, Refusal) else int(counted["input_tokens"])

    def ask_at(self, request: dict[str, Any]) -> tuple[Answer | Refusal, int]:
        """The answer to a chat and the second of its asking, between whose ends no midnight lay."""
        while True:
            before = int(time.time())
            answer = self.ask(request)
            if int(time.time()) // 86_400 == before // 86_400:
                return answer, before

    def props(self) -> Any:
        """What the server says of itself: its template and what it found out about it."""
        return self.request("GET", "/props", None)[1]

    def _post(self, path: str, body: Any) -> Any:
        status, found = self.request("POST", path, json.dumps(body).encode())
        return found if status == 200 else Refusal(status, found["error"]["message"])

    def request(self, method: str, path: str, body: bytes | None) -> tuple[int, Any]:
        if self._connection is None:
            raise ServerGoneError("there is no server")
        try:
            self._connection.request(method, path, body, {"Content-Type": "application/json"})
            response = self._connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            with contextlib.suppress(ServerGoneError):
                self.open(self._template)
            raise ServerGoneError(f"the server ended at {path}: {error!r}") from error
        return response.status, json.loads(content)


def serve() -> None:
    """The child: takes a model, a template and a projector a line, and says where they are served."""
    import xllamacpp

    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # so that nothing which is logged gets among the answers
    server: Any = None
    for line in sys.stdin:
        model, template, mmproj = json.loads(line)
        if server is not None:
            time.sleep(0.02)  # it would wait for itself if it had not started yet
        server = None
        parameters = xllamacpp.CommonParams()
        parameters.model.path = model
        parameters.chat_template = template or ""
        parameters.default_template_kwargs = {"preserve_reasoning": "true"}
        parameters.n_ctx, parameters.n_parallel, parameters.port, parameters.verbosity = 512, 1, 0, -1
        parameters.warmup = False
        if mmproj is not None:
            parameters.mmproj.path = mmproj
        try:
            server = xllamacpp.Server(parameters)
            found = {"address": server.listening_address}
        except RuntimeError as error:
            found = {"refused": str(error)}
        print(json.dumps(found), file=answers, flush=True)


if __name__ == "__main__":
    serve()
