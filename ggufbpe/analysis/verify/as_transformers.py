"""Says why a prompt is not the one that transformers makes of a chat with the template of a folder or repository.

There are two reasons, which may both hold: the file has another template, which transformers renders otherwise than
that of the folder; and llama.cpp renders the file's template otherwise than transformers does. So transformers runs
both.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from ...chat.known_templates import CHATML, resolved
from ...tokenizer import Tokenizer
from ..diagnose.cause import Cause
from ..diagnose.id_evidence import text_difference
from ..oracles.chat_answers import ChatAnswer, Prompt, Refused, answered
from ..oracles.oracle import Failure
from ..oracles.transformers_oracle import TransformersOracle
from .chat_topics import Topic, Two, topics

Body = Mapping[str, Any]


class ThreePrompts(NamedTuple):
    """One chat, rendered three times."""

    ours: ChatAnswer  # as llama.cpp renders the file's template
    of_file: ChatAnswer  # as transformers renders the file's template
    upstream: ChatAnswer  # as transformers renders the template of the folder


class AsTransformers:
    """A model, and transformers with a folder."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        oracle: TransformersOracle,
        chat_template: str | None = None,
        now: datetime | None = None,
    ) -> None:
        """`chat_template` is used in place of the file's, and `now` is the time that templates are told."""
        self._tokenizer, self._oracle, self._template, self._now = tokenizer, oracle, chat_template, now
        ends = tokenizer.chats.ends
        texts = {oracle.special_tokens.get(name, "").encode() for name in ("bos_token", "eos_token")}
        self._ends = frozenset({ends.bos, ends.eos, *texts} - {b""})
        # scripts/compare_transformers.py asks these, too
        self.engines = Two(self._ours, self._of_file, self._ends)
        self._templates = Two(self._of_file, self._upstream, self._ends)

    @property
    def has_template(self) -> bool:
        """Whether the file has a chat template, or another one is used in its place."""
        return bool(self._template or any(self._tokenizer.chat_templates.values()))

    @property
    def path(self) -> str:
        """The path or name of the model, as a command names it."""
        return self._tokenizer.name

    def rendered(self, body: Body) -> ThreePrompts:
        """The prompts of a chat."""
        return ThreePrompts(self._ours(body), self._of_file(body), self._upstream(body))

    def has_same_template(self, body: Body) -> bool:
        """Whether the folder has the same template as the file for a chat."""
        return self._source(body) == _template_for(body, self._oracle.chat_templates())

    def causes(self, body: Body) -> tuple[Cause, ...]:
        """Why our prompt and that of the folder differ; none if transformers gives no answer."""
        ours, of_file, upstream = self.rendered(body)
        if any(isinstance(answer, Failure) for answer in (ours, of_file, upstream)):
            return ()
        found = []
        if not is_same_answer(of_file, upstream):
            found.append(self.other_template(body, of_file, upstream))
        if not is_same_answer(ours, of_file):
            found.append(self.other_engine(body, ours, of_file))
        return tuple(found)

    def other_template(self, body: Body, of_file: ChatAnswer, upstream: ChatAnswer) -> Cause:
        """That transformers renders the file's template otherwise than the folder's."""
        named = topics(body, self._templates)
        sides = "transformers with the file's template", f"transformers with that of {self._oracle.source}"
        what = f"the file has another template than {self._oracle.source}, with other prompts for "
        what += _apart(named, of_file, upstream, sides)
        fix = "put the other template into the file (`ggufbpe fix`), or give it to ggufbpe or llama-server"
        return Cause("template", _detail(what, "other template", named), fix)

    def other_engine(self, body: Body, ours: ChatAnswer, of_file: ChatAnswer) -> Cause:
        """That llama.cpp renders the file's template otherwise than transformers does."""
        named = topics(body, self.engines)
        what = "the template is rendered otherwise by llama.cpp than by transformers for "
        what += _apart(named, ours, of_file, ("llama.cpp", "transformers"))
        fix = "make the prompt with `ggufbpe chat`, with ggufbpe's apply_chat_template, or with llama-server"
        return Cause("plain_jinja", _detail(what, "transformers", named), fix)

    # ---- rendering ------------------------------------------------------------------------------

    def _ours(self, body: Body) -> ChatAnswer:
        return answered(self._tokenizer, body, self._template, self._now)

    def _of_file(self, body: Body) -> ChatAnswer:
        return self._oracle.chat(body, self._source(body), self._now)

    def _upstream(self, body: Body) -> ChatAnswer:
        return self._oracle.chat(body, None, self._now)

    def _source(self, body: Body) -> str:
        """The template that llama.cpp uses for a chat."""
        named = self._tokenizer.chat_templates
        if self._template:
            return named.get(self._template) or resolved(self._template) or CHATML
        return _template_for(body, named) or CHATML


def _template_for(body: Body, named: Mapping[str, str]) -> str:
    """Which of several templates a chat takes: one with tools that named "tool_use", if there is one."""
    return (named.get("tool_use") if body.get("tools") else None) or named.get("", "")


def is_same_answer(one: ChatAnswer, other: ChatAnswer) -> bool:
    """Whether two answers are the same prompt, or both refusals."""
    if isinstance(one, Prompt) and isinstance(other, Prompt):
        return one.text == other.text
    return isinstance(one, Refused) and isinstance(other, Refused)


def _apart(named: list[Topic], one: ChatAnswer, other: ChatAnswer, sides: tuple[str, str]) -> str:
    """What the difference of two sides is about, and where their prompts part, or which side refuses."""
    what = " and ".join(topic.words for topic in named)
    for side, answer in zip(sides, (one, other)):
        if isinstance(answer, Refused):
            return f"{what}: {side} refuses the chat ({answer.reason})"
    assert isinstance(one, Prompt)
    assert isinstance(other, Prompt)
    at = text_difference(one.text, one.text, other.text)
    return f"{what}: first {at['theirs']!r} instead of {at['ours']!r} at byte {at['offset']}"


def _detail(what: str, change: str, named: list[Topic]) -> dict[str, object]:
    ids = [topic.id for topic in named]
    return {"what": what, "change": f"{change}: {', '.join(ids)}", "topics": ids}
