"""Tells whether two addresses share a server, whether a server is local, and whether it must never be asked.

Behind a proxy, names are resolved here only for these checks; the proxy resolves them for itself.
"""

from __future__ import annotations

import ipaddress
import socket
from base64 import b64encode
from urllib.parse import unquote, urlsplit

# IPv6 addresses whose last four bytes are an IPv4 address: RFC 4291, 2.5.5.1; RFC 6052; RFC 8215.
_IPV4_WITHIN = tuple(map(ipaddress.ip_network, ("::/96", "64:ff9b::/96", "64:ff9b:1::/96")))
# Where clouds answer the machines in them with their settings and secrets, besides link-local addresses: Amazon,
# Google, Alibaba, Oracle, Azure.
_METADATA = frozenset(
    map(
        ipaddress.ip_address,
        ("fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "192.0.0.192", "168.63.129.16"),
    )
)
# refused by name as well, for where a proxy resolves names
_METADATA_NAMES = ("metadata.google.internal", "instance-data.ec2.internal")
_PORTS = {"http": 80, "https": 443}


def origin(url: str) -> tuple[str, str, int | None]:
    """Scheme, host and port: the same for two addresses if they are of one server.

    >>> origin("https://Example.com/a") == origin("https://example.com:443/b")
    True
    """
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or _PORTS.get(parts.scheme)


def without_login(url: str) -> tuple[str, dict[str, str]]:
    """An address without its user and password, and the header that gives them to its server.

    >>> without_login("https://me:pass%21@example.com/a?b")
    ('https://example.com/a?b', {'Authorization': 'Basic bWU6cGFzcyE='})
    """
    parts = urlsplit(url)
    login, at, _ = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    written = b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode()
    return url.replace(login + at, "", 1), {"Authorization": f"Basic {written}"} if login else {}


class Lookups:
    """The addresses of hosts. Each is resolved once, so that connections go to the addresses that were checked."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[str, ...]] = {}

    def addresses(self, host: str) -> tuple[str, ...]:
        """The addresses of a host, the preferred first; none if it is unknown. A literal address is its own."""
        addresses = self._found.get(host)
        if addresses is None:
            try:
                answers = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            except (OSError, UnicodeError):
                answers = []
            addresses = tuple(dict.fromkeys(str(answer[4][0]) for answer in answers))
            addresses = self._found.setdefault(host, addresses)  # another thread may have been first
        return addresses

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

    def is_never_asked(self, host: str) -> bool:
        """Whether one of a host's addresses is link-local or that of a cloud's metadata service.

        >>> [Lookups().is_never_asked(host) for host in ("169.254.169.254", "::ffff:169.254.0.1", "10.0.0.1")]
        [True, True, False]
        """
        if host.rstrip(".").lower() in _METADATA_NAMES:
            return True
        return any(map(_is_never_asked, self.addresses(host)))

    def may_lead_to(self, host: str, other: str) -> bool:
        """Whether a redirect from `host` to `other` is allowed: `other` is not local, or it is `host` itself.

        A local host is itself if nothing but its own addresses is asked, or if both are this machine.

        >>> lookups = Lookups()
        >>> lookups.may_lead_to("8.8.8.8", "10.0.0.1"), lookups.may_lead_to("10.0.0.1", "10.0.0.2")
        (False, False)
        >>> lookups.may_lead_to("10.0.0.1", "8.8.8.8"), lookups.may_lead_to("127.0.0.1", "localhost")
        (True, True)
        """
        if not self.is_local(other):
            return True
        if not self.is_local(host, alone=True):
            return False
        ours, theirs = (set(map(_address, self.addresses(each))) for each in (host, other))
        is_this_machine = bool(ours and theirs) and all(address.is_loopback for address in ours | theirs)
        return host.lower() == other.lower() or (bool(theirs) and theirs <= ours) or is_this_machine


_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def _address(text: str) -> _Address:
    """An address; that of IPv4 where an IPv6 address only contains one (mapped, translated, 6to4)."""
    ip = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(ip, ipaddress.IPv4Address):
        return ip
    if any(ip in network for network in _IPV4_WITHIN) and int(ip) > 0xFFFF:  # not :: and ::1
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour or ip


def _is_public(address: str) -> bool:
    ip = _address(address)
    return ip.is_global and not (isinstance(ip, ipaddress.IPv6Address) and ip.is_site_local)


def _is_never_asked(address: str) -> bool:
    ip = _address(address)
    teredo = ip.teredo if isinstance(ip, ipaddress.IPv6Address) else None
    return any(each.is_link_local or each in _METADATA for each in (ip, *(teredo or ())))
