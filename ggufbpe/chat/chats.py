"""The chats of one tokenizer: its templates, each prepared once, and the prompt and ids of a request.

Source: common_chat_templates_init and the choice of a template in common_chat_templates_apply_jinja (common/chat.cpp);
handle_count_tokens in tools/server/server-context.cpp, which tokenizes with special tokens added and parsed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from .._util.arguments import checked_flag
from .._util.errors import ChatError
from .._util.lazy import IMPORT_LOCK
from .._util.wording import counted
from .bos_eos import BosEos
from .known_templates import CHATML, GivenTemplate, check_is_template, resolved
from .origins import Origin, Origins, PromptInParts, PromptPart
from .render import ChatTemplate
from .request.given_json import has_other_forms, in_json_form, is_array, is_other_form
from .request.messages import BOTH_SET, Media, Request, check_rest, named_continuation, parse_request
from .template.values import plain

if TYPE_CHECKING:
    from .prompt_tokenizer import PromptTokenizer
    from .request.capabilities import Capabilities

MOST_TEMPLATES = 16  # kept prepared


def _clock(now: datetime | None) -> time.struct_time:
    """Return the time that templates write, with its zone; `now` without a zone is local, None is the current time.

    `TypeError` if `now` is neither a `datetime` nor None.
    """
    if now is None:
        return time.localtime()
    if not isinstance(now, datetime):
        raise TypeError(f"now must be a datetime or None, not {type(now).__name__}")
    offset, fields = now.utcoffset(), now.timetuple()
    if offset is not None:
        return time.struct_time((*fields[:8], bool(now.dst()), now.tzname(), int(offset.total_seconds())))
    local = time.localtime(time.mktime(fields))
    # The fields stay as given: `local` has other hours for a time that the change to summer time skips.
    return time.struct_time((*fields[:8], local.tm_isdst, local.tm_zone, local.tm_gmtoff))


class Chats:
    """Makes prompts for a tokenizer; `ends` are its BOS and EOS, as templates write them."""

    def __init__(self, tokenizer: PromptTokenizer) -> None:
        self._named = dict(tokenizer.chat_templates)
        self._own = {CHATML, *self._named.values()}
        self._prepared: dict[str, ChatTemplate] = {}
        self.ends = BosEos.of(tokenizer)

    def __repr__(self) -> str:
        return f"<Chats: {counted(len(self._named), 'template')} in the model>"

    def __getstate__(self) -> dict[str, Any]:
        """Return everything but the prepared templates, which are prepared again when they are needed."""
        return {**vars(self), "_prepared": {}}

    def prompt(
        self,
        body: Mapping[str, Any],
        chat_template: GivenTemplate = None,
        now: datetime | None = None,
        *,
        whole: bool = False,
        media: Media | None = None,
    ) -> bytes:
        """The UTF-8 of the prompt that `/apply-template` makes of a request's body.

        `chat_template` is a template to use in place of the file's, the `pathlib.Path` of a file with one, the name of
        one of the model's, or "known:NAME" for llama.cpp's of that name. `ChatError` where llama-server refuses, and
        for a name that no template has. `whole` is for chats that are over, as in a corpus: a final answer is closed
        like the others, where llama-server would continue it, and no new one is begun. `media` takes images and audio,
        whose markers the prompt has; without it, a chat with these is refused.
        """
        clock = _clock(now)
        return self._prompt(body, chat_template, clock, whole, media)[0]

    def parts(
        self,
        body: Mapping[str, Any],
        chat_template: GivenTemplate = None,
        now: datetime | None = None,
        *,
        whole: bool = False,
        with_blocks: bool = False,
        numbers: Sequence[int] | None = None,
    ) -> PromptInParts:
        """The prompt of a request in parts: what the template writes itself, and what comes from which message.

        This runs the template two more times, and once more for the `{% generation %}` blocks that it may have, if they
        are wanted. `numbers` are those of the messages in a longer chat of which they are the rest; None for 0, 1 and
        so on. The other arguments are those of `prompt`.
        """
        clock = _clock(now)
        prompt, template, request = self._prompt(body, chat_template, clock, whole)
        with IMPORT_LOCK:
            from .attributed_template import attributed_prompt
            from .generation_blocks import generation_blocks
        origins = Origins(numbers)
        try:
            text = attributed_prompt(template, request, clock, origins)
        except (ChatError, RecursionError):
            text = ""
        undivided = (PromptPart(0, len(prompt), Origin("unknown")),)
        is_same = text.encode("latin-1") == prompt  # otherwise nothing is claimed
        blocks = generation_blocks(template, request, clock, prompt) if with_blocks else None
        parts = origins.parts(text) if is_same else undivided
        return PromptInParts(prompt, parts, request, blocks, numbers)

    def _prompt(
        self,
        body: Mapping[str, Any],
        chat_template: GivenTemplate,
        clock: time.struct_time,
        whole: bool = False,
        media: Media | None = None,
    ) -> tuple[bytes, ChatTemplate, Request]:
        try:
            if type(body) is not dict or any(map(is_other_form, body.values())):
                body = in_json_form(body)
            try:
                return self._prompt_of_json(body, chat_template, clock, whole, media)
            except (ChatError, TypeError, ValueError) as refusal:
                body = _in_other_form(body, refusal)
            return self._prompt_of_json(body, chat_template, clock, whole, media)
        except RecursionError:
            raise ChatError("the chat is nested too deeply") from None

    def _prompt_of_json(
        self,
        body: Mapping[str, Any],
        chat_template: GivenTemplate,
        clock: time.struct_time,
        whole: bool,
        media: Media | None,
    ) -> tuple[bytes, ChatTemplate, Request]:
        default, for_tools = self._templates(chat_template)
        request = parse_request(body, default.supports_thinking, media, whole)
        template = for_tools if request.tools else default
        text = template.prompt(request, clock)
        check_rest(body)
        return text.encode("latin-1"), template, request

    def require_template(self, chat_template: GivenTemplate) -> None:
        """`NoTemplateError` if neither the file has a template nor one is given.

        llama-server takes ChatML then. Its markers are plain letters to a model that was not trained with them, so
        what is to be kept, as the ids of a corpus, asks for the choice.
        """
        if not chat_template and not self._named:
            raise NoTemplateError(
                "the model has no chat template, so chats would become ChatML, whose markers may be plain letters to "
                'it; chat_template="known:chatml" chooses ChatML'
            )

    def shows_tools(self, chat_template: GivenTemplate = None) -> bool:
        """Whether the template, chosen as in `prompt`, writes its tools into the prompt."""
        return self._templates(chat_template)[1].capabilities.supports_tools

    def shows_tool_calls(self, chat_template: GivenTemplate = None) -> bool:
        """Whether the template, chosen as in `prompt`, writes the calls of tools in messages into the prompt."""
        return self._templates(chat_template)[1].capabilities.supports_tool_calls

    def bare_text(self, messages: list[dict[str, Any]], chat_template: GivenTemplate = None) -> bytes:
        """The UTF-8 of what the template alone writes for messages, without a generation prompt."""
        return self._templates(chat_template)[0].bare_text(messages).encode("latin-1")

    def argument_names(self, chat_template: GivenTemplate = None) -> frozenset[str]:
        """The names in `chat_template_kwargs` that the template, chosen as in `prompt`, or that for tools reads."""
        default, for_tools = self._templates(chat_template)
        return default.arguments | for_tools.arguments

    def in_force(self) -> tuple[str, Capabilities]:
        """The file's template for most chats and what it takes: `chat_template` and `chat_template_caps` of `/props`.

        `ChatError` where llama-server would not start with the file's templates.
        """
        default = self._templates(None)[0]
        _ = default.supports_thinking  # fails if the template takes no chat at all
        return default.source, default.capabilities

    def _templates(self, given: GivenTemplate) -> tuple[ChatTemplate, ChatTemplate]:
        """The template for most chats and that for chats with tools. `ValueError` for an unknown name."""
        text = self._named.get(given, given) if isinstance(given, str) else None
        chosen = text if text in self._own else resolved(given)
        if chosen and chosen not in self._own:
            check_is_template(chosen)
        tools = "" if chosen else self._named.get("tool_use", "")
        source = chosen or self._named.get("", "")
        if not source or source == "chatml":
            source = tools or CHATML
        default = self._template(source)
        if not tools:
            return default, default
        try:
            return default, self._template(tools)
        except ChatError:  # one that cannot be parsed is ignored
            return default, default

    def _template(self, source: str) -> ChatTemplate:
        """The prepared template; those of requests make room for each other, but the file's stay."""
        template = self._prepared.get(source)
        if template is None:
            template = ChatTemplate(source, self.ends)
            with IMPORT_LOCK:
                if len(self._prepared) >= MOST_TEMPLATES:
                    self._prepared = {
                        each: self._prepared[each] for each in self._own & self._prepared.keys()
                    }
                self._prepared[source] = template
        return template


class NoTemplateError(ChatError):
    """Neither the model nor the caller has a chat template."""


def _in_other_form(body: Any, refusal: Exception) -> Any:
    """The body of a refused request in the form of JSON, if it was in another form.

    Otherwise a `ChatError`: the refusal, or the place of a value that JSON does not have.
    """
    try:
        changed = in_json_form(body)
        if has_other_forms(body):
            return changed
    except RecursionError:  # nested too deeply to be looked at
        pass
    raise refusal if isinstance(refusal, ChatError) else ChatError(str(refusal)) from None


def body_from_arguments(
    messages: Any,
    tools: Any,
    tool_choice: str,
    add_generation_prompt: bool,
    continue_final_message: bool | str | None,
    reasoning_effort: str | None,
    template_arguments: Mapping[str, Any],
) -> dict[str, Any]:
    """The body of a request from the arguments of `Tokenizer.apply_chat_template`.

    `ChatError` for messages that are no mappings: llama-server, which gets JSON, only misses their content; and if
    both `add_generation_prompt` and `continue_final_message` are set, as from llama-server.
    """
    for number, message in enumerate(messages if is_array(messages) else ()):
        if type(message) is not dict and not isinstance(message, Mapping):  # an ABC is slow to ask
            raise ChatError(
                f"messages[{number}] is of type {type(message).__name__}; a message is a mapping, such as "
                '{"role": "user", "content": "Hi"}'
            )
    add_generation_prompt = checked_flag("add_generation_prompt", add_generation_prompt)
    if add_generation_prompt and named_continuation(continue_final_message):
        raise ChatError(f"{BOTH_SET} To continue the final message, pass add_generation_prompt=False.")
    given = {
        "messages": messages,
        "tools": tools,
        "tool_choice": tool_choice,
        "add_generation_prompt": add_generation_prompt,
        "continue_final_message": continue_final_message,
        "reasoning_effort": reasoning_effort,
        "chat_template_kwargs": dict(template_arguments) or None,
    }
    return {name: value for name, value in given.items() if value is not None or name == "messages"}


def prompt_text(prompt: bytes) -> str:
    """A prompt as text; invalid UTF-8 becomes U+FFFD."""
    text: str = plain(prompt.decode("latin-1"))
    return text
