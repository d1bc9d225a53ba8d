"""Prompts of which each character has an origin, and the generation prompt among them."""

from __future__ import annotations

import time

import pytest

from ggufbpe.chat.attributed_template import attributed_prompt
from ggufbpe.chat.bos_eos import BosEos
from ggufbpe.chat.origins import Origins
from ggufbpe.chat.render import ChatTemplate
from ggufbpe.chat.request.chat_message import Message
from ggufbpe.chat.request.messages import Request

NOW = time.gmtime(0)
NO_ENDS = BosEos(b"", b"", False, False)
TURNS = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
ASSISTANT = "{% if add_generation_prompt %}<assistant>{% endif %}"
USER = Message("user", "hi")

PROMPTS = {
    "without a generation prompt": (TURNS, Request((USER,), add_generation_prompt=False), "<|user|>|hi"),
    "with one": (TURNS + ASSISTANT, Request((USER,)), "<|user|>|hi|generation prompt:<assistant>"),
    "one behind the end of a turn": (
        TURNS + "<end>" + ASSISTANT,
        Request((USER,)),
        "<|user|>|hi|<end>|generation prompt:<assistant>",
    ),
    "an answer that goes on": (
        TURNS + ASSISTANT,
        Request((USER, Message("assistant", "so")), continuation="content", add_generation_prompt=False),
        "<|user|>|hi|generation prompt:<assistant>|so",
    ),
}


@pytest.mark.parametrize("name", PROMPTS)
def test_parts_of_a_prompt(name: str) -> None:
    source, request, expected = PROMPTS[name]
    origins = Origins()
    text = attributed_prompt(ChatTemplate(source, NO_ENDS), request, NOW, origins)
    shown = [
        ("generation prompt:" if part.origin.kind == "generation_prompt" else "")
        + text[part.start : part.end]
        for part in origins.parts(text)
    ]
    assert "|".join(shown) == expected
