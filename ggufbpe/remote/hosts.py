"""Which server an address means: whether two are one, and whether it is a local one.

    address -> [this file] -> http.py, hub.py

But: a name is looked up here and once more when the server is asked; where a proxy is between, it looks up itself.
"""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}


def origin(url: str) -> tuple[str, str, int | None]:
    """Scheme, host and port: the same for two addresses if they are of one server.

    >>> origin("https://Example.com/a") == origin("https://example.com:443/b")
    True
    """
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or _PORTS.get(parts.scheme)


def is_local(host: str) -> bool:
    """Whether a host is this machine or in a network that is not public. One that is not known is not local.

    >>> is_local("127.0.0.1"), is_local("::1"), is_local("8.8.8.8")
    (True, True, False)
    """
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return not _is_public(host)
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return not all(_is_public(str(address[4][0])) for address in found)


def _is_public(address: str) -> bool:
    found = ipaddress.ip_address(address.partition("%")[0])
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (mapped or found).is_global
