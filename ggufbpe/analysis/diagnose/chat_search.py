"""Searches for the changes of a chat that together give the expected prompt.

Changes that replace the whole rendering (another template, plain jinja2) are bases; to each base, the other changes
that affect its prompt are combined. Sets are tried by size, and all of the smallest size that fits are given.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from itertools import combinations, product
from typing import NamedTuple

from ..._util.errors import ChatError
from ...chat.chats import Chats
from ...chat.known_templates import CHATML, PREFIX, KnownTemplate, known_templates
from ...gguf.change import Change
from ...tokenizer import Tokenizer
from ..doctor.chat_markers import markers_of
from ..doctor.token_checks import BARS
from . import chat_changes as changing
from .agreement import agreeing_share
from .cause import Cause
from .chat_causes import marker_texts
from .chat_changes import AS_TRANSFORMERS_5, ChatChange, Rendering
from .plain_jinja import prompts as prompts_of_transformers
from .plain_jinja import with_all_names_of_reasoning

MOST_CHANGES = 3
SECONDS = 10.0  # for one chat
_MOST_SETS = 2000  # of one size under one base
_MOST_COMBINED = 60  # changes that are combined
_BASES = ("_own_bases", "_known", "_transformers")
_LONGER_WORD = re.compile(r"[^\W\d_]{4,}")
# Of llama.cpp's templates: those with fitting markers, then with close prompts.
_MOST_RENDERED, _MOST_KNOWN = 12, 3
_LEAST_GAIN = 0.5  # the share of what disagrees that a change must resolve to be a partial explanation

Causes = tuple[Cause, ...]
Fits = Callable[[bytes, int], list[Causes]]
"""The sets of causes that explain the rest, for a prompt after that many changes; none if nothing does."""


class Outcome(NamedTuple):
    """A rendering, the causes that led to it, and its prompt; None if the chat is refused."""

    chat: Rendering
    causes: Causes
    prompt: bytes | None


class ChatSearch:
    """The search for one chat."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        chat: Rendering,
        expected: bytes,
        templates: Sequence[ChatChange] = (),
    ) -> None:
        """`expected` is the expected prompt or a part of it; `templates` are changes to further templates."""
        self._tokenizer = tokenizer
        self._expected, self._expected_text = expected, expected.decode("utf-8", "replace")
        # for llama.cpp's templates: `tokenizer.chats` keeps only a few prepared
        self._others = Chats(tokenizer)
        self._sources: set[str] = set()  # of these
        self._end = time.monotonic() + SECONDS
        self._changes = changing.changes(chat, self._expected_text, self._source(chat))
        [self.own] = self._rendered([(chat, ())])
        self._own_bases = [self.own, *self._bases_of([*templates, *self._templates()])]
        self._effective: dict[str, list[ChatChange]] = {}

    @property
    def refusal(self) -> str:
        """Why the chat is refused as it is; "" if it is not."""
        try:
            self._tokenizer.chats.prompt(self.own.chat.body, self.own.chat.chat_template, self.own.chat.now)
        except ChatError as error:
            return str(error)
        return ""

    def _bases_of(self, changes: Sequence[ChatChange]) -> list[Outcome]:
        """The outcomes of changes of the whole rendering that make another prompt."""
        made = self._rendered([(change.apply(self.own.chat), (change.cause,)) for change in changes])
        return _with_effect(self.own, made)

    # ---- sets of changes ------------------------------------------------------------------------

    def found(self, fits: Fits) -> list[tuple[Causes, bytes]]:
        """The smallest sets of causes that lead to a fitting prompt, with the prompt."""
        found: dict[str, tuple[Causes, bytes]] = {}
        fewest = MOST_CHANGES
        for size, kind in product(range(MOST_CHANGES + 1), _BASES):
            if size > fewest or (kind != _BASES[0] and found and size == fewest):
                break  # the other bases take long, so they are only tried if nothing else explains as much
            for each in self._of_size(size, getattr(self, kind) if size or kind == _BASES[0] else ()):
                for more in fits(each.prompt, size) if each.prompt is not None else ():
                    causes = tuple(sorted((*each.causes, *more), key=lambda cause: cause.place))
                    fewest = min(fewest, len(causes)) if found else len(causes)
                    found.setdefault(repr(causes), (causes, each.prompt or b""))
        smallest = [item for item in found.values() if len(item[0]) == fewest]
        return sorted(smallest, key=lambda item: [cause.place for cause in item[0]])

    @cached_property
    def _known(self) -> list[Outcome]:
        """The outcomes of llama.cpp's templates that have markers of the expected prompt, if our prompt lacks some.

        If our prompt has all of them, longer words count, such as those of a default system message. Only the nearest
        prompts.
        """
        own = (self.own.prompt or b"").decode("utf-8", "replace")
        hints = marker_texts(self._expected_text) - marker_texts(own)
        hints = hints or set(_LONGER_WORD.findall(self._expected_text)) - set(_LONGER_WORD.findall(own))
        if not hints or time.monotonic() > self._end:
            return []
        found = [(sum(hint in each.source for hint in hints), each) for each in known_templates().values()]
        likely = sorted((item for item in found if item[0]), key=lambda item: -item[0])[:_MOST_RENDERED]
        self._sources = {template.source for _, template in likely}
        chats = [self.own.chat._replace(chat_template=template.source) for _, template in likely]
        by_prompt: dict[bytes | None, list[KnownTemplate]] = {}
        for (_, template), made in zip(likely, self._rendered([(chat, ()) for chat in chats])):
            by_prompt.setdefault(made.prompt, []).append(template)
        by_prompt.pop(None, None)
        words = _words(self._expected)
        nearest = sorted(by_prompt, key=lambda prompt: -agreeing_share(_words(prompt or b""), words))
        return self._bases_of([self._of_known(*by_prompt[prompt]) for prompt in nearest[:_MOST_KNOWN]])

    def _of_known(self, template: KnownTemplate, *others: KnownTemplate) -> ChatChange:
        """One of llama.cpp's templates; `others` make the same prompt."""
        fix, change = "let the other tool use the template that is used here", Change()
        if self.own.chat.chat_template is None and "tool_use" not in self._tokenizer.chat_templates:
            change = Change(templates={"": f"{PREFIX}{template.name}"})
        name = f"llama.cpp's {template.name}"
        if others:
            names = ", ".join(other.name for other in others)
            name += f", or {names}, which make{'s' * (len(others) == 1)} the same prompt"
        return changing.other_template(name, template.source, fix, change)

    @cached_property
    def _transformers(self) -> list[Outcome]:
        """The outcomes of plain jinja2 that are another prompt."""
        return self._bases_of(list(changing.as_transformers()))

    def _of_size(self, size: int, bases: Sequence[Outcome]) -> Iterator[Outcome]:
        """The outcomes of `size` changes."""
        for base in bases:
            more = size - len(base.causes)
            if more == 0:
                yield base
            elif more > 0:
                yield from self._changed(base, more)

    def _changed(self, base: Outcome, more: int) -> Iterator[Outcome]:
        """The outcomes of `more` changes of a base, at most one for each cause."""
        key = repr([(cause.id, cause.detail["change"]) for cause in base.causes])
        if key not in self._effective:
            singles = self._rendered([self._applied(base, (change,)) for change in self._changes])
            kept = _with_effect(base, singles)
            told = [each.causes[-1] for each in kept]
            self._effective[key] = [change for change in self._changes if change.cause in told]
            if more == 1:
                yield from kept
                return
        sets = []
        effective = self._effective[key]
        if more > 1 and len(effective) > _MOST_COMBINED:  # in a long chat, many messages may be missing
            effective = [change for change in effective if change.cause.id != "messages"]
        for chosen in combinations(effective, more):
            if len({change.cause.id for change in chosen}) == more:
                sets.append(self._applied(base, chosen))
                if len(sets) >= _MOST_SETS:
                    break
        yield from self._rendered(sets)

    def _applied(self, base: Outcome, chosen: Sequence[ChatChange]) -> tuple[Rendering, Causes]:
        chat = base.chat
        # changes of "messages" come first, as they count messages from the beginning of the chat
        for change in sorted(chosen, key=lambda change: change.cause.id != "messages"):
            chat = change.apply(chat)
        return chat, (*base.causes, *(change.cause for change in chosen))

    def nearest(self) -> Outcome:
        """The nearest to the expected prompt, change by change, as long as each resolves a good part."""
        words = _words(self._expected)
        best, share = self.own, self._share(self.own, words)
        for size in range(1, MOST_CHANGES + 1):
            if time.monotonic() > self._end:
                break
            before, least = best, share + _LEAST_GAIN * (1 - share)
            candidates = [*self._own_bases[1:], *self._known, *self._transformers] if size == 1 else []
            tried = self._rendered([self._applied(before, (change,)) for change in self._changes])
            for each in [*tried, *candidates]:
                ids = {cause.id for cause in each.causes}
                if len(ids) == len(each.causes) and "messages" not in ids:
                    found = self._share(each, words)
                    if found > max(share, least):
                        best, share = each, found
            if best is before:
                break
        return best

    def _share(self, each: Outcome, words: list[int]) -> float:
        return -1.0 if each.prompt is None else agreeing_share(_words(each.prompt), words)

    # ---- templates ------------------------------------------------------------------------------

    def _templates(self) -> Iterator[ChatChange]:
        named = self._tokenizer.chat_templates
        for name, source in named.items():
            shown = f"the file's {name}" if name else "the file's own"
            way = f"with chat_template={name!r}" if name else "without chat_template=…"
            fix = f"let the other tool use the template that is used here; or here, in Python, {way}"
            yield changing.other_template(shown, source, fix)
        fix = (
            "let the other tool use the template that is used here; or here, in Python, with "
            'chat_template="chatml"; llama-server has --chat-template chatml'
        )
        name, change = "ChatML", Change()
        if self.own.chat.chat_template is None and self._writes_foreign_markers:
            name += "; the file's own is for another model, since its markers are no tokens here"
            change = Change(templates={"": f"{PREFIX}chatml"})
        yield changing.other_template(name, CHATML, fix, change)

    @property
    def _writes_foreign_markers(self) -> bool:
        """Whether the file's template wrote markers with bars into the prompt that are no tokens of the model."""
        known, prompt = self._tokenizer.vocabulary.token_to_id, self.own.prompt or b""
        of_template = markers_of(self._tokenizer.chat_templates.get("", ""))
        return any(
            BARS.search(marker) and marker not in known and marker.encode() in prompt
            for marker in of_template
        )

    # ---- rendering ------------------------------------------------------------------------------

    def _rendered(self, asked: Sequence[tuple[Rendering, Causes]]) -> list[Outcome]:
        """The prompts of many renderings at once, since those of transformers come from a child process."""
        of_transformers = iter(self._by_transformers([chat for chat, _ in asked if chat.way]))
        return [
            Outcome(chat, causes, next(of_transformers) if chat.way else self._by_llama_cpp(chat))
            for chat, causes in asked
        ]

    def _by_llama_cpp(self, chat: Rendering) -> bytes | None:
        if time.monotonic() > self._end:
            return None
        try:
            chats = self._others if chat.chat_template in self._sources else self._tokenizer.chats
            return chats.prompt(chat.body, chat.chat_template, chat.now)
        except ChatError:
            return None

    def _by_transformers(self, chats: Sequence[Rendering]) -> list[bytes | None]:
        """The prompts of transformers, one child process for each template and time."""
        found: list[bytes | None] = [None] * len(chats)
        groups: dict[tuple[str, datetime | None], list[int]] = {}
        for number, chat in enumerate(chats):
            groups.setdefault((self._source(chat), chat.now), []).append(number)
        for (source, now), numbers in groups.items():
            if not source or time.monotonic() >= self._end:
                continue
            names = [self._names(chats[number]) for number in numbers]
            seconds = None if now is None else now.timestamp()
            for number, text in zip(numbers, prompts_of_transformers(source, names, seconds)):
                found[number] = None if text is None else text.encode("utf-8", "replace")
        return found

    def _source(self, chat: Rendering) -> str:
        named = self._tokenizer.chat_templates
        if chat.chat_template:
            return named.get(chat.chat_template, chat.chat_template)
        return (named.get("tool_use") if chat.body.get("tools") else None) or named.get("", "")

    def _names(self, chat: Rendering) -> dict[str, object]:
        """The variables that transformers passes to a template."""
        body, messages = chat.body, chat.body.get("messages")
        if chat.way == AS_TRANSFORMERS_5 and isinstance(messages, list):
            messages = list(map(with_all_names_of_reasoning, messages))
        special = self._tokenizer.vocabulary.special_ids
        texts = {
            f"{name}_token": self._tokenizer.token_to_piece(token).decode("utf-8", "replace")
            for name, token in special.items()
            if token is not None and name in ("bos", "eos", "unk", "pad", "sep", "cls", "mask")
        }
        effort = body.get("reasoning_effort")
        names: dict[str, object] = {
            **texts,
            "messages": messages,
            "tools": body.get("tools") or None,
            "documents": None,
            "add_generation_prompt": body.get("add_generation_prompt", True),
            **({"reasoning_effort": effort} if effort else {}),
        }
        kwargs = body.get("chat_template_kwargs")
        return {**names, **(kwargs if isinstance(kwargs, Mapping) else {})}


def _with_effect(base: Outcome, made: Sequence[Outcome]) -> list[Outcome]:
    """Those whose prompt is not the base's; of several by one cause with the same prompt, the first."""
    seen = {("", base.prompt)}
    out = []
    for each in made:
        key = each.causes[-1].id, each.prompt
        if each.prompt is not None and each.prompt != base.prompt and key not in seen:
            seen.add(key)
            out.append(each)
    return out


_WORD = re.compile(rb"\w+|\s+|[^\w\s]")


def _words(text: bytes) -> list[int]:
    """A text as a sequence of hashes of words, which are compared faster than bytes."""
    return [hash(word) for word in _WORD.findall(text)]
