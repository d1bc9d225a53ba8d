"""Runs the chat template with a few sample chats, as llama-server does.

The chats cover what templates treat differently: a message, a system message before it, an answer and a next question,
tools, a tool call with its result, reasoning. Their texts have no markers, so any marker in a prompt is the template's.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from typing import Any

from ..._util.errors import ChatError
from ...tokenizer import Tokenizer
from ..oracles.chat_answers import Prompt, Refused, answered

NOW = datetime(2026, 1, 15, 12)  # for templates that write the date
SYSTEM, QUESTION, ANSWER, NEXT = "Be as brief as a stone.", "Is it warm?", "Quite warm.", "And tomorrow?"
TOOL, CALLED, RESULT, THOUGHT = "get_weather", "Lisbon", "cloudless", "They want a number."

_USER = {"role": "user", "content": QUESTION}
_ANSWER = {"role": "assistant", "content": ANSWER}
_NEXT = {"role": "user", "content": NEXT}
_CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [
        {
            "id": "call00001",
            "type": "function",
            "function": {"name": TOOL, "arguments": '{"city": "Lisbon"}'},
        }
    ],
}
_RESULT = {"role": "tool", "content": RESULT, "tool_call_id": "call00001"}
_PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
_TOOLS = [
    {"type": "function", "function": {"name": TOOL, "description": "The weather", "parameters": _PARAMETERS}}
]

# The chats by what is special about them. The plain ones come first: every template should accept them.
PLAIN_CHATS = ("user", "turns", "system")
CHATS: dict[str, dict[str, Any]] = {
    "user": {"messages": [_USER]},
    "turns": {"messages": [_USER, _ANSWER, _NEXT]},
    "system": {"messages": [{"role": "system", "content": SYSTEM}, _USER]},
    "tools": {"messages": [_USER], "tools": _TOOLS},
    "tool call": {"messages": [_USER, _CALL, _RESULT, _ANSWER, _NEXT], "tools": _TOOLS},
    "thinking": {"messages": [_USER, {**_ANSWER, "reasoning_content": THOUGHT}, _NEXT]},
    "no thinking": {"messages": [_USER], "chat_template_kwargs": {"enable_thinking": False}},
}


class SamplePrompts:
    """The prompts that templates make of the chats, or why a chat is refused."""

    def __init__(self, tokenizer: Tokenizer, templates: Mapping[str, str]) -> None:
        """`templates` are those of the file by name. `NotInstalledError` without jinja2."""
        self._tokenizer = tokenizer
        self._templates = templates
        self.answers = self.answers_of(templates.get("") or templates.get("tool_use") or "")

    def answers_of(self, template: str) -> dict[str, Prompt | Refused]:
        """Return the prompt or the refusal of each chat, by name, with `template` instead of the file's.

        `template` is used for chats with tools as well, unless it is one of the file's own.

        "" is ChatML, which llama-server uses if a file has no template.
        """
        own = template in self._templates.values()
        return {
            name: answered(
                self._tokenizer,
                chat,
                (own and "tools" in chat and self._templates.get("tool_use")) or template or "chatml",
                NOW,
            )
            for name, chat in CHATS.items()
        }

    def prompt(self, name: str) -> bytes | None:
        """The prompt of a chat; None if it is refused."""
        found = self.answers[name]
        return found.text if isinstance(found, Prompt) else None

    def refusal(self, name: str) -> Refused | None:
        """Why a chat is refused; None if it is not."""
        found = self.answers[name]
        return found if isinstance(found, Refused) else None

    @cached_property
    def text(self) -> str:
        """All prompts that are made, joined by line breaks."""
        return b"\n".join(filter(None, map(self.prompt, self.answers))).decode("utf-8", "replace")

    @cached_property
    def bare(self) -> bytes:
        """What the template alone writes for a question and its answer; empty if it refuses them."""
        try:
            return self._tokenizer.chats.bare_text([_USER, _ANSWER], self._templates.get(""))
        except ChatError:
            return b""

    @cached_property
    def behind_answer(self) -> tuple[bytes, bytes]:
        """What follows an answer: at the end of a chat, and up to the text of the next message."""
        between = (self.prompt("turns") or b"").partition(ANSWER.encode())[2]
        return self.bare.partition(ANSWER.encode())[2], between.partition(NEXT.encode())[0]
