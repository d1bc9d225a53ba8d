"""Encodes a chat of a corpus: its prompt, its ids, what the assistant wrote, and what is worth noting of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..._util.utf8 import original_bytes
from ...chat.assistant_mask import AssistantSpans, WrittenSpan, assistant_mask
from ...chat.token_origins import chat_tokens
from ...models.vocabulary import CONTROL
from ...tokenizer import Tokenizer
from .chat_records import ChatRecord
from .document_notes import Note
from .documents import Options
from .marked_ids import with_marks

if TYPE_CHECKING:
    from ...chat.origins import PromptInParts

_LONG = 100  # characters; the template writes no such text with a special token itself

Checked = Callable[["npt.NDArray[Any]", bytes], "npt.NDArray[Any]"]


class EncodedChat(NamedTuple):
    """A chat with its ids, which carry marks if there is a mask."""

    prompt: bytes
    ids: npt.NDArray[Any]
    is_last_written: bool  # an EOS that it lacks would be the assistant's
    notes: int  # the bits of `Note`


class ChatEncoder:
    """Encodes chats, from any number of threads."""

    def __init__(self, tokenizer: Tokenizer, options: Options, checked: Checked) -> None:
        """`checked` is given the ids of a prompt and returns them. `ChatError` if there is no template."""
        tokenizer.chats.require_template(options.chat_template)
        self._tokenizer, self._options, self._checked = tokenizer, options, checked
        self._spans = None if options.mask is None else AssistantSpans(tokenizer, options.mask)
        self._now = None if options.now is None else datetime.fromisoformat(options.now)
        self._markers = _Markers(tokenizer)

    def encode(self, chat: ChatRecord) -> EncodedChat:
        """Encode a chat. `ChatError` from the template, and what `checked` raises."""
        template = self._options.chat_template
        if self._spans is None:
            prompt = self._tokenizer.chats.prompt(chat.body, template, self._now, whole=True)
            ids = self._checked(self._tokenizer.encode_to_numpy(prompt), prompt)
            return EncodedChat(prompt, ids, False, self._notes(chat, prompt, None))
        rendered, spans = self._spans.find(chat.body, template, self._now, left_out=chat.left_out)
        parts = self._options.mask or ()
        found, mask = assistant_mask(self._tokenizer, rendered.prompt, spans, parts)
        ids = self._checked(np.array(found), rendered.prompt)
        is_open = bool(spans) and spans[-1].end == len(rendered.prompt) and spans[-1].part != "end"
        is_last_written = is_open and "end" in parts
        notes = self._notes(chat, rendered.prompt, rendered) | self._mask_notes(spans, mask, is_last_written)
        return EncodedChat(rendered.prompt, with_marks(ids, np.array(mask)), is_last_written, notes)

    def _mask_notes(self, spans: Sequence[WrittenSpan], mask: list[int], is_last_written: bool) -> int:
        if not any(mask):
            return Note.NOTHING_MARKED
        is_end_wanted = "end" in (self._options.mask or ())
        has_end = is_last_written or any(span.part == "end" for span in spans)
        return Note.NO_END_MARKED if is_end_wanted and not has_end else 0

    def _notes(self, chat: ChatRecord, prompt: bytes, rendered: PromptInParts | None) -> int:
        """What the template left out, and whether text of messages became control tokens."""
        chats, template, notes = self._tokenizer.chats, self._options.chat_template, 0
        messages = [message for message in chat.messages if isinstance(message, dict)]
        if chat.tools and not chats.shows_tools(template):
            notes |= Note.TOOLS_NOT_SHOWN
        if any(message.get("tool_calls") for message in messages) and not chats.shows_tool_calls(template):
            notes |= Note.TOOL_CALLS_NOT_SHOWN
        reasoning = (message.get("reasoning_content") for message in messages)
        if not all(original_bytes(text.strip()) in prompt for text in reasoning if isinstance(text, str)):
            notes |= Note.REASONING_NOT_SHOWN
        if found := [text for text in _texts(chat.body) if self._markers.are_in(text)]:
            is_injected = any(len(text) > _LONG and original_bytes(text.strip()) in prompt for text in found)
            if (
                not is_injected
            ):  # the template leaves them out or changes them, or itself writes such a short text
                rendered = rendered or chats.parts(chat.body, template, self._now, whole=True)
                is_injected = bool(chat_tokens(self._tokenizer, rendered).injected)
            notes |= Note.SPECIAL_TOKENS_IN_MESSAGES if is_injected else 0
        return notes


class _Markers:
    """Finds texts that have a control token written out; in nearly all texts, two searches for two characters."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        vocabulary = tokenizer.vocabulary
        pairs = zip(vocabulary.tokens, vocabulary.attributes)
        self._tokens = sorted({token for token, flags in pairs if token and flags & CONTROL})
        self._beginnings = sorted({token[:2] for token in self._tokens})

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(map(re.escape, self._tokens)))

    def are_in(self, text: str) -> bool:
        """Whether a text has the text of a control token."""
        return any(begin in text for begin in self._beginnings) and self._pattern.search(text) is not None


def _texts(value: Any) -> Iterator[str]:
    """All texts in a value of JSON."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
