"""What a server's status means, and how long to wait."""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest

from ggufbpe._util.errors import RemoteAccessError, RemoteError, RemoteNotFoundError
from ggufbpe.hub.remote.refusals import answer_error, seconds_to_wait

URL = "https://cdn.example/m.gguf?signature=secret"
STATUSES: dict[int, tuple[type[RemoteError], str]] = {
    401: (RemoteAccessError, "the server requires a login"),
    404: (RemoteNotFoundError, "there is no such file"),
    418: (RemoteError, "the server's answer is not understood"),
    429: (RemoteError, "the server has had too many requests from here"),
    500: (RemoteError, "the server has an error"),
    599: (RemoteError, "the server has an error"),
}


@pytest.mark.parametrize("status", STATUSES)
def test_answer_error(status: int) -> None:
    error = answer_error("hf:owner/repo", status, URL, {})
    kind, problem = STATUSES[status]
    assert type(error) is kind
    assert error.problem == f"{problem} (cdn.example answered {status})"
    assert "secret" not in str(error)


@pytest.mark.parametrize(("status", "told"), [(503, True), (404, False)])
def test_a_busy_server_says_when(status: int, told: bool) -> None:
    error = answer_error("m", status, URL, {"Retry-After": "7"})
    assert (error.remedy == "try again in 7 seconds") is told


WAITS = {
    "": 0.0,
    "2": 2.0,
    "-2": 0.0,
    "soon": 0.0,
    "9" * 30: 999_999_999.0,
    "Thu, 01 Jan 1970 00:00:00 GMT": 0.0,
}


@pytest.mark.parametrize("value", WAITS)
def test_seconds_to_wait(value: str) -> None:
    assert seconds_to_wait({"Retry-After": value}) == WAITS[value]


def test_a_date_to_wait_for() -> None:
    assert 3500 < seconds_to_wait({"Retry-After": formatdate(time.time() + 3600, usegmt=True)}) <= 3600
    assert seconds_to_wait({}) == 0


LIMITS = {
    '"api";r=0;t=55': 55.0,
    '"api"; r = 0 ; t = 55': 55.0,
    '"api";r=3;t=55': 0.0,  # requests are left
    '"api";r=0': 0.0,
    "": 0.0,
}


@pytest.mark.parametrize("value", LIMITS)
def test_a_limit_of_requests_says_how_long_to_wait(value: str) -> None:
    assert seconds_to_wait({"RateLimit": value}) == LIMITS[value]
    assert seconds_to_wait({"RateLimit": value, "Retry-After": "2"}) == 2
