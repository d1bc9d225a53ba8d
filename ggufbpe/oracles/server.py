"""A running llama-server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import printable
from ..tokenizer import Tokenizer
from .oracle import Answer, Failure, Oracle, OracleError, garbage


class Server(Oracle):
    """A running llama-server, asked by POST /tokenize (tools/server/server-context.cpp, post_tokenize)."""

    def __init__(self, url: str, model: str, tokenizer: Tokenizer, seconds: float) -> None:
        from urllib.parse import urlsplit
        from urllib.request import ProxyHandler, build_opener

        url = url if "://" in url else f"http://{url}"
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise OracleError(f"{printable(url)} is no address of a server, such as http://127.0.0.1:8080")
        self._url = url.rstrip("/") + "/tokenize"
        self._seconds = seconds
        near = parts.hostname in ("localhost", "::1") or parts.hostname.startswith("127.")
        self._open = build_opener(*[ProxyHandler({})] * near).open
        self.name = f"llama-server at {parts.netloc.rpartition('@')[2]}"
        [answer] = self.encode([b"Hello"], True, True)
        if isinstance(answer, Failure):
            raise OracleError(f"no llama-server answers at {printable(self._url)}: {answer.detail}")

    def encode(self, texts: Sequence[bytes], add_special: bool, parse_special: bool) -> list[Answer]:
        return [self._encode(text, add_special, parse_special) for text in texts]

    def _encode(self, text: bytes, add_special: bool, parse_special: bool) -> Answer:
        import json
        from http.client import HTTPException
        from urllib.error import HTTPError
        from urllib.request import Request

        try:
            question = {"content": text.decode(), "add_special": add_special, "parse_special": parse_special}
        except UnicodeDecodeError as error:
            return Failure("refused", f"the text is not UTF-8 at byte {error.start}, which JSON cannot carry")
        request = Request(
            self._url, json.dumps(question).encode(), {"Content-Type": "application/json"}, method="POST"
        )
        try:
            with self._open(request, timeout=self._seconds) as response:
                body = _read_in_time(response, self._seconds, 4096 + 64 * len(text))
        except HTTPError as error:
            with error:
                said = printable(error.read(500).decode("utf-8", "replace"), 200)
            return Failure("refused", f"HTTP {error.code}: {said}")
        except TimeoutError:
            return Failure("timeout", f"no answer within {self._seconds:g} s")
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, TimeoutError):
                return Failure("timeout", f"no answer within {self._seconds:g} s")
            return Failure("crash", f"no connection: {printable(str(reason), 200)}")
        return _ids_of_answer(body)


def _read_in_time(response: Any, seconds: float, limit: int) -> bytes:
    """A body of at most a byte over `limit`. `TimeoutError` where it drips in for too long."""
    import time

    end = time.monotonic() + seconds
    body = b""
    while len(body) <= limit and (block := response.read1(1 << 16)):
        body += block
        if time.monotonic() > end:
            raise TimeoutError
    return body


def _ids_of_answer(body: bytes) -> Answer:
    import json

    try:
        ids = json.loads(body)["tokens"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return garbage(body)
    if not isinstance(ids, list) or not all(type(token) is int for token in ids):
        return garbage(body)
    return ids
