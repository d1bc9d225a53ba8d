"""Errors in llama-server's form: `{"error": {"code", "message", "type"}}`.

Source: format_error_response in tools/server/server-common.cpp. Types for statuses that it does not have are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from .._util.errors import GGUFError, UnsupportedTokenizerError
from .._util.extras import NotInstalledError

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    415: "invalid_request_error",
    429: "rate_limit_error",
    431: "request_too_large",
    500: "server_error",
    501: "not_supported_error",
    503: "unavailable_error",
}


class RequestError(Exception):
    """A request that is refused: the status, and why.

    `reason` is `message` as the log has it, without any text or name out of the request.
    """

    def __init__(
        self,
        status: int,
        message: str,
        headers: Mapping[str, str] = MappingProxyType({}),
        reason: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = headers
        self.reason = message if reason is None else reason

    def to_dict(self) -> dict[str, Any]:
        """The body of the response."""
        return {"error": {"code": self.status, "message": self.message, "type": _TYPES[self.status]}}


def not_found() -> RequestError:
    """No endpoint has this path and method."""
    return RequestError(404, "File Not Found")


def too_large(what: str) -> RequestError:
    """A limit of the server is exceeded; `what` says which one."""
    return RequestError(413, what)


def to_request_error(error: Exception) -> RequestError:
    """The error that the client is told. An unexpected exception becomes a 500 without details."""
    if isinstance(error, RequestError):
        return error
    if isinstance(error, RecursionError):
        return RequestError(400, "the request is nested too deeply")
    for kind, status in _STATUSES:
        if isinstance(error, kind):
            return RequestError(status, str(error), reason=type(error).__name__)
    return RequestError(500, "an unexpected error; the server's log has it")


_STATUSES: tuple[tuple[type[Exception], int], ...] = (  # the first that fits
    (UnsupportedTokenizerError, 501),
    (GGUFError, 500),
    (NotInstalledError, 500),
    (ValueError, 400),
)
