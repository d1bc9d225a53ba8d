"""Which server an address means: whether two addresses share one, and whether it is local.

    address -> [this file] -> http.py, transport.py

But: behind a proxy, names are resolved here only for the check; the proxy resolves them itself.
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


class Lookups:
    """The addresses of hosts. Each is resolved once, so that connections go to the addresses that were checked."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[str, ...]] = {}

    def addresses(self, host: str) -> tuple[str, ...]:
        """The addresses of a host, the preferred first; none if it is unknown. A literal address is its own."""
        found = self._found.get(host)
        if found is None:
            try:
                answers = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            except (OSError, UnicodeError):
                answers = []
            found = tuple(dict.fromkeys(str(answer[4][0]) for answer in answers))
            found = self._found.setdefault(host, found)  # another thread may have been first
        return found

    def is_local(self, host: str, *, alone: bool = False) -> bool:
        """Whether a host is this machine or in a private network. An unknown host is not local.

        A name may have several addresses: one local address is enough, unless `alone` demands that all are local.

        >>> lookups = Lookups()
        >>> lookups.is_local("127.0.0.1"), lookups.is_local("::1"), lookups.is_local("8.8.8.8")
        (True, True, False)
        """
        if host == "localhost" or host.endswith(".localhost"):
            return True
        local = [not _is_public(address) for address in self.addresses(host)]
        return bool(local) and (all(local) if alone else any(local))


def _is_public(address: str) -> bool:
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv4Address):
        return found.is_global
    within = found.ipv4_mapped or found.sixtofour
    if any(found in network for network in _IPV4_WITHIN):
        within = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
    return found.is_global and not found.is_site_local if within is None else within.is_global
