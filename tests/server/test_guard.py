"""Who may send requests: names of the server, origins of pages, and keys."""

from __future__ import annotations

import pytest

from ggufbpe.server.failures import RequestError
from ggufbpe.server.guard import Guard, check_host_count, is_loopback
from ggufbpe.server.settings import Settings

GUARD = Guard(
    Settings(
        {},
        host="0.0.0.0",
        allowed_hosts=("Models.example",),
        allowed_origins=("https://page.example/",),
        api_keys=("secret", "other"),
    )
)
KEY = {b"x-api-key": b"secret"}

ALLOWED: dict[str, tuple[str, str, dict[bytes, bytes]]] = {
    "localhost": ("GET", "/v1/models", {b"host": b"LOCALHOST:8080", **KEY}),
    "an address": ("GET", "/v1/models", {b"host": b"192.168.0.7:8080", **KEY}),
    "an address of IPv6": ("GET", "/v1/models", {b"host": b"[::1]:8080", **KEY}),
    "an allowed name": ("GET", "/v1/models", {b"host": b"models.example", **KEY}),
    "the second key, as a bearer": ("POST", "/tokenize", {b"authorization": b"Bearer other"}),
    "a key without a scheme": ("POST", "/tokenize", {b"authorization": b"secret"}),
    "a proxy's credentials beside a key": ("POST", "/tokenize", {b"authorization": b"Basic x", **KEY}),
    "a public path": ("GET", "/health", {b"host": b"localhost"}),
    "a preflight request": ("OPTIONS", "/tokenize", {b"origin": b"https://page.example"}),
    "the server's own page": (
        "POST",
        "/tokenize",
        {b"host": b"localhost:1", b"origin": b"http://localhost:1", **KEY},
    ),
    "a link from another site": ("GET", "/", {b"sec-fetch-site": b"cross-site"}),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_allowed(name: str) -> None:
    GUARD.check(*ALLOWED[name])


REFUSED: dict[str, tuple[int, str, dict[bytes, bytes]]] = {
    "a foreign name": (403, "/health", {b"host": b"rebound.example"}),
    "an allowed name's relative": (403, "/health", {b"host": b"models.example.evil"}),
    "no name": (403, "/health", {b"host": b"a b:c"}),
    "more than a name and a port": (403, "/health", {b"host": b"localhost:80@rebound.example"}),
    "a foreign origin": (403, "/health", {b"host": b"localhost:1", b"origin": b"http://localhost:2"}),
    "an origin of another scheme": (
        403,
        "/health",
        {b"host": b"localhost:1", b"origin": b"file://localhost:1"},
    ),
    "a post from another site": (403, "/health", {b"sec-fetch-site": b"same-site"}),
    "no key": (401, "/tokenize", {}),
    "a wrong key": (401, "/tokenize", {b"authorization": b"Bearer secrets", b"x-api-key": b"secre"}),
    "an empty key": (401, "/tokenize", {b"authorization": b"Bearer "}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    status, path, headers = REFUSED[name]
    with pytest.raises(RequestError) as refusal:
        GUARD.check("POST", path, headers)
    assert refusal.value.status == status


def test_headers_for_pages_of_other_origins() -> None:
    allowed = {b"origin": b"https://page.example"}
    assert dict(GUARD.answer_headers(allowed, False)) == {
        b"access-control-allow-origin": b"https://page.example",
        b"vary": b"origin",
    }
    assert b"access-control-allow-headers" in dict(GUARD.answer_headers(allowed, True))
    assert GUARD.answer_headers({b"origin": b"https://evil.example"}, True) == []
    assert GUARD.answer_headers({}, True) == []


USUAL = b"authorization, content-type, x-api-key"


@pytest.mark.parametrize(
    ("asked", "allowed"),
    [
        (b"anthropic-version, x-stainless-os", b"anthropic-version, x-stainless-os"),
        (b"content-type,x-api-key", b"content-type,x-api-key"),
        (b"Authorization", b"Authorization"),
        (b"", USUAL),
        (b"x-a,", USUAL),
        (b"a b", USUAL),
        (b"x\r\nset-cookie: a=b", USUAL),
        ("ä".encode(), USUAL),
    ],
)
def test_a_preflight_request_may_use_the_headers_that_it_asks_for(asked: bytes, allowed: bytes) -> None:
    headers = {b"origin": b"https://page.example", b"access-control-request-headers": asked}
    assert dict(GUARD.answer_headers(headers, True))[b"access-control-allow-headers"] == allowed


@pytest.mark.parametrize(
    ("version", "hosts", "allowed"),
    [("1.1", 1, True), ("1.0", 0, True), ("1.1", 0, False), ("1.0", 2, False)],
)
def test_check_host_count(version: str, hosts: int, allowed: bool) -> None:
    headers = [(b"host", b"a")] * hosts + [(b"accept", b"b")]
    if allowed:
        check_host_count(version, headers)
    else:
        with pytest.raises(RequestError, match=f"has {hosts}"):
            check_host_count(version, headers)


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("example.com", False)],
)
def test_is_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
