"""The part of `Tokenizer` for chats: its templates, and the prompt and ids of messages.

chats.py -> [this file] -> tokenizer.py

But: nothing else of this room, nor jinja2, is imported before the first chat.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from ..gguf.metadata import Metadata
from ..once import made_once, making
from ..vocab import chat_templates

if TYPE_CHECKING:
    from datetime import datetime

    from ..tokenizer import Tokenizer
    from .chats import Chats


class ChatMethods:
    """The base class of `Tokenizer` with everything for chats."""

    _metadata: Metadata | None

    @made_once
    def chat_templates(self) -> dict[str, str]:
        """The file's chat templates by name, such as "tool_use"; the default one is ""."""
        return {} if self._metadata is None else chat_templates(self._metadata)

    @property
    def chat_template(self) -> str | None:
        """The file's chat template; None if it has none, and llama-server uses ChatML."""
        return self.chat_templates.get("")

    def apply_chat_template(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        tool_choice: str = "auto",
        chat_template: str | None = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool | str | None = None,
        reasoning_effort: str | None = None,
        tokenize: bool = True,
        now: datetime | None = None,
        **chat_template_kwargs: Any,
    ) -> list[int] | str:
        """The ids of a chat as `llama-server --jinja` counts them; with `tokenize=False` the prompt, a `str`.

        >>> tok.apply_chat_template([{"role": "user", "content": "Hi"}], tokenize=False)    # doctest: +SKIP
        '<|im_start|>user\\nHi<|im_end|>\\n<|im_start|>assistant\\n'

        `messages` and `tools` are in OpenAI's form: lists of dicts of JSON values. The other arguments are the fields
        of a request, with llama-server's defaults: a final answer is continued; `continue_final_message` (True,
        "content", "reasoning_content") requires `add_generation_prompt=False`. `chat_template_kwargs` are further
        arguments for the template, such as `enable_thinking=False`. `chat_template` is a template to use in place of
        the file's, or the name of one of the file's. `now` is the time for templates that write the date; by default
        it is the current time.

        Raises `ChatError`, a `ValueError`, for what llama-server refuses, and for a template that cannot be run:
        its `reason`, and from the template the `line`. `NotInstalledError` without jinja2 (the extra `chat`).

        Source: oaicompat_chat_params_parse and handle_count_tokens in tools/server/; common/chat.cpp.
        """
        with making:
            from .chats import body_of, prompt_text
        body = body_of(
            messages,
            tools,
            tool_choice,
            add_generation_prompt,
            continue_final_message,
            reasoning_effort,
            chat_template_kwargs,
        )
        prompt = self.chats.prompt(body, chat_template, now)
        return cast("Tokenizer", self).encode(prompt) if tokenize else prompt_text(prompt)

    @made_once
    def chats(self) -> Chats:
        """Makes prompts: `tok.chats.prompt(body)` takes the whole body of a request to llama-server."""
        from .chats import Chats

        return Chats(cast("Tokenizer", self))
