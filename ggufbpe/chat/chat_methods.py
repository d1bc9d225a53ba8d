"""Gives `Tokenizer` its chat methods: its templates, and the prompt and ids of messages.

The rest of `ggufbpe.chat` and jinja2 are imported with the first chat only.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from .._util.arguments import checked_flag, integer
from .._util.caller import frames_to_caller
from .._util.lazy import IMPORT_LOCK, cached_property
from ..gguf.metadata import Metadata
from ..models.chat_templates import chat_templates
from ..models.vocabulary import GGUFWarning

if TYPE_CHECKING:
    from datetime import datetime

    from .assistant_mask import AssistantPart
    from .chats import Chats
    from .fitting import FitPolicy, FittedChat
    from .known_templates import GivenTemplate
    from .media.chat_media import ChatCount
    from .media.mmproj import Mmproj
    from .prompt_tokenizer import PromptTokenizer


_IS_CHATML = (
    "the model has no chat template, so this prompt is ChatML, as llama-server makes it; "
    'chat_template="known:chatml" chooses ChatML'
)
HIDES_TOOLS = "the chat template does not show the tools to the model"


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
        chat_template: GivenTemplate = None,
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
        chat_template: GivenTemplate = None,
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
        chat_template: GivenTemplate = None,
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
        chat_template: GivenTemplate = None,
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
        chat_template: GivenTemplate = None,
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

        >>> tok.apply_chat_template([{"role": "user", "content": "Hi"}], tokenize=False)
        '<|im_start|>user\\nHi<|im_end|>\\n<|im_start|>assistant\\n'

        `messages` and `tools` are in OpenAI's form: lists of dicts of JSON values. The other arguments are the fields
        of a request, with llama-server's defaults: a final answer is continued; `continue_final_message` (True,
        "content", "reasoning_content") requires `add_generation_prompt=False`. `chat_template_kwargs` are names and
        values for the template, whether it reads them or not. What it does read can also be given by name, such as
        `enable_thinking=False`. `chat_template` is a template to use in place of the file's, the `pathlib.Path` of a
        file with one, the name of one of the model's, or "known:NAME" for llama.cpp's template of that name. `now` is
        the time for templates that write the date, by default the current time (docs/chat.md).

        With `return_assistant_mask`, the result is a pair: the ids, and a list with 1 for each id that the assistant
        wrote and 0 for each other. True marks contents, reasoning, tool calls and the tokens that end turns; names out
        of "content", "reasoning", "tool_calls" and "end" choose some of these. A final answer is then closed.
        As with llama-server, text of control tokens in messages becomes control tokens, which `ggufbpe.explain(tok,
        messages).chat.injected` lists.

        Raises `ChatError`, a `ValueError`, for what llama-server refuses, a template that cannot be run, and an unknown
        name of a template; its `reason` says why, its `line` where in the template. `TypeError` for a named argument
        that the template does not read, `NotInstalledError` without jinja2 (the extra `chat`). Warns (`GGUFWarning`) of
        `tools` that the template does not show, and if there is no template: the prompt is ChatML, as llama-server's.

        Source: oaicompat_chat_params_parse and handle_count_tokens in tools/server/; common/chat.cpp.
        """
        with IMPORT_LOCK:
            from .assistant_mask import masked_chat, wanted_parts
            from .chats import body_from_arguments, prompt_text
            from .known_templates import read_if_path
        chat_template = read_if_path(chat_template)
        tokenize, method = checked_flag("tokenize", tokenize), "apply_chat_template"
        own = self._template_arguments(method, chat_template_kwargs, read_by_template, chat_template)
        body = body_from_arguments(
            messages, tools, tool_choice, add_generation_prompt, continue_final_message, reasoning_effort, own
        )
        self._warn_of_template(chat_template, body)
        tokenizer = cast("PromptTokenizer", self)
        if (wanted := wanted_parts(return_assistant_mask)) is not None:
            if not tokenize:
                raise ValueError("a mask is over ids: return_assistant_mask needs tokenize=True")
            return masked_chat(tokenizer, body, chat_template, now, wanted)
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
        chat_template: GivenTemplate = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool | str | None = None,
        reasoning_effort: str | None = None,
        now: datetime | None = None,
        chat_template_kwargs: Mapping[str, Any] | None = None,
        **read_by_template: Any,
    ) -> FittedChat:
        """Return the chat with the fewest messages left out whose prompt has at most `limit - answer` tokens.

        `keep` is a `FitPolicy`, or a mapping of its fields, such as `{"keep_last": 2}`: what always stays, and what may
        be cut. By default, the system's messages and the last turn stay, the oldest turns are left out first, each with
        its calls and their results, and nothing is cut. If contents may be cut (`shorten`), the fewest turns are left
        out that suffice with all of them cut, and then the fewest contents are cut, the oldest first. `answer` is room
        for the answer. The other arguments are those of `apply_chat_template`.

        Each candidate is rendered and counted as a whole, so the result is exact whatever the template does, unless a
        prompt becomes longer where one turn more is left out. A search by estimates and halves takes few renderings.

        Raises `ChatTooLongError`, which has `count` and `limit`, if what must stay does not fit; `ChatError` for what
        llama-server refuses; `ValueError` for a negative `limit` or `answer`, for an answer that exceeds the limit,
        and for a policy that is not one. Warns as `apply_chat_template`.

        >>> turns = [{"role": role, "content": "Hello world"} for role in ("user", "assistant", "user")]
        >>> tok.fit_chat(turns, 70, answer=20, keep={"keep_last": 1}).messages
        [{'role': 'user', 'content': 'Hello world'}]
        """
        with IMPORT_LOCK:
            from .chats import body_from_arguments
            from .fitting import fit_chat
            from .known_templates import read_if_path
        chat_template = read_if_path(chat_template)
        limit, answer = integer("limit", limit, least=0), integer("answer", answer, least=0)
        own = self._template_arguments("fit_chat", chat_template_kwargs, read_by_template, chat_template)
        body = body_from_arguments(
            messages, tools, tool_choice, add_generation_prompt, continue_final_message, reasoning_effort, own
        )
        self._warn_of_template(chat_template, body)
        return fit_chat(cast("PromptTokenizer", self), body, limit, keep, chat_template, now, answer)

    def count_chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        mmproj: Mmproj | str | os.PathLike[str] | None = None,
        *,
        media_path: str | os.PathLike[str] | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        tool_choice: str = "auto",
        chat_template: GivenTemplate = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool | str | None = None,
        reasoning_effort: str | None = None,
        now: datetime | None = None,
        chat_template_kwargs: Mapping[str, Any] | None = None,
        **read_by_template: Any,
    ) -> ChatCount:
        """Return the number of tokens of a chat as llama-server counts it; images and audio need `mmproj`.

        `mmproj` is a projector's file, or what `Mmproj.from_file` read of it. Images are parts of type "image_url",
        recordings of type "input_audio", with a data URL, or with "file://" and a path below the folder `media_path`;
        only the headers of the files are read, so a file that is damaged after its header is counted. The other
        arguments are those of `apply_chat_template`. The result has `count`, the `prompt`, and the tokens of each of
        the `images` and of each recording in `audio`.

        Raises `ChatError` for what llama-server refuses, and for video, addresses of the web, and images other than
        PNG, JPEG, GIF, BMP and WebP; `GGUFError` for a projector that is not counted. Warns as `apply_chat_template`.

        >>> tok.count_chat([{"role": "user", "content": "Hi"}]).count
        28
        >>> tok.count_chat(messages, "mmproj.gguf").count                # doctest: +SKIP
        """
        with IMPORT_LOCK:
            from .chats import body_from_arguments
            from .known_templates import read_if_path
            from .media.chat_media import ChatCount, count_with_media
        if mmproj is None and media_path is not None:
            raise ValueError("media_path is for images and audio: give mmproj")
        chat_template = read_if_path(chat_template)
        own = self._template_arguments("count_chat", chat_template_kwargs, read_by_template, chat_template)
        body = body_from_arguments(
            messages, tools, tool_choice, add_generation_prompt, continue_final_message, reasoning_effort, own
        )
        self._warn_of_template(chat_template, body)
        tokenizer = cast("PromptTokenizer", self)
        if mmproj is None:
            prompt = self.chats.prompt(body, chat_template, now)
            return ChatCount(prompt, len(tokenizer.encode(prompt)), ())
        return count_with_media(tokenizer, body, mmproj, media_path, chat_template, now)

    def _template_arguments(
        self,
        method: str,
        kwargs: Mapping[str, Any] | None,
        by_name: Mapping[str, Any],
        chat_template: GivenTemplate,
    ) -> dict[str, Any]:
        """Return all arguments for the template that `method` was given.

        `TypeError` for arguments by name that the template does not read, or that are given twice, and if `kwargs` is
        no mapping.
        """
        if kwargs is not None and not isinstance(kwargs, Mapping):
            raise TypeError(f"chat_template_kwargs must be a mapping or None, not {type(kwargs).__name__}")
        if by_name:
            self._check_names(method, by_name, chat_template, kwargs or {})
        return {**(kwargs or {}), **by_name}

    def _check_names(
        self,
        method: str,
        given: Iterable[str],
        chat_template: GivenTemplate,
        chat_template_kwargs: Mapping[str, Any],
    ) -> None:
        import inspect
        from difflib import get_close_matches

        from .template.values import CONSTANTS

        read = self.chats.argument_names(chat_template)
        for name in given:
            if name in chat_template_kwargs:
                raise TypeError(f"{name!r} is given by name and in chat_template_kwargs")
            if name not in read:
                parameters = inspect.signature(getattr(self, method)).parameters
                own = {each.name for each in parameters.values() if each.kind is not each.VAR_KEYWORD}
                near = get_close_matches(name, sorted(own | read - CONSTANTS.keys()), 1)
                nearest = f"the nearest is {near[0]!r}; " if near else ""
                raise TypeError(
                    f"{method}() has no argument {name!r}, and the chat template does not read that name; "
                    f"{nearest}chat_template_kwargs={{...}} takes any name"
                )

    def _warn_of_template(self, chat_template: GivenTemplate, body: Mapping[str, Any]) -> None:
        """Warn where a prompt may not be what the caller expects: of ChatML for want of a template, and of tools."""
        if not chat_template and not self.chat_templates:
            warnings.warn(_IS_CHATML, GGUFWarning, stacklevel=frames_to_caller())
        if body.get("tools") and not self.chats.shows_tools(chat_template):
            warnings.warn(HIDES_TOOLS, GGUFWarning, stacklevel=frames_to_caller())

    @cached_property
    def chats(self) -> Chats:
        """Makes prompts: `tok.chats.prompt(body)` takes the whole body of a request to llama-server."""
        from .chats import Chats

        return Chats(cast("PromptTokenizer", self))
