"""Renders the prompt of a request: what llama.cpp does before and after it runs the template.

Messages are changed into what the template takes (capabilities, families), the template is run, a BOS and an EOS that
the tokenizer will add are removed, and an answer to be continued is appended.

Source: common_chat_templates_apply_jinja, common_chat_template_direct_apply_impl and `workaround` in common/chat.cpp;
peg_generator::generate_parser in common/chat-auto-parser-generator.cpp.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .._util.errors import ChatError
from .._util.extras import imported
from .._util.lazy import IMPORT_LOCK, computed_once
from .bos_eos import BosEos
from .request.capabilities import EFFORT_NAMES, Capabilities, detect_capabilities, preserving_names
from .request.chat_message import Message
from .request.continuation_check import may_be_output
from .request.json_text import JSONError, parsed_as_llama_cpp
from .request.messages import Request
from .request.model_output import Output, detect_output
from .request.reasoning import Reasoning, common_length, detect_reasoning, patched
from .request.schema_patterns import check_patterns
from .request.schemas import check_schema, schemas_of_answer, schemas_of_tools
from .request.template_families import Handling, find_handling
from .template.attributed_text import with_origin_of
from .template.values import viewed

if TYPE_CHECKING:
    from .template.environment import Template

# Conditions that make known templates refuse chats that llama.cpp accepts, and the texts by which these are known.
_REFUSALS = (
    (
        ("<|channel|>", "in message.content or"),
        '{%- if "<|channel|>analysis<|message|>" in message.content or '
        '"<|channel|>final<|message|>" in message.content %}',
    ),
    (
        ("[TOOL_CALLS]", "if (message['content'] is none or"),
        "{%- if (message['content'] is none or message['content'] == '' or message['content']|length == 0) and "
        "(message['tool_calls'] is not defined or message['tool_calls'] is none or "
        "message['tool_calls']|length == 0) %}",
    ),
)
_TRIMMING = "You have access to the following functions in JSONSchema format"


class TemplateWriter:
    """How the text of a prompt is written. A subclass may track where each character comes from."""

    def run(self, template: Template, names: dict[str, Any], request: Request, now: time.struct_time) -> str:
        """The text that the template writes for the names of a request."""
        return template.render(names, now, request.size)

    def append_prefill(self, text: str, prefill: str) -> str:
        """A text followed by the start of the answer that is to be continued."""
        return text + prefill


@lru_cache(maxsize=8)  # models that are compared have the same templates
def _compiled(source: str) -> Template:
    with IMPORT_LOCK:
        from .template.environment import Template

    return Template(source)


class ChatTemplate:
    """A template with everything that llama.cpp finds out about it, each on first use.

    `ChatError` if it cannot be parsed; `NotInstalledError` if jinja2 is missing.
    """

    def __init__(self, source: str, ends: BosEos) -> None:
        for known, condition in _REFUSALS:
            if all(text in source for text in known):
                source = source.replace(condition, "{%- if false %}")
        with IMPORT_LOCK:
            imported("jinja2", "chat", "a chat template")

        self.source = source
        self._ends = ends
        self._bos, self._eos = ends.bos.decode("latin-1"), ends.eos.decode("latin-1")
        self.template = _compiled(source)
        self._writer = TemplateWriter()

    def with_writer(self, writer: TemplateWriter) -> ChatTemplate:
        """A copy of this template, with what is known of it, whose prompts are written by `writer`."""
        other = copy(self)
        other._writer = writer
        return other

    @computed_once
    def capabilities(self) -> Capabilities:
        """What the template takes."""
        return detect_capabilities(self.template)

    @computed_once
    def family(self) -> Handling | None:
        """llama.cpp's special handling of it, if there is any."""
        return find_handling(self.source)

    @computed_once
    def reasoning(self) -> Reasoning:
        """The marks of reasoning, for templates without a family."""
        return patched(self.source, self._found_reasoning)

    @computed_once
    def _found_reasoning(self) -> Reasoning:
        return detect_reasoning(self.bare_text, self.capabilities.supports_tool_calls)

    @computed_once
    def output(self) -> Output:
        """What a model writes, for templates without a family. `ChatError` if llama.cpp cannot find it out."""
        supports_calls = self.capabilities.supports_tool_calls
        return detect_output(self.source, self.bare_text, self._found_reasoning, supports_calls)

    @computed_once
    def arguments(self) -> frozenset[str]:
        """The names in `chat_template_kwargs` that can change a prompt: what the template or its handling reads."""
        read = self.template.names_read
        keeps = {"preserve_reasoning"} if read & preserving_names(True).keys() else set()
        effort = {"reasoning_effort"} if read & set(EFFORT_NAMES) else set()
        return read | keeps | effort | set(() if self.family is None else self.family.arguments)

    @computed_once
    def supports_thinking(self) -> bool:
        """Whether it knows about thinking. `ChatError` if it refuses even a single user message.

        llama-server does not start with a template that does.
        """
        self.prompt(Request((Message("user", "test"),)), time.localtime())
        return self.reasoning.present if self.family is None else self.family.thinking

    def prompt(self, request: Request, now: time.struct_time) -> str:
        """The prompt, one character for each byte of its UTF-8."""
        messages, last = self._messages(request)
        names = self._names(request, now)
        family = self.family
        if family is not None:
            if family.adjust is not None:
                messages = family.adjust(messages, request.template_arguments)
            if family.handler == "closed_without_reasoning" and isinstance(request.json_schema, dict):
                names["response_format"] = viewed(request.json_schema)
        names.setdefault("messages", viewed(messages))
        if family is not None:
            text, prefill, fits = self._by_family(family, names, request, last, now)
        else:
            try:
                text, prefill, fits = self._by_reasoning(names, request, last, now)
            except ChatError as error:
                raise ChatError(
                    "Unable to generate parser for this template. Automatic parser generation failed: "
                    f"{error.reason}",
                    error.line,
                ) from None
        if not fits and not request.echo:
            output = "peg-native" if family is None else family.output
            raise ChatError(f"The model produced output that does not match the expected {output} format")
        return text if last is None or last.empty else self._writer.append_prefill(text, prefill)

    # ---- before ---------------------------------------------------------------------------------

    def _messages(self, request: Request) -> tuple[list[dict[str, Any]], Message | None]:
        """The messages for the template and, apart from them, the one to be continued."""
        given = request.messages
        if _TRIMMING in self.source:
            given = tuple(message.trimmed() for message in given)
        messages = self._normalized([message.as_json() for message in given])
        last = None
        if request.continuation and messages:
            last = request.messages[-1]
            messages.pop()
        if "<|channel|>" not in self.source:
            for message in messages:
                if message["role"] == "developer":
                    message["role"] = "system"
        if not self.capabilities.supports_system_role:
            messages = _without_system(messages)
        if self.capabilities.supports_object_arguments:
            _parse_arguments(messages)
        return messages, last

    def _normalized(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Contents as text or as parts, if the template takes only one of the two."""
        text, parts = self.capabilities.supports_string_content, self.capabilities.supports_typed_content
        if text == parts:
            return messages
        for message in messages:
            content = message.get("content")
            if parts and isinstance(content, str):
                message["content"] = [{"type": "text", "text": content}]
            elif text and isinstance(content, list):
                message["content"] = _joined(content)
        return messages

    def _names(self, request: Request, now: time.struct_time) -> dict[str, Any]:
        """The names that the template sees, except `messages`."""
        arguments: Mapping[str, Any] = request.template_arguments
        names: dict[str, Any] = {
            "bos_token": self._bos,
            "eos_token": self._eos,
            "enable_thinking": request.enable_thinking,
            "datetime": time.strftime("%b %d %Y", now),
            "date_string": time.strftime("%d %b %Y", now),
        }
        if request.tools:
            names["tools"] = viewed(list(request.tools))
        names |= viewed(dict(arguments))
        if request.add_generation_prompt and not request.continuation:
            names["add_generation_prompt"] = True
        else:
            names.pop("add_generation_prompt", None)
            if "add_generation_prompt" in arguments:
                names["add_generation_prompt"] = viewed(arguments["add_generation_prompt"])
        return _more_names(names) | names

    # ---- the template ---------------------------------------------------------------------------

    def _run(self, names: dict[str, Any], request: Request, now: time.struct_time) -> str:
        """The template's text without a BOS and an EOS that the tokenizer will add."""
        return self._ends.without_added(self._writer.run(self.template, names, request, now))

    def _run_twice(self, names: dict[str, Any], request: Request, now: time.struct_time) -> tuple[str, str]:
        """The prompt, and the generation prompt: what the template adds for `add_generation_prompt`.

        llama.cpp runs the template with and without it, and refuses a chat if either fails. The generation prompt is
        needed only for an answer to be continued.
        """
        asked = names.get("add_generation_prompt") is True
        if asked and self.template.generation_prompt_is_only_added:
            return self._run(names, request, now), ""
        text = self._run(_copied(names), request, now)  # which may change its values
        without = {name: value for name, value in names.items() if name != "add_generation_prompt"}
        if "add_generation_prompt" in request.template_arguments:
            without["add_generation_prompt"] = viewed(request.template_arguments["add_generation_prompt"])
        no_prompt = self._run(without, request, now) if asked else text
        prompt = text if asked else self._run({**names, "add_generation_prompt": True}, request, now)
        return text, prompt[common_length(no_prompt, prompt) :] if request.continuation else ""

    def bare_text(
        self,
        messages: list[dict[str, Any]],
        tools: list[dict[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        enable_thinking: bool = True,
    ) -> str:
        """What the template writes for finished messages, a character for each byte; nothing is taken off or added."""
        normalized = self._normalized([dict(message) for message in messages])
        names: dict[str, Any] = {
            "messages": viewed(normalized),
            "bos_token": self._bos,
            "eos_token": self._eos,
            "enable_thinking": enable_thinking,
        }
        if tools:
            names["tools"] = viewed(tools)
        if add_generation_prompt:
            names["add_generation_prompt"] = True
        return self.template.render(names, time.localtime())

    # ---- after ----------------------------------------------------------------------------------

    def _by_reasoning(
        self, names: dict[str, Any], request: Request, last: Message | None, now: time.struct_time
    ) -> tuple[str, str, bool]:
        """The text, the start of the answer, and whether a model's output could begin with that."""
        output = self.output  # a refusal here comes before those of the template
        text, opening = self._run_twice(names, request, now)
        marks, content, prefill = self.reasoning, request.continuation == "content", opening
        if last is not None and not last.empty:
            if marks.start:
                prefill = opening.partition(marks.start)[0] + marks.start + viewed(last.reasoning)
                prefill += marks.end if content else ""
            prefill += viewed(last.rendered_content()) if content else ""
        has_calls = output.supports_calls and output.calls
        of_answer, of_tools = schemas_of_answer(request), schemas_of_tools(request) if has_calls else []
        for schema in of_answer or of_tools:
            check_schema(schema)
        if of_answer:
            check_patterns(of_answer)
        elif output.calls_start or request.tool_choice == "required":
            check_patterns([], of_tools) if output.tagged_arguments else check_patterns(of_tools)
        fits = not request.continuation or may_be_output(prefill, opening, marks, output, request)
        return text, prefill, fits

    def _by_family(
        self,
        family: Handling,
        names: dict[str, Any],
        request: Request,
        last: Message | None,
        now: time.struct_time,
    ) -> tuple[str, str, bool]:
        """The prompt, the start of the answer, and whether that start is valid, for a template that llama.cpp knows."""
        text, opening = (
            self._run_twice(names, request, now)
            if family.both_prompts
            else (self._run(names, request, now), family.opening)
        )
        asked = names.get("add_generation_prompt") is True
        if family.handler == "end_for_return" and not asked:
            start, mark, end = text.rpartition("<|return|>")
            text = start + "<|end|>" + end if mark else text
        ends_turn = family.handler == "turn_of_model" and text.endswith("<turn|>\n")
        if ends_turn and asked:
            text += "<|turn>model\n"
        prefill = opening
        if last is not None and not last.empty:
            prefill = viewed(self._prefill(family, last, request))
            if family.handler == "after_generation_prompt":
                prefill = opening + prefill
            elif ends_turn:
                prefill = "<|turn>model\n" + prefill
        schemas, of_tools = family.schemas(request), schemas_of_tools(request)
        for schema in schemas:
            check_schema(schema)
        of_answer = [schema for schema in schemas if schema is request.json_schema]
        of_tools = of_tools if len(schemas) > len(of_answer) else []
        if request.tools and request.tool_choice in family.without_answer:
            of_answer = []
        elif of_answer and family.read_schemas == "tools answer":
            of_tools = []
        by = family.grammar_of_tools
        check_patterns(of_answer + (of_tools if by == "whole" else []), of_tools if by == "arguments" else [])
        return text, prefill, not request.continuation or family.may_begin_with(prefill, request)

    def _prefill(self, family: Handling, last: Message, request: Request) -> str:
        if family.handler == "closed_without_reasoning" and not last.reasoning:
            family = replace(family, start="<｜Assistant｜></think>", middle="")
        elif family.handler == "without_reasoning":
            last = replace(last, reasoning="")
        elif family.handler == "think_by_effort":
            mark = _MARKS_BY_EFFORT.get(
                str(request.template_arguments.get("reasoning_effort", "")), "ifm|think"
            )
            if not request.enable_thinking and "enable_thinking" in self.source:
                mark = "ifm|think"
            family = replace(family, start=family.start.format(mark), middle=family.middle.format(mark))
        return family.prefill(last, request)


_MARKS_BY_EFFORT = {"medium": "ifm|think_fast", "low": "ifm|think_faster"}


def _more_names(names: dict[str, Any]) -> dict[str, Any]:
    """Further names for the same values, since templates differ in them."""
    out: dict[str, Any] = {}
    kept = names.get("preserve_reasoning")
    if isinstance(kept, bool):
        out |= preserving_names(kept)
    effort = names.get("reasoning_effort")
    if isinstance(effort, str):
        out |= dict.fromkeys(EFFORT_NAMES, effort)
    return out


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(member) for key, member in value.items()}
    return [_copied(member) for member in value] if isinstance(value, list) else value


def _joined(parts: list[dict[str, Any]]) -> str:
    out = ""
    for part in parts:
        out += ("\n" if out else "") + str(part["text"])
    return out


def _without_system(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages with a system message at the start put before the content of the second."""
    if not messages or messages[0]["role"] != "system":
        return messages
    first, *rest = messages
    if rest:
        for message in (first, rest[0]):
            if not isinstance(message["content"], str):
                raise ChatError("[json.exception.type_error.302] type must be string, but is array")
        rest[0]["content"] = first["content"] + "\n" + rest[0]["content"]
    return rest


def _parse_arguments(messages: list[dict[str, Any]]) -> None:
    """Parses the arguments of calls into objects."""
    for message in messages:
        for call in message.get("tool_calls", ()):
            given = call["function"]["arguments"]
            try:
                call["function"]["arguments"] = with_origin_of(given, parsed_as_llama_cpp(given))
            except JSONError as error:
                raise ChatError(f"Failed to parse tool call arguments as JSON: {error}") from None
