"""A running llama-server as an oracle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..._util.errors import printable
from ...tokenizer import Tokenizer
from .chat_answers import ChatAnswer, Prompt, Refused, refusal
from .oracle import Answer, Failure, Oracle, OracleError, garbage

_CHAT_ANSWER = 1 << 26  # bytes; of a prompt that a template makes of little


class Server(Oracle):
    """A running llama-server, asked by POST /tokenize, and for chats by /apply-template and /v1/chat/completions/
    input_tokens (tools/server/server-context.cpp).
    """

    takes_chats = True

    def __init__(self, url: str, model: str, tokenizer: Tokenizer, seconds: float) -> None:
        from urllib.parse import urlsplit
        from urllib.request import ProxyHandler, build_opener

        url = url if "://" in url else f"http://{url}"
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise OracleError(f"{printable(url)} is no address of a server, such as http://127.0.0.1:8080")
        self._url = url.rstrip("/")
        self._seconds = seconds
        near = parts.hostname in ("localhost", "::1") or parts.hostname.startswith("127.")
        self._open = build_opener(*[ProxyHandler({})] * near).open
        self.name = f"llama-server at {parts.netloc.rpartition('@')[2]}"
        [answer] = self.encode([b"Hello"], True, True)
        if isinstance(answer, Failure):
            raise OracleError(
                f"no llama-server answers at {printable(self._url + '/tokenize')}: {answer.detail}"
            )

    def encode(self, texts: Sequence[bytes], add_special: bool, parse_special: bool) -> list[Answer]:
        return [self._encode(text, add_special, parse_special) for text in texts]

    def _encode(self, text: bytes, add_special: bool, parse_special: bool) -> Answer:
        try:
            question = {"content": text.decode(), "add_special": add_special, "parse_special": parse_special}
        except UnicodeDecodeError as error:
            return Failure("refused", f"the text is not UTF-8 at byte {error.start}, which JSON cannot carry")
        answer = self._asked("/tokenize", question, 4096 + 64 * len(text))
        if isinstance(answer, _HTTPRefusal):
            return Failure("refused", str(answer))
        return answer if isinstance(answer, Failure) else _ids_of_answer(answer)

    def _asked(self, path: str, question: Any, limit: int) -> bytes | _HTTPRefusal | Failure:
        """What the server answers to a question, or to GET where that is None; `limit` bytes and one at most."""
        import json
        from http.client import HTTPException
        from urllib.error import HTTPError
        from urllib.request import Request

        data = None if question is None else json.dumps(question).encode()
        request = Request(self._url + path, data, {"Content-Type": "application/json"})
        try:
            with self._open(request, timeout=self._seconds) as response:
                return _read_in_time(response, self._seconds, limit)
        except HTTPError as error:
            with error:
                return _HTTPRefusal(error.code, error.read(1 << 16))
        except TimeoutError:
            return Failure("timeout", f"no answer within {self._seconds:g} s")
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, TimeoutError):
                return Failure("timeout", f"no answer within {self._seconds:g} s")
            return Failure("crash", f"no connection: {printable(str(reason), 200)}")

    # ---- chats ----------------------------------------------------------------------------------

    def chat(self, body: Mapping[str, Any]) -> ChatAnswer:
        rendered = self._of_chat("/apply-template", body)
        if isinstance(rendered, Refused | Failure):
            return rendered
        prompt = rendered.get("prompt")
        if not isinstance(prompt, str):
            return Failure("garbage", "/apply-template answers no prompt")
        counted = self._of_chat("/v1/chat/completions/input_tokens", body)
        if isinstance(counted, Refused | Failure):
            return counted
        tokens = counted.get("input_tokens")
        return Prompt(prompt.encode("utf-8", "surrogatepass"), tokens if type(tokens) is int else None)

    def _of_chat(self, path: str, body: Mapping[str, Any]) -> dict[str, Any] | Refused | Failure:
        """The object that is answered to a chat."""
        answer = self._asked(path, body, _CHAT_ANSWER)
        if isinstance(answer, Failure):
            return answer
        if isinstance(answer, bytes):
            return _object(answer)
        message = answer.message()
        if answer.status in (400, 500) and message is not None:
            return refusal(message)
        return Failure("garbage", f"{path} answers {answer}")

    def chat_templates(self) -> dict[str, str]:
        answer = self._asked("/props", None, _CHAT_ANSWER)
        if not isinstance(answer, bytes):
            return {}
        said = _object(answer)
        named = {"": said.get("chat_template"), "tool_use": said.get("chat_template_tool_use")}
        return {name: source for name, source in named.items() if isinstance(source, str) and source}


class _HTTPRefusal(NamedTuple):
    """An answer with the status of an error."""

    status: int
    body: bytes

    def message(self) -> str | None:
        """What llama-server says of the error."""
        error = _object(self.body).get("error")
        message = error.get("message") if isinstance(error, dict) else None
        return message if isinstance(message, str) else None

    def __str__(self) -> str:
        return f"HTTP {self.status}: {printable(self.body[:500].decode('utf-8', 'replace'), 200)}"


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
    ids = _object(body).get("tokens")
    if not isinstance(ids, list) or not all(type(token) is int for token in ids):
        return garbage(body)
    return ids


def _object(body: bytes) -> dict[str, Any]:
    """A JSON object; an empty one where a body is none."""
    import json

    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
