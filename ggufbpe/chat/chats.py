"""The chats of one tokenizer: its templates, each prepared once, and the prompt and ids of a request.

Tokenizer, the body of a request -> [this file] -> prompt, ids

Source: common_chat_templates_init and the choice of a template in common_chat_templates_apply_jinja (common/chat.cpp);
handle_count_tokens in tools/server/server-context.cpp, which tokenizes with special tokens added and parsed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ..errors import ChatError
from ..once import making
from .messages import Request, check_rest, request_of
from .origins import Origin, Origins, Part, Rendered
from .render import CHATML, ChatTemplate, Ends
from .values import plain

if TYPE_CHECKING:
    from ..tokenizer import Tokenizer

MOST_TEMPLATES = 16  # that are kept prepared


class Chats:
    """What makes prompts for a tokenizer."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._named = dict(tokenizer.chat_templates)
        self._prepared: dict[str, ChatTemplate] = {}
        bos, eos = (
            "" if token is None else tokenizer.token_to_piece(token).decode("utf-8", "replace")
            for token in (tokenizer.bos_id, tokenizer.eos_id)
        )
        self._ends = Ends(bos, eos, tokenizer.add_bos, tokenizer.add_eos)

    def prompt(
        self, body: Mapping[str, Any], chat_template: str | None = None, now: datetime | None = None
    ) -> bytes:
        """The UTF-8 of the prompt that `/apply-template` makes of a request's body.

        `chat_template` is a template, or the name of one of the file, in place of the file's. `ChatError` where
        llama-server refuses.
        """
        return self._prompt(body, chat_template, time.localtime() if now is None else now.timetuple())[0]

    def parts(
        self, body: Mapping[str, Any], chat_template: str | None = None, now: datetime | None = None
    ) -> Rendered:
        """The same prompt in parts: which bytes the template says itself, and which message says the others.

        The template is run twice more for it.
        """
        clock = time.localtime() if now is None else now.timetuple()
        prompt, template, request = self._prompt(body, chat_template, clock)
        with making:
            from .attribution import AttributedTemplate
        origins = Origins()
        try:
            text = AttributedTemplate(template).attributed_prompt(request, clock, origins)
        except (ChatError, RecursionError):
            text = ""
        whole = (Part(0, len(prompt), Origin("unknown")),)
        is_same = text.encode("latin-1") == prompt  # else nothing is said of it
        return Rendered(prompt, origins.parts(text) if is_same else whole, request)

    def _prompt(
        self, body: Mapping[str, Any], chat_template: str | None, clock: time.struct_time
    ) -> tuple[bytes, ChatTemplate, Request]:
        try:
            default, for_tools = self._templates(chat_template)
            request = request_of(body, default.supports_thinking)
            template = for_tools if request.tools else default
            text = template.prompt(request, clock)
        except RecursionError:
            raise ChatError("the chat is nested too deeply") from None
        check_rest(body)
        return text.encode("latin-1"), template, request

    def shows_tools(self, chat_template: str | None = None) -> bool:
        """Whether the template, chosen as for `prompt`, writes the tools that it is given into the prompt."""
        return self._templates(chat_template)[1].capabilities.supports_tools

    def bare_text(self, messages: list[dict[str, Any]], chat_template: str | None = None) -> bytes:
        """The UTF-8 of what the template alone writes for messages, without a generation prompt."""
        return self._templates(chat_template)[0].bare_text(messages).encode("latin-1")

    def _templates(self, chosen: str | None) -> tuple[ChatTemplate, ChatTemplate]:
        """The template for most chats and that for chats with tools."""
        chosen = self._named.get(chosen, chosen) if chosen else ""
        tools = "" if chosen else self._named.get("tool_use", "")
        source = chosen or self._named.get("", "")
        if not source or source == "chatml":
            source = tools or CHATML
        default = self._template(source)
        if not tools:
            return default, default
        try:
            return default, self._template(tools)
        except ChatError:  # one that cannot be parsed is passed over
            return default, default

    def _template(self, source: str) -> ChatTemplate:
        found = self._prepared.get(source)
        if found is None:
            with making:
                if source in self._prepared:  # by another thread, meanwhile
                    return self._prepared[source]
                if len(self._prepared) >= MOST_TEMPLATES:
                    self._prepared.clear()
                found = self._prepared[source] = ChatTemplate(source, self._ends)
        return found


def body_of(
    messages: Any,
    tools: Any,
    tool_choice: str,
    add_generation_prompt: bool,
    continue_final_message: bool | str | None,
    reasoning_effort: str | None,
    template_arguments: Mapping[str, Any],
) -> dict[str, Any]:
    """The body of a request out of the arguments of `Tokenizer.apply_chat_template`."""
    given = {
        "messages": list(messages) if isinstance(messages, tuple) else messages,
        "tools": list(tools) if isinstance(tools, tuple) else tools,
        "tool_choice": tool_choice,
        "add_generation_prompt": add_generation_prompt,
        "continue_final_message": continue_final_message,
        "reasoning_effort": reasoning_effort,
        "chat_template_kwargs": dict(template_arguments) or None,
    }
    return {name: value for name, value in given.items() if value is not None or name == "messages"}


def prompt_text(prompt: bytes) -> str:
    """A prompt as text; bytes that are no UTF-8 are U+FFFD."""
    text: str = plain(prompt.decode("latin-1"))
    return text
