"""Access control: allowed Host names, allowed origins, and API keys.

the head of a request -> [this file] -> nothing, or a RequestError

A web page can make its visitor's browser send requests to servers on the visitor's network: under a host name of
its own that resolves there (DNS rebinding), which `Host` reveals, and by cross-site posts, which `Origin` reveals.

Source of the rules for keys: server_http_context::init_listener in tools/server/server-http.cpp.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from functools import lru_cache
from ipaddress import ip_address

from .failures import RequestError
from .settings import Settings

Headers = Mapping[bytes, bytes]

# Paths that need no key.
PUBLIC = frozenset({"/", "/page.css", "/page.js", "/health", "/v1/health", "/docs", "/openapi.json"})
_METHODS = "GET, POST, OPTIONS"


class Guard:
    """Checks the heads of requests."""

    def __init__(self, settings: Settings) -> None:
        self._names = {"localhost", settings.host.lower(), *map(str.lower, settings.allowed_hosts)}
        self._origins = frozenset(origin.rstrip("/").lower() for origin in settings.allowed_origins)
        self._keys = [key.encode() for key in settings.api_keys]
        self._is_known = lru_cache(256)(self._is_name_known)

    def check(self, method: str, path: str, headers: Headers) -> None:
        """Raise `RequestError` 403 for a foreign `Host` or `Origin`, 401 for a missing or wrong key."""
        host = headers.get(b"host")
        if host is not None and not self._is_known(host):
            raise RequestError(
                403, "the name in the Host header is not one of this server's; --allowed-host adds one"
            )
        origin = headers.get(b"origin")
        if origin is not None:
            if not self._is_own(origin, host) and not self.allows(origin):
                raise RequestError(
                    403, "pages of this origin may not send requests; --allowed-origin allows one"
                )
        elif headers.get(b"sec-fetch-site") in (b"cross-site", b"same-site") and method not in (
            "GET",
            "HEAD",
        ):
            raise RequestError(403, "pages of other sites may not send requests")
        if self._keys and path not in PUBLIC and method != "OPTIONS":
            self._check_key(headers)

    def allows(self, origin: bytes | None) -> bool:
        """Whether pages of this origin may send requests and read the answers."""
        return origin is not None and origin.decode("latin-1").lower() in self._origins

    def answer_headers(self, headers: Headers, is_preflight: bool) -> list[tuple[bytes, bytes]]:
        """The CORS headers that let a page of an allowed origin read the answer."""
        origin = headers.get(b"origin")
        if not self._origins or origin is None or not self.allows(origin):
            return []
        found = [(b"access-control-allow-origin", origin), (b"vary", b"origin")]
        if is_preflight:
            found.append((b"access-control-allow-methods", _METHODS.encode()))
            found.append((b"access-control-allow-headers", b"authorization, content-type, x-api-key"))
        return found

    def _check_key(self, headers: Headers) -> None:
        given = headers.get(b"authorization") or headers.get(b"x-api-key") or b""
        given = given.removeprefix(b"Bearer ")
        # every key is compared, so that the time taken reveals nothing
        if not sum(hmac.compare_digest(given, key) for key in self._keys):
            raise RequestError(401, "Invalid API Key")

    def _is_name_known(self, host: bytes) -> bool:
        """Whether a `Host` names this server. An IP address always does: DNS rebinding needs a name."""
        name = _without_port(host.decode("latin-1")).lower()
        return name in self._names or _is_address(name)

    @staticmethod
    def _is_own(origin: bytes, host: bytes | None) -> bool:
        scheme, _, place = origin.lower().partition(b"://")
        return host is not None and scheme in (b"http", b"https") and place == host.lower()


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if host.count(":") == 1 else host


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether a host to listen on is reachable from this machine only."""
    return host == "localhost" or (_is_address(host) and ip_address(host).is_loopback)
