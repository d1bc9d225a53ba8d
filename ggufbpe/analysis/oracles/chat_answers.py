"""The answer to a chat, a prompt or a refusal: our own answer, and a server's in the same form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from ..._util.errors import ChatError
from ...tokenizer import Tokenizer
from .oracle import Failure

Body = Mapping[str, Any]
"""The body of a request to `/v1/chat/completions`."""


class Prompt(NamedTuple):
    """The UTF-8 of a prompt, `text`, and the number of its `tokens`; None if they are not counted together with it."""

    text: bytes
    tokens: int | None = None


class Refused(NamedTuple):
    """The `reason` why a chat is refused, and the `line` of the template that refuses it; None if that is not known."""

    reason: str
    line: int | None = None

    def __str__(self) -> str:
        return str(ChatError(self.reason, self.line))


ChatAnswer = Prompt | Refused | Failure

_WRAPPED = "Unable to generate parser for this template. Automatic parser generation failed: "
_WHERE = re.compile(r"\n------------\nWhile executing \w+ at line (\d+), .*\nError: (.*)", re.DOTALL)


def refusal(message: str) -> Refused:
    """A refusal in llama-server's words: the reason, and the line, without the excerpt of the template."""
    match = _WHERE.search(message)
    return Refused(match[2], int(match[1])) if match else Refused(message.removeprefix(_WRAPPED))


def answered(
    tokenizer: Tokenizer, body: Body, chat_template: str | None = None, now: datetime | None = None
) -> Prompt | Refused:
    """Our own answer, with the arguments of `Chats.prompt`; the tokens are not counted."""
    try:
        return Prompt(tokenizer.chats.prompt(body, chat_template, now))
    except ChatError as error:
        return Refused(error.reason.removeprefix(_WRAPPED), error.line)


def with_count(tokenizer: Tokenizer, answer: Prompt | Refused) -> Prompt | Refused:
    """An answer with the number of tokens that the prompt has in our tokenizer."""
    return (
        answer._replace(tokens=len(tokenizer.encode(answer.text))) if isinstance(answer, Prompt) else answer
    )
