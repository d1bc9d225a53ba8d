"""Connects to the network addresses that were checked, even if a name server changes its answer meanwhile.

Otherwise the library would resolve the host again after the check (DNS rebinding). So the request goes to the address
itself, while its `Host` header and the TLS server name, which the certificate must match, remain the host's. Servers
never share connections, even if they share an address.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any
from urllib.request import getproxies, proxy_bypass

from .hosts import Lookups, origin


class PinnedTransport:
    """A transport of the library's `Client`."""

    def __init__(self, http: Any, lookups: Lookups) -> None:
        """`http` is the library, httpx2 or httpx."""
        self._http = http
        self._lookups = lookups
        self._lines: dict[object, Any] = {}  # the library's transports, by server or proxy

    def handle_request(self, request: Any) -> Any:
        """The response. Raises the library's `TransportError` if there is none."""
        url = request.url
        server = origin(str(url))
        if proxy := find_proxy(url.scheme, url.host, server[2]):
            return self._line(url.scheme, proxy, proxy).handle_request(request)
        refused = self._http.ConnectError("the name is not known")
        host = url.raw_host.decode("ascii")
        for address in self._lookups.addresses(url.host):
            pinned = self._http.Request(
                request.method,
                url.copy_with(host=address.partition("%")[0]),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": host},
            )
            try:
                return self._line(url.scheme, server).handle_request(pinned)
            except (self._http.ConnectError, self._http.ConnectTimeout) as error:
                refused = error
        raise refused

    def close(self) -> None:
        """Close all connections."""
        for line in self._lines.values():
            line.close()

    def _line(self, scheme: str, leads_to: object, proxy: str | None = None) -> Any:
        key = scheme, leads_to  # one proxy may be asked with certificates and without
        if key not in self._lines:
            verify = self._certificates if scheme == "https" else False  # loading them takes 50 ms
            try:
                made = self._http.HTTPTransport(verify=verify, proxy=proxy)
            except (ImportError, ValueError) as error:  # a SOCKS proxy needs another package
                raise self._http.ProxyError(str(error)) from None
            self._lines[key] = made
        return self._lines[key]

    @cached_property
    def _certificates(self) -> Any:
        try:
            return self._http.create_ssl_context()
        except OSError as error:
            what = f"the certificates of SSL_CERT_FILE or SSL_CERT_DIR cannot be read: {error}"
            raise self._http.ConnectError(what) from None


def find_proxy(scheme: str, host: str, port: int | None) -> str | None:
    """The proxy for a server, from the environment or the system's settings; None if there is none."""
    proxies = getproxies()
    proxy = proxies.get(scheme) or proxies.get("all")
    if not proxy or proxy_bypass(f"{host}:{port}"):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"
