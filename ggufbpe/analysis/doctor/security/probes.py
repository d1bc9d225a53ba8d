"""Runs a template with a few chats, as llama-server does, and says where each part of the prompts comes from.

The time of all runs of a template together is limited, besides the limits of each run.
"""

from __future__ import annotations

import time
from contextlib import suppress
from functools import cached_property
from typing import Any, NamedTuple

from ...._util.errors import ChatError
from ....chat.attributed_template import attributed_prompt
from ....chat.bos_eos import BosEos
from ....chat.origins import Origin, Origins
from ....chat.render import ChatTemplate
from ....chat.request.messages import parse_request
from ....chat.template.environment import Template
from ....chat.template.run_limits import ChatSize
from ....chat.template.runtime import Runtime
from ....chat.template.values import Value, plain, viewed
from .time_limit import OutOfTimeError, TimeLimit

SECONDS = 1.0  # of a processor, for all runs of one template
TOO_LONG = "it takes too long"  # the reason where all time is used up
NOW = time.strptime("2026-01-15 12:00", "%Y-%m-%d %H:%M")
_RUNAWAY = (
    "the template takes more than",
    "the template writes more than",
    "the template's macros call",
)

WRAPPED = "Unable to generate parser for this template. Automatic parser generation failed: "

PLAIN, OTHER, SYSTEM, ANSWER = "zebra", "giraffe", "walrus", "ostrich"
# Texts of which templates could make something else: markers in other spellings, words that begin roles, numbers.
TRICKS = (
    "Hello [[im_end]] ((im_start)) {system} {im_end} $END$ %%stop%% ### --- *** ~~~ ::: <<x>> !! @@ ## == || "
    "User: System: Assistant: Human: system user assistant 2026 password bank python code yes no why http://a.b "
    "&lt;|im_end|&gt; %3C|im_end|%3E ＜|im_end|＞ < |im_end| > <\u200b|im_end|> <|im_\u200bend|> <| im_end |> "
    "<!|im_end|!> <|im_x_end|> \\x3c|im_end|\\x3e (|im_end|) {|im_end|} <|IM _END|> <im_end> |im_end| "
    "END STOP EOS SYS USR ABC please help me the end /s s> \\n \\n\\nHuman: OK."
)


class AttributedText(NamedTuple):
    """A part of a prompt and its origin."""

    text: str
    origin: Origin


class ProbeResult(NamedTuple):
    """The prompt of a chat in parts, or why there is none."""

    parts: tuple[AttributedText, ...]
    refusal: str = ""

    @property
    def text(self) -> str:
        """The whole prompt."""
        return "".join(part.text for part in self.parts)

    @property
    def own(self) -> str:
        """What the template wrote itself."""
        return "".join(
            part.text for part in self.parts if part.origin.kind in ("template", "generation_prompt")
        )

    def has_content(self, index: int) -> bool:
        """Whether anything of the text of a message is in the prompt."""
        return any(
            part.origin.kind == "message"
            and part.origin.index == index
            and part.origin.field.startswith("content")
            for part in self.parts
        )

    @property
    def runs_away(self) -> bool:
        """Whether the run reached a limit."""
        return self.refusal.startswith(_RUNAWAY)


class _WatchedRuntime(Runtime):
    """A run that notes by which names members are asked for, however the template made them."""

    def __init__(self, names: set[str]) -> None:
        super().__init__(NOW, lambda: ChatSize(10_000, 1 << 20))
        self._asked = names

    def item(self, value: Value, key: Value) -> Value:
        if isinstance(key, str) and "__" in key and len(key) < 80:
            self._asked.add(key)
        return super().item(value, key)


class Probes:
    """The runs of one template. A chat that is refused, or comes after all time is used up, has an empty answer."""

    def __init__(self, source: str, ends: BosEos) -> None:
        """`ChatError` for a template that cannot be compiled."""
        self._limit = TimeLimit(SECONDS)
        self.members: set[str] = set()  # names with two underscores by which members were asked for
        self._template: ChatTemplate | None = None
        with suppress(OutOfTimeError), self._limit.timed():
            self._template = ChatTemplate(source, ends)

    @cached_property
    def plain(self) -> ProbeResult:
        """A question alone."""
        return self.answer(user(PLAIN))

    @cached_property
    def tricks(self) -> ProbeResult:
        """A question full of what templates could look for."""
        return self.answer(user(TRICKS))

    @cached_property
    def turns(self) -> ProbeResult:
        """A question, its answer, and another question."""
        return self.answer(user(PLAIN), message("assistant", ANSWER), user(OTHER))

    @cached_property
    def system(self) -> ProbeResult:
        """A system message and a question."""
        return self.answer(message("system", SYSTEM), user(PLAIN))

    @cached_property
    def long(self) -> ProbeResult:
        """Six questions with their answers, and another question."""
        turns = [
            each
            for turn in range(6)
            for each in (user(f"{PLAIN} {turn}"), message("assistant", f"{ANSWER} {turn}"))
        ]
        return self.answer(*turns, user(OTHER))

    def bare(self, *messages: dict[str, Any]) -> str:
        """What the template alone makes of messages, as in transformers; "" if it refuses."""
        if self._template is None:
            return ""
        try:
            with self._limit.timed():
                return self._template.bare_text(list(messages))
        except (ChatError, OutOfTimeError):
            return ""

    def role(self, role: str) -> ProbeResult:
        """A message of another role after a question and its answer."""
        return self.answer(user(PLAIN), message("assistant", ANSWER), message(role, OTHER))

    def answer(self, *messages: dict[str, Any]) -> ProbeResult:
        """What the template makes of messages."""
        if self._template is None:
            return ProbeResult((), TOO_LONG)
        seconds = self._limit.left
        try:
            with self._limit.timed():
                request = parse_request({"messages": list(messages)}, True)
                origins = Origins()
                text = attributed_prompt(self._template, request, NOW, origins)
                data = text.encode("latin-1")
                parts = (
                    AttributedText(str(plain(data[part.start : part.end].decode("latin-1"))), part.origin)
                    for part in origins.parts(text)
                )
                return ProbeResult(tuple(parts))
        except OutOfTimeError:
            # One chat that takes most of the time for all runs away, however few steps a slow machine has counted.
            is_alone = seconds > SECONDS / 2
            return ProbeResult((), f"{_RUNAWAY[0]} {SECONDS / 2:g} seconds" if is_alone else TOO_LONG)
        except ChatError as error:
            reason = error.reason
            marks = [mark for mark in _RUNAWAY if mark in reason]
            return ProbeResult((), reason[reason.index(marks[0]) :] if marks else reason)

    def costs(self, messages: list[dict[str, Any]]) -> tuple[int, int] | None:
        """The steps that the template takes for messages, and the characters that it writes; None if it refuses."""
        if self._template is None:
            return None
        template: Template = self._template.template
        names = {
            "messages": viewed(messages),
            "bos_token": "",
            "eos_token": "",
            "add_generation_prompt": True,
        }
        run = _WatchedRuntime(self.members)
        try:
            with self._limit.timed():
                text = template.render_by(run, names)
        except (ChatError, OutOfTimeError):
            return None
        return run.steps_taken, len(text)


def message(role: str, content: str) -> dict[str, Any]:
    """A message as in a request."""
    return {"role": role, "content": content}


def user(content: str) -> dict[str, Any]:
    """A message of the user."""
    return message("user", content)
