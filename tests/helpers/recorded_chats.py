"""Recorded answers of llama-server to chats, for the tests of chat templates."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from record_chats import VOCABULARY as VOCABULARY
from record_chats import read_chats


@dataclass(frozen=True)
class Chat:
    """A chat under a template, and what llama-server answers to it."""

    template_name: str  # "" for a model without a template
    template: str
    kind: str
    request: dict[str, Any]  # the body that the server is sent
    now: int  # the second of the answer since 1970, in UTC
    prompt: str | None  # None: the server refuses
    tokens: int = 0  # of the prompt, over `VOCABULARY`
    status: int = 200
    message: str = ""  # of a refusal


@functools.cache
def _recorded() -> tuple[dict[str, str], dict[str, Any]]:
    return read_chats("templates"), read_chats("answers")


def template_names() -> list[str]:
    """The templates that there are answers of."""
    return list(_recorded()[0])


def recorded_chats(template_name: str) -> Iterator[Chat]:
    """Every chat under one template."""
    templates, recorded = _recorded()
    of_template = recorded["templates"][template_name]
    for (kind, request), number in zip(recorded["requests"].items(), of_template["index"], strict=True):
        answer = of_template["answers"][number]
        asked = (template_name, templates[template_name], kind, request, recorded["now"])
        if isinstance(answer[0], str):
            yield Chat(*asked, prompt=answer[0], tokens=answer[1])
        else:
            yield Chat(*asked, prompt=None, status=answer[0], message=answer[1])
