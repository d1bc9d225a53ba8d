"""The part of transformers.py that makes the prompts of chats as llama-server does."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from ..chat.assistant_mask import AssistantSpans, WrittenSpan, mask_of
from ..chat.chats import body_from_arguments, prompt_text
from ..chat.origins import PromptInParts
from ..tokenizer import Tokenizer
from ._protocol import library


class ChatPrompts:
    """The base class of `GGUFTokenizer` with `apply_chat_template`."""

    tok: Tokenizer
    chat_template: Any  # of transformers: a template, several by name, or None

    def _file_template(self) -> str | dict[str, str] | None:
        """The templates of the file in transformers' form, in which the default one has the name "default"."""
        templates = {name or "default": text for name, text in self.tok.chat_templates.items()}
        return templates if templates.keys() - {"default"} else templates.get("default")

    def apply_chat_template(
        self,
        conversation: Any,
        tools: Sequence[Any] | None = None,
        documents: Any = None,
        chat_template: str | None = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool | str = False,
        tokenize: bool = True,
        sanitize_control_tokens: bool = False,
        padding: Any = False,
        truncation: Any = False,
        max_length: int | None = None,
        return_tensors: Any = None,
        return_dict: bool = True,
        return_assistant_tokens_mask: bool = False,
        tokenizer_kwargs: Mapping[str, Any] | None = None,
        **template_kwargs: Any,
    ) -> Any:
        """Return the model inputs of a chat or of several, whose prompts are those of `llama-server --jinja`.

        The arguments are those of transformers; a message is a dict, a dataclass or a pydantic model, and its fields
        that are None are left out. Without `add_generation_prompt` and `continue_final_message`, a chat is over, as in
        a training corpus. `tokenize=False` returns llama-server's prompt, which has no BOS where encoding adds one.
        `assistant_masks` are those of `Tokenizer.apply_chat_template(return_assistant_mask=True)`.

        `TypeError` for a message of another type. `ValueError` where llama-server refuses the chat, if there is no chat
        template or no message, if the last message is to be continued and is not the assistant's, for
        `sanitize_control_tokens`, and for a mask of a prompt whose parts cannot be told apart.
        """
        if sanitize_control_tokens:
            raise ValueError("sanitize_control_tokens is not supported: these are llama-server's ids")
        if return_assistant_tokens_mask and not (return_dict and tokenize):
            raise ValueError("return_assistant_tokens_mask=True requires return_dict=True and tokenize=True")
        conversation = list(conversation)
        first = conversation[0] if conversation else {}
        # A pydantic model is iterable, but no collection.
        is_batch = isinstance(first, Collection) and not isinstance(first, Mapping)
        template = self._chosen_template(chat_template, tools)
        self.tok.chats.require_template(template)
        if documents is not None:
            template_kwargs["documents"] = documents
        whole = not add_generation_prompt and not continue_final_message
        chats = conversation if is_batch else [conversation]
        flags = add_generation_prompt, continue_final_message or None
        bodies = [_body(messages, tools, *flags, template_kwargs) for messages in chats]
        prompts = [prompt_text(self.tok.chats.prompt(body, template, whole=whole)) for body in bodies]
        if not tokenize:
            return prompts if is_batch else prompts[0]
        options = {"padding": padding, "truncation": truncation, "max_length": max_length}
        options |= tokenizer_kwargs or {}
        if not return_assistant_tokens_mask:
            found = self(prompts if is_batch else prompts[0], return_tensors=return_tensors, **options)  # type: ignore[operator]
            return found if return_dict else found["input_ids"]
        finder = AssistantSpans(self.tok)
        written = (finder.find(body, template, whole=whole) for body in bodies)
        found = self._with_masks(prompts, written, options)
        if not is_batch and return_tensors is None:
            found = type(found)({name: rows[0] for name, rows in found.items()})
        return found.convert_to_tensors(return_tensors)

    def _with_masks(
        self,
        prompts: list[str],
        written: Iterable[tuple[PromptInParts, list[WrittenSpan]]],
        options: dict[str, Any],
    ) -> Any:
        """The model inputs of prompts, with `assistant_masks` of what the assistant wrote in each."""
        keeps_offsets = options.pop("return_offsets_mapping", False)
        found = self(prompts, return_offsets_mapping=True, **options)  # type: ignore[operator]
        spans = (_in_characters(*each) for each in written)
        found["assistant_masks"] = list(map(mask_of, spans, found["offset_mapping"]))
        if not keeps_offsets:
            del found["offset_mapping"]
        return found

    def _chosen_template(self, given: str | None, tools: Sequence[Any] | None) -> str | None:
        """The template to use, or its name in the file; None for that of the file, which depends on tools."""
        is_changed = self.chat_template != self._file_template()
        if is_changed and isinstance(self.chat_template, dict):
            # That of transformers: `VLLMTokenizer` has one of its own.
            found: str = super().get_chat_template(given, tools)  # type: ignore[misc]
            return found
        if given is not None:
            return "" if given == "default" else given
        return self.chat_template if is_changed else None


def _body(
    messages: Iterable[Any],
    tools: Sequence[Any] | None,
    add_generation_prompt: bool,
    continued: bool | str | None,
    template_kwargs: Mapping[str, Any],
) -> dict[str, Any]:
    """The body of a request to llama-server for a chat with arguments of transformers."""
    described = None if tools is None else list(map(_tool, tools))
    own = list(map(_message, messages))
    if not own:
        raise ValueError("a chat has at least one message")
    if continued and own[-1].get("role") != "assistant":  # llama-server would make it the assistant's
        raise ValueError(
            "continue_final_message needs a last message with the role 'assistant', "
            f"not {own[-1].get('role')!r}"
        )
    asks = bool(add_generation_prompt)  # transformers takes any value for a flag
    return body_from_arguments(own, described, "auto", asks, continued, None, template_kwargs)


def _in_characters(rendered: PromptInParts, spans: list[WrittenSpan]) -> list[WrittenSpan]:
    """The spans with places in characters of the prompt in place of bytes."""
    found, at, characters = [], 0, 0
    for start, end, part in spans:
        characters += len(rendered.prompt[at:start].decode("utf-8", "replace"))
        size = len(rendered.prompt[start:end].decode("utf-8", "replace"))
        found.append(WrittenSpan(characters, characters + size, part))
        at, characters = end, characters + size
    return found


def _message(message: Any) -> dict[str, Any]:
    """Return a message as a dict without fields that are None, except `content`, which llama-server takes.

    Source: transformers/utils/chat_template_utils.py, _normalize_chat_messages. Rows of `datasets` have None for a
    field that only another message has.
    """
    found = _in_dicts(message)
    if not isinstance(found, dict):
        raise TypeError(f"a message is a dict, a dataclass or a pydantic model, not {type(message).__name__}")
    return {name: value for name, value in found.items() if value is not None or name == "content"}


def _in_dicts(value: Any) -> Any:
    """Return `value` with a dict for each dataclass and pydantic model in it."""
    if isinstance(value, Mapping):
        return {name: _in_dicts(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return list(map(_in_dicts, value))
    if hasattr(value, "model_dump"):
        return value.model_dump()
    if is_dataclass(value):
        return {field.name: _in_dicts(getattr(value, field.name)) for field in fields(value)}
    return value


def _tool(tool: Any) -> Any:
    """Return the description of a tool, also of one that is given as a function."""
    return library("transformers.utils", "transformers").get_json_schema(tool) if callable(tool) else tool
