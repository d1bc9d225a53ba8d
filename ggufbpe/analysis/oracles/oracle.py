"""The interface of everything that can be asked for ids, and the ways in which it may fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..._util.errors import printable
from ..._util.extras import install_command
from ...tokenizer import Tokenizer

if TYPE_CHECKING:
    from .chat_answers import ChatAnswer


class OracleError(ValueError):
    """The other tokenizer cannot be asked at all: it is missing, not installed, or refuses the model."""


class Failure(NamedTuple):
    """Why a tokenizer gave no ids, in words (`detail`) and for programs (`kind`).

    `kind` is "crash", "timeout", "garbage" (an answer that is no list of ids) or "refused" (of a text that the
    tokenizer cannot encode).
    """

    kind: str
    detail: str


Answer = list[int] | Failure


class Oracle:
    """A tokenizer to compare with; a context manager.

    `tokenizer` is set if the oracle is our own engine, `recorded` if it has only the ids of certain texts, in their
    order.
    """

    name: str
    recorded = False
    batch = 64  # texts asked for at a time
    tokenizer: Tokenizer | None = None
    note = ""  # what a reader of the comparison must know
    takes_chats = False

    def encode(self, texts: Sequence[bytes], add_special: bool, parse_special: bool) -> list[Answer]:
        """The ids of each text, or why there are none; the flags are those of `Tokenizer.encode`."""
        raise NotImplementedError

    def chat(self, body: Mapping[str, Any]) -> ChatAnswer:
        """The prompt of a chat, given as the body of a request, or why there is none; where `takes_chats`."""
        raise NotImplementedError

    def chat_templates(self) -> dict[str, str]:
        """The templates by name that it says it runs; that without a name is "". Empty where it does not say."""
        return {}

    def add_special(self, wanted: bool) -> bool:
        """Whether to compare with BOS and EOS: `wanted`, unless the oracle cannot."""
        return wanted

    def parse_special(self, wanted: bool) -> bool:
        """Whether to compare with control tokens in texts parsed: `wanted`, unless the oracle cannot."""
        return wanted

    def first_recorded(self) -> list[int]:
        """The recorded ids of the first text, for an oracle that has only recorded ids."""
        return []

    def require_all_taken(self) -> None:
        """Raises `OracleError` if ids are recorded for more texts than there were."""

    def close(self) -> None:
        """End all that was started."""

    def __enter__(self) -> Oracle:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_file(path: str) -> None:
    """Raises `OracleError` if a file cannot be read."""
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise OracleError(f"{path}: {error.strerror}") from error


def not_installed(package: str, said: str) -> str:
    """A message that a package is missing, and how to get it."""
    return f"the package {package} is not installed ({said}): {install_command(package)}"


def of_crash(status: int | None, seconds: float) -> Failure:
    """The failure of a process that ended with a status, or gave no answer in time."""
    if status is None:
        return Failure("timeout", f"no answer within {seconds:g} s")
    return Failure("crash", ending(status))


def ending(status: int) -> str:
    """How a process ended, in words."""
    if status >= 0:
        return f"exit code {status}"
    import signal

    try:
        return f"ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"ended by signal {-status}"


def garbage(output: bytes) -> Failure:
    """The failure of an answer that is not a list of ids."""
    shown = printable(output[:60].decode("utf-8", "replace"))
    return Failure("garbage", f"the output is not a list of ids: {shown}" if output else "no output")
