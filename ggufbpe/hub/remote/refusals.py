"""Turns a server's refusal of a model into an error that says what is wrong and what to do."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from ..._util.errors import RemoteAccessError, RemoteError, RemoteNotFoundError

BUSY = (429, 500, 502, 503, 504)  # worth a retry
_LATER = "try again later"
_NONE_LEFT = re.compile(r";\s*r\s*=\s*0\s*;\s*t\s*=\s*([0-9]+)")  # requests, and seconds until there are more

_MEANINGS: dict[int, tuple[type[RemoteError], str, str]] = {  # status: the error, what is wrong, what to do
    401: (
        RemoteAccessError,
        "the server requires a login",
        "log in with the program that the model comes from, or give https://USER:PASSWORD@HOST/…",
    ),
    403: (RemoteAccessError, "the server denies access to this file", "ask its owner for access"),
    404: (RemoteNotFoundError, "there is no such file", "check the name"),
    407: (RemoteAccessError, "the proxy requires a login", "set HTTPS_PROXY=http://USER:PASSWORD@HOST"),
    410: (RemoteNotFoundError, "the file is gone", "look for another copy"),
    416: (RemoteError, "the file is empty, or shorter than the server said", "look for another copy"),
    429: (RemoteError, "the server has had too many requests from here", _LATER),
    451: (RemoteAccessError, "the file is unavailable for legal reasons", "look for another model"),
}


def answer_error(name: str, status: int, url: str, headers: Mapping[str, str]) -> RemoteError:
    """The error for a response without a file. It omits the address, which may be signed."""
    usual = RemoteError, "the server has an error", _LATER
    if status < 500:
        usual = RemoteError, "the server's answer is not understood", "give the address of the file itself"
    kind, problem, remedy = _MEANINGS.get(status, usual)
    wait = seconds_to_wait(headers)
    if status in BUSY and wait:
        remedy = f"try again in {wait:.0f} seconds"
    return kind(f"{problem} ({urlsplit(url).hostname} answered {status})", path=name, remedy=remedy)


def seconds_to_wait(headers: Mapping[str, str]) -> float:
    """`Retry-After` in seconds from now, or when `RateLimit` allows the next request; 0 if neither says so.

    Source: RFC 9110, 10.2.3; the IETF's draft "RateLimit header fields for HTTP", which the hub follows.

    >>> seconds_to_wait({"Retry-After": "2"}), seconds_to_wait({"RateLimit": '"api";r=0;t=55'})
    (2.0, 55.0)
    """
    value = headers.get("Retry-After", "").strip()
    if not value and (limit := _NONE_LEFT.search(headers.get("RateLimit", ""))):
        value = limit[1]
    if value.isdecimal():
        return float(value[:9])
    try:
        return max(parsedate_to_datetime(value).timestamp() - time.time(), 0.0)
    except (ValueError, OverflowError):
        return 0.0
