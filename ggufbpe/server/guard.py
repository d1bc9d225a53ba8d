"""Controls access: allowed Host names, allowed origins, and API keys.

A web page can make its visitor's browser send requests to servers on the visitor's network: under a host name of
its own that resolves there (DNS rebinding), which `Host` reveals, and by cross-site posts, which `Origin` reveals.

Source of the rules for keys: server_http_context::init_listener in tools/server/server-http.cpp.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from ipaddress import ip_address

from .failures import RequestError
from .settings import Settings

Headers = Mapping[bytes, bytes]

_SCRIPTS = (
    *("page", "chat_editor", "chat_prompt", "comparison", "dom", "examples", "models"),
    *("pieces", "questions", "server", "state", "token_view", "word_steps"),
)
ANY_ORIGIN = "*"
FILES_OF_PAGE = ("/", "/page.css", *(f"/{name}.js" for name in _SCRIPTS))
# Paths that need no key.
PUBLIC = frozenset({*FILES_OF_PAGE, "/health", "/v1/health", "/docs", "/openapi.json"})
_METHODS = b"GET, POST, OPTIONS"
_USUAL_HEADERS = b"authorization, content-type, x-api-key"
_NAMES = re.compile(
    rb"[\w!#$%&'*+.^`|~-]+(?:[ \t]*,[ \t]*[\w!#$%&'*+.^`|~-]+)*", re.ASCII
)  # tokens of RFC 9110, 5.6.2
_HOST = re.compile(r"(?:\[(?P<ipv6>[0-9a-f:.]+)\]|(?P<name>[^:\[\]]*))(?::[0-9]*)?", re.ASCII)
_BEARER = re.compile(rb"bearer +", re.IGNORECASE)


def check_host_count(http_version: str, headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Raise `RequestError` 400 if there are several `Host` headers, or none but in HTTP/1.0 (RFC 9112, 3.2)."""
    count = [name for name, _ in headers].count(b"host")
    if count > 1 or (count == 0 and http_version != "1.0"):
        raise RequestError(400, f"a request has one Host header, but this one has {count}")


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
        if origin is None:
            return False
        return ANY_ORIGIN in self._origins or origin.decode("latin-1").lower() in self._origins

    def answer_headers(self, headers: Headers, is_preflight: bool) -> list[tuple[bytes, bytes]]:
        """The CORS headers that let a page of an allowed origin read the answer.

        A preflight request gets back the header names that it asks for: official clients have many of their own.
        """
        origin = headers.get(b"origin")
        if not self._origins or origin is None or not self.allows(origin):
            return []
        cors_headers = [(b"access-control-allow-origin", origin), (b"vary", b"origin")]
        if is_preflight:
            asked = headers.get(b"access-control-request-headers", b"")
            names = asked if _NAMES.fullmatch(asked) else _USUAL_HEADERS
            cors_headers += [
                (b"access-control-allow-methods", _METHODS),
                (b"access-control-allow-headers", names),
            ]
        return cors_headers

    def _check_key(self, headers: Headers) -> None:
        """Raise `RequestError` 401 unless `Authorization` or `X-Api-Key` has a valid key.

        A proxy may have put credentials of its own into one of the two.
        """
        authorization = headers.get(b"authorization", b"")
        scheme = _BEARER.match(authorization)
        given = (authorization[scheme.end() if scheme else 0 :], headers.get(b"x-api-key", b""))
        # every key is compared with both, so that the time taken reveals nothing
        if not sum(hmac.compare_digest(each, key) for each in given if each for key in self._keys):
            raise RequestError(401, "Invalid API Key")

    def _is_name_known(self, host: bytes) -> bool:
        """Whether a `Host` names this server. An IP address always does: DNS rebinding needs a name."""
        parts = _HOST.fullmatch(host.decode("latin-1").lower())
        if parts is None:
            return False
        name = parts["name"]
        return _is_address(parts["ipv6"]) if name is None else name in self._names or _is_address(name)

    @staticmethod
    def _is_own(origin: bytes, host: bytes | None) -> bool:
        scheme, _, place = origin.lower().partition(b"://")
        return host is not None and scheme in (b"http", b"https") and place == host.lower()


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether a host to listen on is reachable from this machine only."""
    return host == "localhost" or (_is_address(host) and ip_address(host).is_loopback)
