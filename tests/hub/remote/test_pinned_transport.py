"""Requests go to the addresses that were checked, under the host's own name."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2 as httpx
import pytest

from ggufbpe.hub.remote.pinned_transport import PinnedTransport, find_proxy


class Wire:
    """Stands in for the library's transport: notes requests, and fails for some addresses."""

    made: list[Any]
    refusing: set[str]
    requests: list[httpx.Request]

    def __init__(self, verify: Any, proxy: str | None) -> None:
        self.made.append(proxy)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if request.url.host in self.refusing:
            raise httpx.ConnectError("refused")
        return httpx.Response(200)

    def close(self) -> None:
        self.made.append("closed")


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> type[Wire]:
    """A fresh one, without proxies."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return type("FreshWire", (Wire,), {"made": [], "refusing": set(), "requests": []})


def transport(wire: type[Wire], *addresses: str) -> PinnedTransport:
    """A transport for a host with these addresses."""
    http = SimpleNamespace(
        HTTPTransport=wire, Request=httpx.Request, ConnectError=httpx.ConnectError,
        ConnectTimeout=httpx.ConnectTimeout, ProxyError=httpx.ProxyError, create_ssl_context=lambda: "certificates",
    )  # fmt: skip
    return PinnedTransport(http, SimpleNamespace(addresses=lambda host: addresses))  # type: ignore[arg-type]


def test_the_address_is_asked_under_the_name_of_the_host(wire: type[Wire]) -> None:
    pinned = transport(wire, "192.0.2.1")
    for path in ("a", "b"):
        pinned.handle_request(httpx.Request("GET", f"https://models.example/{path}"))
    first = wire.requests[0]
    assert str(first.url) == "https://192.0.2.1/a"
    assert first.headers["host"] == "models.example"
    assert first.extensions["sni_hostname"] == "models.example"
    assert wire.made == [None]  # one connection for both
    pinned.handle_request(httpx.Request("GET", "https://other.example/"))
    assert wire.made == [None, None]  # another server has its own, even at the same address
    pinned.close()
    assert wire.made[2:] == ["closed", "closed"]


def test_the_next_address_is_tried(wire: type[Wire]) -> None:
    wire.refusing.add("192.0.2.1")
    response = transport(wire, "192.0.2.1", "fe80::1%eth0").handle_request(
        httpx.Request("GET", "http://models.example/")
    )
    assert response.status_code == 200
    assert [request.url.host for request in wire.requests] == ["192.0.2.1", "fe80::1"]
    with pytest.raises(httpx.ConnectError, match="refused"):
        transport(wire, "192.0.2.1").handle_request(httpx.Request("GET", "http://models.example/"))
    with pytest.raises(httpx.ConnectError, match="the name is not known"):
        transport(wire).handle_request(httpx.Request("GET", "http://models.example/"))


def test_a_proxy_is_asked_by_name(wire: type[Wire], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "proxy.example:3128")
    transport(wire, "192.0.2.1").handle_request(httpx.Request("GET", "https://models.example/"))
    assert wire.requests[0].url.host == "models.example"
    assert wire.made == ["http://proxy.example:3128"]


PROXIES = [
    ({}, "https", None),
    ({"https_proxy": "p:1"}, "https", "http://p:1"),
    ({"https_proxy": "p:1"}, "http", None),
    ({"all_proxy": "socks5://p:1"}, "https", "socks5://p:1"),
    ({"https_proxy": "p:1", "no_proxy": "models.example"}, "https", None),
]


@pytest.mark.parametrize(("settings", "scheme", "proxy"), PROXIES)
def test_find_proxy(
    wire: type[Wire],
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, str],
    scheme: str,
    proxy: str | None,
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    assert find_proxy(scheme, "models.example", 443) == proxy


def test_certificates_that_cannot_be_read(wire: type[Wire], monkeypatch: pytest.MonkeyPatch) -> None:
    """`SSL_CERT_FILE` may name a file that is gone; Python's error names neither."""
    pinned = transport(wire, "192.0.2.1")
    monkeypatch.setattr(pinned._http, "create_ssl_context", Path("/nonexistent").read_bytes)
    with pytest.raises(
        httpx.ConnectError, match="the certificates of SSL_CERT_FILE or SSL_CERT_DIR cannot be read"
    ):
        pinned.handle_request(httpx.Request("GET", "https://models.example/"))
