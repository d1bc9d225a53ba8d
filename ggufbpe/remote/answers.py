"""What an answer of a server means for who asked for a model: what is wrong, and what to do.

status and headers -> [this file] -> an error
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from ..errors import RemoteAccessError, RemoteError, RemoteNotFoundError

BUSY = (429, 500, 502, 503, 504)  # worth asking again
_LATER = "try again later"

_MEANINGS: dict[int, tuple[type[RemoteError], str, str]] = {  # status: the error, what is wrong, what to do
    401: (
        RemoteAccessError,
        "the server wants to know who asks",
        "log in with the program that the model is from, or give an address that says who you are",
    ),
    403: (RemoteAccessError, "the server does not give this file to you", "ask its owner for access"),
    404: (RemoteNotFoundError, "there is no such file", "see that the name is right"),
    407: (RemoteAccessError, "the proxy wants to know who asks", "set HTTPS_PROXY=http://USER:PASSWORD@HOST"),
    410: (RemoteNotFoundError, "the file is there no more", "look for another copy"),
    416: (RemoteError, "the file is empty, or shorter than the server said", "look for another copy"),
    429: (RemoteError, "the server has had too many questions from here", _LATER),
    451: (RemoteAccessError, "the file may not be given for legal reasons", "look for another model"),
}


def answer_error(name: str, status: int, url: str, headers: Mapping[str, str]) -> RemoteError:
    """The error for an answer that has no file. The address is not in it, as that may be signed."""
    usual = RemoteError, "the server has an error", _LATER
    if status < 500:
        usual = RemoteError, "the server's answer is not understood", "give the address of the file itself"
    kind, problem, remedy = _MEANINGS.get(status, usual)
    wait = seconds_to_wait(headers)
    if status in BUSY and wait:
        remedy = f"try again in {wait:.0f} seconds"
    return kind(f"{problem} ({urlsplit(url).hostname} answered {status})", path=name, remedy=remedy)


def seconds_to_wait(headers: Mapping[str, str]) -> float:
    """What `Retry-After` says, in seconds from now; 0 where it says nothing (RFC 9110, 10.2.3).

    >>> seconds_to_wait({"Retry-After": "2"})
    2.0
    """
    value = headers.get("Retry-After", "").strip()
    if value.isdecimal():
        return float(value[:9])
    try:
        return max(parsedate_to_datetime(value).timestamp() - time.time(), 0.0)
    except (ValueError, OverflowError):
        return 0.0
