"""Which server an address means: whether two are one, and whether it is a local one.

    address -> [this file] -> http.py, hub.py

But: a name is looked up here and once more when the server is asked; where a proxy is between, it looks up itself.
"""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import urlsplit

# IPv6 addresses whose last four bytes are an IPv4 address: RFC 4291, 2.5.5.1, and RFC 6052.
_IPV4_WITHIN = ipaddress.ip_network("::/96"), ipaddress.ip_network("64:ff9b::/96")
_PORTS = {"http": 80, "https": 443}


def origin(url: str) -> tuple[str, str, int | None]:
    """Scheme, host and port: the same for two addresses if they are of one server.

    >>> origin("https://Example.com/a") == origin("https://example.com:443/b")
    True
    """
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or _PORTS.get(parts.scheme)


def is_local(host: str, *, alone: bool = False) -> bool:
    """Whether a host is this machine or in a network that is not public. One that is not known is not local.

    A name may have several addresses: one that is local is enough, unless all must be (`alone`).

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
    local = [not _is_public(str(address[4][0])) for address in found]
    return all(local) if alone else any(local)


def _is_public(address: str) -> bool:
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv4Address):
        return found.is_global
    within = found.ipv4_mapped or found.sixtofour
    if any(found in network for network in _IPV4_WITHIN):
        within = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
    return found.is_global and not found.is_site_local if within is None else within.is_global
