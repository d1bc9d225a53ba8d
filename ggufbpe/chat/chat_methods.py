"""Gives `Tokenizer` its chat methods: its templates, and the prompt and ids of messages.

The rest of `ggufbpe.chat` and jinja2 are imported with the first chat only.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from .._util.lazy import IMPORT_LOCK, cached_property
from ..gguf.metadata import Metadata
from ..models.chat_templates import chat_templates
from ..models.vocabulary import GGUFWarning

if TYPE_CHECKING:
    from datetime import datetime

    from .assistant_mask import AssistantPart
    from .chats import Chats
    from .fitting import FitPolicy, FittedChat
    from .prompt_tokenizer import PromptTokenizer


_IS_CHATML = (
    "the model has no chat template, so this prompt is ChatML, as llama-server makes it; "
    'chat_template="known:chatml" says that ChatML is meant'
)


class ChatMethods:
    """The base class of `Tokenizer` with everything for chats."""

    _metadata: Metadata | None

    @cached_property
    def chat_templates(self) -> dict[str, str]:
        """The file's chat templates by name, such as "tool_use"; the default one is ""."""
        return {} if self._metadata is None else chat_templates(self._metadata)

    @property
    def chat_template(self) -> str | None:
        """The file's chat template; None if it has none, and llama-server uses ChatML."""
        return self.chat_templates.get("")

    @overload
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
        tokenize: Literal[True] = True,
        return_assistant_mask: Literal[False] = False,
        now: datetime | None = None,
        chat_template_kwargs: Mapping[str, Any] | None = None,
        **read_by_template: Any,
    ) -> list[int]: ...

    @overload
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
        tokenize: Literal[True] = True,
        return_assistant_mask: Literal[True] | Collection[AssistantPart],
        now: datetime | None = None,
        chat_template_kwargs: Mapping[str, Any] | None = None,
        **read_by_template: Any,
    ) -> tuple[list[int], list[int]]: ...

    @overload
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
        tokenize: Literal[False],
        return_assistant_mask: Literal[False] = False,
        now: datetime | None = None,
        chat_template_kwargs: Mapping[str, Any] | None = None,
        **read_by_template: Any,
    ) -> str: ...

    @overload
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
        tokenize: bool,
        return_assistant_mask: Literal[False] = False,
        now: datetime | None = None,
        chat_template_kwargs: Mapping[str, Any] | None = None,
        **read_by_template: Any,
    ) -> list[int] | str: ...

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
        return_assistant_mask: bool | Collection[AssistantPart] = False,
        now: datetime | None = None,
        chat_template_kwargs: Mapping[str, Any] | None = None,
        **read_by_template: Any,
    ) -> list[int] | str | tuple[list[int], list[int]]:
        """Return the ids of a chat as `llama-server --jinja` counts them, or with `tokenize=False` its prompt, a `str`.

        >>> tok.apply_chat_template([{"role": "user", "content": "Hi"}], tokenize=False)    # doctest: +SKIP
        '<|im_start|>user\\nHi<|im_end|>\\n<|im_start|>assistant\\n'

        `messages` and `tools` are in OpenAI's form: lists of dicts of JSON values. The other arguments are the fields
        of a request, with llama-server's defaults: a final answer is continued; `continue_final_message` (True,
        "content", "reasoning_content") requires `add_generation_prompt=False`. `chat_template_kwargs` are names and
        values for the template, whether it reads them or not. What it does read can also be given by name, such as
        `enable_thinking=False`. `chat_template` is a template to use in place of the file's, the name of one of the
        file's, or "known:NAME" for llama.cpp's template of that name (docs/chat.md). `now` is the time for templates
        that write the date; by default it is the current time.

        With `return_assistant_mask`, the result is a pair: the ids, and 1 for each that the assistant wrote, else 0. It
        wrote contents, reasoning, tool calls and the token that ends a turn, of which names out of "content",
        "reasoning", "tool_calls" and "end" choose some. An answer at the end is then closed. (docs/chat.md)

        Raises `ChatError`, a `ValueError`, for what llama-server refuses, and for a template that cannot be run:
        its `reason`, and from the template the `line`. `TypeError` for any other argument by name, with the nearest
        name. `NotInstalledError` without jinja2 (the extra `chat`). Warns (`GGUFWarning`) if neither the file nor
        `chat_template` has a template: the prompt is then ChatML, as llama-server makes it.

        Source: oaicompat_chat_params_parse and handle_count_tokens in tools/server/; common/chat.cpp.
        """
        with IMPORT_LOCK:
            from .assistant_mask import masked_chat
            from .chats import body_from_arguments, prompt_text
        if read_by_template:
            self._check_names(read_by_template, chat_template, chat_template_kwargs or {})
        if chat_template is None and not self.chat_templates:
            warnings.warn(_IS_CHATML, GGUFWarning, stacklevel=2)
        own = {**(chat_template_kwargs or {}), **read_by_template}
        body = body_from_arguments(
            messages, tools, tool_choice, add_generation_prompt, continue_final_message, reasoning_effort, own
        )
        tokenizer = cast("PromptTokenizer", self)
        if return_assistant_mask is not False:
            if not tokenize:
                raise ValueError("a mask is over ids: return_assistant_mask needs tokenize=True")
            return masked_chat(tokenizer, body, chat_template, now, return_assistant_mask)
        prompt = self.chats.prompt(body, chat_template, now)
        return tokenizer.encode(prompt) if tokenize else prompt_text(prompt)

    def fit_chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        limit: int,
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        keep: FitPolicy | Mapping[str, Any] | None = None,
        answer: int = 0,
        tool_choice: str = "auto",
        chat_template: str | None = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool | str | None = None,
        reasoning_effort: str | None = None,
        now: datetime | None = None,
        chat_template_kwargs: Mapping[str, Any] | None = None,
    ) -> FittedChat:
        """Return the chat with the fewest messages left out whose prompt has at most `limit - answer` tokens.

        `keep` is a `FitPolicy`, or its fields by name: what always stays, and what may be cut. By default, the system's
        messages and the last turn stay, the oldest turns are left out first, each with its calls and their results, and
        nothing is cut. If contents may be cut (`shorten`), the fewest turns are left out that suffice with all of them
        cut, and then the fewest contents are cut, the oldest first. `answer` is room for the answer. The other
        arguments are those of `apply_chat_template`.

        Each candidate is rendered and counted as a whole, so the result is exact whatever the template does, unless a
        prompt becomes longer where one turn more is left out. A search by estimates and halves takes few renderings.

        Raises `ChatError` for what llama-server refuses, and if what must stay does not fit; `ValueError` for a
        negative `limit` or `answer`, and for a policy that is not one.

        >>> tok.fit_chat(messages, 4096, answer=512).messages           # doctest: +SKIP
        """
        with IMPORT_LOCK:
            from .chats import body_from_arguments
            from .fitting import fit_chat
        if min(operator.index(limit), operator.index(answer)) < 0:
            raise ValueError(f"limit and answer must be 0 or more, not {limit} and {answer}")
        body = body_from_arguments(
            messages,
            tools,
            tool_choice,
            add_generation_prompt,
            continue_final_message,
            reasoning_effort,
            chat_template_kwargs or {},
        )
        tokenizer = cast("PromptTokenizer", self)
        return fit_chat(tokenizer, body, max(limit - answer, 0), keep, chat_template, now)

    def _check_names(
        self, given: Iterable[str], chat_template: str | None, chat_template_kwargs: Mapping[str, Any]
    ) -> None:
        """`TypeError` for arguments by name that the template does not read, or that are given twice."""
        import inspect
        from difflib import SequenceMatcher

        from .template.values import CONSTANTS

        read = self.chats.argument_names(chat_template)
        for name in given:
            if name in chat_template_kwargs:
                raise TypeError(f"{name!r} is given by name and in chat_template_kwargs")
            if name not in read:
                parameters = inspect.signature(self.apply_chat_template).parameters
                own = {each.name for each in parameters.values() if each.kind is not each.VAR_KEYWORD}
                near = max(
                    sorted(own | read - CONSTANTS.keys()),
                    key=lambda each: SequenceMatcher(None, each, name).ratio(),
                )
                raise TypeError(
                    f"apply_chat_template() has no argument {name!r}, and the chat template does not read that name; "
                    f"the nearest is {near!r}; chat_template_kwargs={{...}} takes any name"
                )

    @cached_property
    def chats(self) -> Chats:
        """Makes prompts: `tok.chats.prompt(body)` takes the whole body of a request to llama-server."""
        from .chats import Chats

        return Chats(cast("PromptTokenizer", self))
