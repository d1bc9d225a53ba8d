"""The deadline for the header of an answer, on a connection of this process with itself."""

from __future__ import annotations

import socket
import threading
from types import SimpleNamespace

import pytest

from ggufbpe.hub.remote import answer_deadline
from ggufbpe.hub.remote.answer_deadline import AnswerDeadline


class Clock:
    """A `threading.Timer` whose time is up when the test says so."""

    def __init__(self, seconds: float, end: object) -> None:
        self.seconds, self.end, self.state = seconds, end, "made"

    def start(self) -> None:
        self.state = "started"

    def cancel(self) -> None:
        self.state = "cancelled"


@pytest.mark.parametrize("outcome", ["complete", "failed"])
def test_the_clock_runs_while_a_header_is_read(outcome: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clocks: list[Clock] = []
    monkeypatch.setattr(answer_deadline, "Timer", lambda *given: clocks.append(Clock(*given)) or clocks[-1])
    deadline = AnswerDeadline(20.0, [])
    deadline("http11.send_request_headers.started", {})
    assert clocks == []
    deadline("http11.receive_response_headers.started", {})
    assert [(clock.seconds, clock.state) for clock in clocks] == [(20.0, "started")]
    deadline(f"http11.receive_response_headers.{outcome}", {})
    assert [clock.state for clock in clocks] == ["cancelled"]


def test_connections_end_with_the_time() -> None:
    ours, theirs = socket.socketpair()
    closed = socket.socket()
    closed.close()
    sockets = [closed]
    with ours, theirs:
        deadline = AnswerDeadline(0.0, sockets)
        stream = SimpleNamespace(get_extra_info={"socket": ours}.get)
        deadline("connection.connect_tcp.complete", {"return_value": stream})
        deadline("http11.receive_response_headers.started", {})
        assert ours.recv(1) == b""
        for thread in threading.enumerate():
            if isinstance(thread, threading.Timer):
                thread.join()
        assert deadline.has_passed
    assert sockets == [closed, ours]
