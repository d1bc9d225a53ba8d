"""Compares the prompts of chats with those of an oracle, and hands on the prompts, whose ids are then compared.

Refusals are compared, too: a chat that both refuse counts as equal, and different reasons are reported. Chats whose
prompts differ are grouped by cause (analysis/diagnose/prompt_diagnosis.py); the first of each group is shrunk to the
smallest chat that differs in the same way.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ..._util.progress import OnProgress, Progress
from ..._util.wording import counted
from ...gguf.change import Change
from ...hub.model_location import fix_command
from ...tokenizer import Tokenizer
from ...tokenizer.inputs import ChatOrBody, request_body
from ..diagnose.cause import Cause
from ..diagnose.explanation import Explanation
from ..diagnose.id_evidence import text_difference
from ..oracles.chat_answers import ChatAnswer, Prompt, Refused, answered, with_count
from ..oracles.oracle import Failure, Oracle
from ..oracles.transformers_oracle import TransformersOracle
from .as_transformers import AsTransformers, is_same_answer
from .result import ComparedText
from .shrink import SECONDS, Shrinking, shrunk_json

if TYPE_CHECKING:
    from ..diagnose.chat_changes import ChatChange

PROMPT, REFUSED_BY_US, REFUSED_BY_THEM, COUNT = "prompt", "refused by ggufbpe", "refused", "number of tokens"
_MOST_KINDS = 100  # of differences; chats with further ones are only counted
_SECONDS = 30.0  # to look for causes of all chats
_SHRUNK, _SHRINK_SECONDS = 12, 40.0
_OTHER_REASONS = 20  # examples of refusals for different reasons


class ComparedChat(NamedTuple):
    """A chat to compare: its `source` in words, and the `body` of a request."""

    source: str
    body: Mapping[str, Any]


class ChatExample(NamedTuple):
    """A `chat` with both answers to it: `ours`, and `theirs`, which is the other side's."""

    chat: ComparedChat
    ours: Prompt | Refused
    theirs: Prompt | Refused

    @property
    def place(self) -> dict[str, object]:
        """Where the two prompts first differ, as from `text_difference`; empty for refusals."""
        if isinstance(self.ours, Refused) or isinstance(self.theirs, Refused):
            return {}
        return text_difference(self.ours.text, self.ours.text, self.theirs.text)

    def to_dict(self) -> dict[str, Any]:
        """The example as `--json` writes it."""
        return {
            "source": self.chat.source,
            "request": self.chat.body,
            "ours": _answer(self.ours),
            "theirs": _answer(self.theirs),
            "first": self.place or None,
        }


@dataclass(repr=False)
class ChatDifference:
    """Chats that differ in the same way, for the same causes as far as is known.

    `kind` is "prompt", "number of tokens", "refused" (by the other side alone) or "refused by ggufbpe". `chats` counts
    the chats, `first` is the first of them, and `smallest` is the chat that it was shrunk to; None if it was not
    shrunk. With the `causes`, the share `explains` of the prompt agrees, 0 to 1.
    """

    kind: str
    first: ChatExample
    causes: tuple[Cause, ...] = ()
    explains: float = 0.0
    chats: int = 1
    smallest: ChatExample | None = None

    def to_dict(self) -> dict[str, Any]:
        """The difference as `--json` writes it."""
        return {
            "kind": self.kind,
            "chats": self.chats,
            "causes": [cause.to_dict() for cause in self.causes],
            "explains": self.explains,
            "first": self.first.to_dict(),
            "smallest": None if self.smallest is None else self.smallest.to_dict(),
        }

    def __repr__(self) -> str:
        causes = " + ".join(cause.id for cause in self.causes) or "no known cause"
        return f"<ChatDifference in {self.kind}: {counted(self.chats, 'chat')}, {causes}>"


@dataclass(repr=False)
class ChatResult:
    """The result of comparing chats; the ids of their prompts are compared as texts.

    `chats` counts all chats, and `prompts` the prompts that the other side made. `different` counts the chats that
    differ, `refused` those that both sides refuse, `reasons` those of them for which the reasons differ, and `failed`
    those to which the other side gave no answer that can be compared. `differences` are the chats that differ, by kind
    and cause, the most frequent first; `other_reasons` are up to 20 chats refused for different reasons; `failures` are
    the kinds of failure, each with the source of its first chat.
    """

    chats: int = 0
    prompts: int = 0
    different: int = 0
    refused: int = 0
    reasons: int = 0
    failed: int = 0
    differences: list[ChatDifference] = field(default_factory=list)
    other_reasons: list[ChatExample] = field(default_factory=list)
    failures: list[tuple[Failure, str]] = field(default_factory=list)

    @property
    def same(self) -> bool:
        """Whether at least one chat was compared, none differs, and all were answered."""
        return self.chats > self.failed and not self.different and not self.failed

    def to_dict(self) -> dict[str, Any]:
        """All of it as `ggufbpe verify --json` writes it under "chats"."""
        return {
            "chats": self.chats,
            "different": self.different,
            "refused_by_both": self.refused,
            "refused_for_other_reasons": self.reasons,
            "failed": self.failed,
            "differences": [difference.to_dict() for difference in self.differences],
            "other_reasons": [example.to_dict() for example in self.other_reasons],
            "failures": [{**failure._asdict(), "first": source} for failure, source in self.failures],
        }

    def __repr__(self) -> str:
        return (
            f"<ChatResult: {counted(self.chats, 'chat')}, {self.different} different, {self.failed} failed>"
        )


def _answer(answer: Prompt | Refused) -> dict[str, Any]:
    if isinstance(answer, Refused):
        return {"refused": answer.reason, "line": answer.line}
    return {"prompt": answer.text.decode("utf-8", "replace"), "tokens": answer.tokens}


def read_chats(given: Iterable[ChatOrBody | ComparedChat] | Mapping[str, Any]) -> Iterator[ComparedChat]:
    """Chats as a caller gives them: bodies or messages, or one body. `ValueError` for what is not JSON."""
    for number, each in enumerate([given] if isinstance(given, Mapping) else given):
        chat = each if isinstance(each, ComparedChat) else ComparedChat(f"chat {number}", request_body(each))
        try:
            json.dumps(chat.body)
        except (TypeError, RecursionError) as error:
            raise ValueError(f"{chat.source} cannot be written as JSON: {error}") from None
        yield chat


class ComparingChats:
    """One run: asks both sides, and collects what differs."""

    def __init__(
        self, tokenizer: Tokenizer, oracle: Oracle, chat_template: str | None, progress: OnProgress
    ) -> None:
        self._tokenizer, self._oracle, self._progress = tokenizer, oracle, progress
        self._template = chat_template
        self._kinds: dict[str, ChatDifference] = {}
        self._seconds = _SECONDS  # left to look for causes
        self._templates: Sequence[ChatChange] | None = None
        self._transformers = (
            AsTransformers(tokenizer, oracle, chat_template)
            if isinstance(oracle, TransformersOracle)
            else None
        )
        self.result = ChatResult()

    def texts(self, chats: Iterable[ComparedChat]) -> Iterator[ComparedText]:
        """Compare chats one by one, and yield the other side's prompt of each, to compare its ids."""
        for chat in chats:
            self._progress(Progress("comparing chats", self.result.chats, None, "chats"))
            self.result.chats += 1
            theirs = self._oracle.chat(chat.body)
            if isinstance(theirs, Failure):
                self._failed(chat, theirs)
                continue
            example = ChatExample(chat, self._ours(chat.body), theirs)
            kind = self._kind(example)
            if kind:
                self._differs(kind, example)
            elif isinstance(theirs, Refused):
                self._refused_by_both(example)
            if isinstance(theirs, Prompt):
                self.result.prompts += 1
                yield ComparedText(f"the prompt of {chat.source}", 0, theirs.text)

    def examine(self) -> ChatResult:
        """Shrink the first chat of each kind."""
        kinds = sorted(self._kinds.values(), key=lambda each: -each.chats)
        end = time.monotonic() + _SHRINK_SECONDS
        for number, each in enumerate(kinds[:_SHRUNK]):
            self._progress(
                Progress(f"shrinking chat {number + 1}/{len(kinds)}", self.result.chats, None, "chats")
            )
            seconds = min((end - time.monotonic()) / (min(len(kinds), _SHRUNK) - number), SECONDS)
            differ = partial(self._have, each)
            body = shrunk_json(each.first.chat.body, Shrinking(differ, seconds=seconds))
            theirs = self._oracle.chat(body)
            if not isinstance(theirs, Failure):
                each.smallest = ChatExample(ComparedChat("", body), self._ours(body), theirs)
        self.result.differences = kinds
        return self.result

    # ---- comparing ------------------------------------------------------------------------------

    def _ours(self, body: Mapping[str, Any]) -> Prompt | Refused:
        return with_count(self._tokenizer, answered(self._tokenizer, body, self._template))

    def _kind(self, example: ChatExample) -> str:
        """How the answers differ; "" if they do not."""
        ours, theirs = example.ours, example.theirs
        if isinstance(ours, Refused) or isinstance(theirs, Refused):
            if isinstance(ours, Refused) and isinstance(theirs, Refused):
                return ""
            return REFUSED_BY_US if isinstance(ours, Refused) else REFUSED_BY_THEM
        if ours.text != theirs.text:
            return PROMPT
        return COUNT if theirs.tokens not in (None, ours.tokens) and self._ids_are_same(theirs.text) else ""

    def _ids_are_same(self, prompt: bytes) -> bool:
        """Whether the ids of a prompt are the same; if not, that is found when texts are compared."""
        return self._oracle.encode([prompt], True, True) == [self._tokenizer.encode(prompt)]

    def _failed(self, chat: ComparedChat, failure: Failure) -> None:
        self.result.failed += 1
        if failure not in [known for known, _ in self.result.failures] and self.result.failed <= _MOST_KINDS:
            self.result.failures.append((failure, chat.source))

    def _refused_by_both(self, example: ChatExample) -> None:
        self.result.refused += 1
        if example.ours != example.theirs:
            self.result.reasons += 1
            if len(self.result.other_reasons) < _OTHER_REASONS:
                self.result.other_reasons.append(example)

    def _differs(self, kind: str, example: ChatExample) -> None:
        self.result.different += 1
        explanation = None if kind == COUNT else self._explanation(example)
        difference = ChatDifference(kind, example, *(explanation[:2] if explanation else ()))
        key = f"{kind} {_key(difference, example)}"
        if key in self._kinds:
            self._kinds[key].chats += 1
        elif len(self._kinds) < _MOST_KINDS:
            self._kinds[key] = difference

    def _explanation(self, example: ChatExample) -> Explanation | None:
        """Why the answers differ: another template that the other side says it runs, or what `diagnose` finds."""
        body, theirs = example.chat.body, example.theirs
        if self._transformers is not None:
            causes = self._transformers.causes(body)
            return Explanation(causes, 1.0) if causes else None
        from ..diagnose.chat_changes import Rendering
        from ..diagnose.prompt_diagnosis import diagnose_prompt

        asked = Rendering(body, self._template)
        for change in self._other_templates():
            if is_same_answer(answered(self._tokenizer, body, change.apply(asked).chat_template), theirs):
                return Explanation((change.cause,), 1.0)
        if isinstance(theirs, Refused) or self._seconds < 0:
            return None
        began = time.monotonic()
        explanation = diagnose_prompt(self._tokenizer, asked, theirs.text, self._other_templates())
        self._seconds -= time.monotonic() - began
        known = [
            each for each in explanation.explanations if f"{PROMPT} {_causes_key(each.causes)}" in self._kinds
        ]
        best = (known or [*explanation.explanations])[0]
        return None if isinstance(example.ours, Refused) and best.explains < 1 else best

    def _other_templates(self) -> Sequence[ChatChange]:
        """The templates that the other side says it uses, if they are not ours."""
        if self._templates is None:
            from ..diagnose.chat_changes import other_template

            there = "start llama-server without --chat-template or --chat-template-file"
            if self._oracle.tokenizer is not None:  # of another file
                there = self._how_to_take_over(self._oracle.tokenizer)
            fix = f"{there}, or give ggufbpe the other one with --chat-template-file"
            own = self._template or self._tokenizer.chat_template
            self._templates = [
                other_template(
                    f"another one, that of {self._oracle.name}{f' ({name})' * bool(name)}", source, fix
                )
                for name, source in self._oracle.chat_templates().items()
                if source != own
            ]
        return self._templates

    def _how_to_take_over(self, other: Tokenizer) -> str:
        """What gives both files one template: a command where this file has none, and the other must be right."""
        own, theirs = self._tokenizer.name, other.name
        lacks = not self._tokenizer.chat_templates.get("") and bool(other.chat_templates.get(""))
        if not (lacks and own and theirs):
            return "give both files the same chat template (`ggufbpe fix` with --chat-template)"
        command = fix_command(own, Change(templates={"": theirs}).arguments)
        return f"take that template over, as this file has none: `{command}`"

    # ---- shrinking ------------------------------------------------------------------------------

    def _have(self, like: ChatDifference, bodies: Sequence[Mapping[str, Any]]) -> list[bool]:
        """Which chats differ like the first one: in the same kind, and if refused, for the same reason.

        Where transformers is asked, for the same causes.
        """
        return [self._differs_alike(like, body) for body in bodies]

    def _differs_alike(self, like: ChatDifference, body: Mapping[str, Any]) -> bool:
        kind, first, causes_key = like.kind, like.first, _causes_key(like.causes)
        theirs: ChatAnswer = self._oracle.chat(body)
        if isinstance(theirs, Failure):
            return False
        example = ChatExample(ComparedChat("", body), self._ours(body), theirs)
        if self._kind(example) != kind:
            return False
        if self._transformers is not None:
            return _causes_key(self._transformers.causes(body)) == causes_key
        pairs = ((example.ours, first.ours), (example.theirs, first.theirs))
        return all(
            _without_numbers(one.reason) == _without_numbers(other.reason)
            for one, other in pairs
            if isinstance(one, Refused) and isinstance(other, Refused)
        )


def _key(difference: ChatDifference, example: ChatExample) -> str:
    """What chats of one group have in common: their causes, the reason of a refusal, or the text that differs."""
    if difference.causes and difference.explains == 1.0:
        return _causes_key(difference.causes)
    refused = [side.reason for side in (example.ours, example.theirs) if isinstance(side, Refused)]
    place = example.place
    return _without_numbers(refused[0]) if refused else f"{place.get('ours')} {place.get('theirs')}"


def _causes_key(causes: Iterable[Cause]) -> str:
    return repr([(cause.id, cause.detail.get("change")) for cause in causes])


def _without_numbers(text: str) -> str:
    return "".join(char for char in text if not char.isdigit())
