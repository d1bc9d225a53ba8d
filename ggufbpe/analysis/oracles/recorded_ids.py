"""Recorded ids as an oracle, and our own engine with another file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..._util.errors import printable
from ..._util.wording import counted
from ...tokenizer import Tokenizer
from ...tokenizer.detokenization import token_ids
from .chat_answers import ChatAnswer, answered
from .oracle import Answer, Failure, Oracle, OracleError, check_file


class Recorded(Oracle):
    """Recorded ids, one list per text, in order."""

    recorded = True

    def __init__(self, lists: Iterable[Iterable[int]], path: str = "") -> None:
        self._rest = list(map(token_ids, lists))
        self.name = f"the ids of {printable(os.path.basename(path))[1:-1]}" if path else "recorded ids"
        self._path = path or "the list"
        self._total = len(self._rest)
        self._rest.reverse()

    def first_recorded(self) -> list[int]:
        return self._rest[-1] if self._rest else []

    def encode(self, texts: Sequence[bytes], add_special: bool, parse_special: bool) -> list[Answer]:
        if len(texts) > len(self._rest):
            raise OracleError(
                f"{self._path} has ids of {self._total} texts, but there are more texts (give each text as it "
                "was when the ids were made; a file is one text)"
            )
        return [self._rest.pop() for _ in texts]

    def require_all_taken(self) -> None:
        if self._rest:
            raise OracleError(
                f"{self._path} has ids of {counted(self._total, 'text')}, of which {len(self._rest)} are left: there "
                "are fewer texts"
            )


class OtherModel(Oracle):
    """Our own engine with another GGUF."""

    takes_chats = True

    def __init__(self, other: Tokenizer, name: str = "") -> None:
        self.tokenizer = other
        path = os.path.basename(other.name)
        self.name = name or (printable(path)[1:-1] if path else other.pre)

    def encode(self, texts: Sequence[bytes], add_special: bool, parse_special: bool) -> list[Answer]:
        flags = {"add_special": add_special, "parse_special": parse_special}
        return [self._answer(text, flags) for text in texts]

    def _answer(self, text: bytes, flags: Mapping[str, bool]) -> Answer:
        assert self.tokenizer is not None
        try:
            return self.tokenizer.encode(text, **flags)
        except ValueError as error:  # the vocabulary lacks a byte
            return Failure("crash", str(error))

    def chat(self, body: Mapping[str, Any]) -> ChatAnswer:
        assert self.tokenizer is not None
        return answered(self.tokenizer, body)

    def chat_templates(self) -> dict[str, str]:
        assert self.tokenizer is not None
        return self.tokenizer.chat_templates


def other_model(rest: str, model: str, tokenizer: Tokenizer, seconds: float) -> Oracle:
    """Our own engine with the GGUF at `rest`."""
    return OtherModel(Tokenizer.from_gguf(rest))


def recorded(rest: str, model: str, tokenizer: Tokenizer, seconds: float) -> Oracle:
    """The ids in the file at `rest`."""
    from .id_parsing import parse_ids

    check_file(rest)
    with open(rest, "rb") as file:
        data = file.read()
    try:
        return Recorded(parse_ids(data), rest)
    except ValueError as error:
        raise OracleError(f"{rest}: {error}") from error
