"""Which template Ollama renders the chats of one of its models by, and the prompt that it makes.

Ollama has up to three for a model: code of its own that the model's configuration names ("renderer"), a Go template
beside the GGUF, and the template within the GGUF, which llama.cpp renders. It takes the one that does more.

Source: GetModel, shouldPreferChatTemplate and Capabilities in Ollama's server/images.go, ChatHandler and
selectedTemplateSource in server/routes.go, thinking/template.go, completionPrompt in llm/llama_server.go (2026-08-21).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from .._util.errors import ChatError
from .go_template.go_parser import Branch, Invocation, Nodes, Operand, Pipe
from .ollama_prompt import OllamaTemplate
from .template.values import WHITE_SPACE

if TYPE_CHECKING:
    from ..hub.stores.ollama_store import OllamaLayers
    from .prompt_tokenizer import PromptTokenizer

_SOURCES = {
    "renderer": "Ollama renders chats of this model by code of its own, {renderer!r}, which is not part of the model",
    "go_template": "Ollama renders chats of this model by the Go template beside the file",
    "gguf_chat_template": "Ollama has llama.cpp render chats of this model by the file's own template",
    "none": "Ollama has no template for this model, and leaves chats to llama.cpp",
}


class OllamaModel:
    """A model of Ollama's store. `source` is a key of `_SOURCES`; `ChatError` for a Go template that Ollama refuses."""

    def __init__(self, layers: OllamaLayers, tokenizer: PromptTokenizer) -> None:
        self._layers, self._tokenizer = layers, tokenizer
        self._jinja = tokenizer.chat_templates.get("", "")
        source = layers.template
        if source is None and layers.config.get("parser"):
            source = "{{ .Prompt }}"  # the default, which is taken where answers are parsed
        self.template = None if source is None else OllamaTemplate(source)
        self.source = self._chosen()

    def _chosen(self) -> str:
        config, template = self._layers.config, self.template
        if config.get("renderer"):
            return "renderer"
        if template is not None:
            is_parsed = config.get("parser") or self.is_harmony
            if is_parsed or not (self._jinja and _prefers(self._jinja, template)):
                return "go_template"
        return "gguf_chat_template" if self._jinja else "none"

    @property
    def is_harmony(self) -> bool:
        """Whether Ollama takes the model for one of gpt-oss, whose answers have a form of their own."""
        source = self._layers.template or ""
        is_family = self._layers.config.get("model_family") in ("gptoss", "gpt-oss")
        return is_family and "<|start|>" in source and "<|end|>" in source

    @property
    def capabilities(self) -> set[str]:
        """Those of "tools", "insert" and "thinking" that the template in use gives the model."""
        found = set[str]()
        if self.source == "go_template" and self.template is not None:
            found = _go_capabilities(self.template)
        elif self.source == "gguf_chat_template":
            found = _jinja_capabilities(self._jinja)
        return found | (
            {"thinking"} if self._layers.config.get("model_family") in ("gptoss", "gpt-oss") else set()
        )

    def in_words(self) -> str:
        """One sentence: which template Ollama uses, and why not the Go template if there is one."""
        said = _SOURCES[self.source].format(renderer=self._layers.config.get("renderer"))
        if self.source == "gguf_chat_template" and self.template is not None:
            said += ", which does more than the Go template beside it"
        if self.source == "go_template" and self._layers.config.get("parser"):
            said += "; whether it thinks by default is up to Ollama's parser of its answers, and is not known here"
        return said

    def prompt(self, body: Mapping[str, Any], now: datetime | None = None) -> bytes:
        """The UTF-8 of the prompt that Ollama gives to llama.cpp, with the system message and messages of the model.

        `ChatError` where Ollama refuses the chat, and for a renderer.
        """
        body = self._request(body)
        if self.source == "renderer":
            raise ChatError(self.in_words())
        if self.source != "go_template" or self.template is None:
            return self._tokenizer.chats.prompt({**body, "think": None}, now=now)
        known, think = self.capabilities, body.get("think")
        if not self._layers.config.get("parser"):
            for field, name in (("tools", "tools"), ("think", "thinking")):
                if body.get(field) and name not in known:
                    raise ChatError(f"{_short(self._layers)!r} does not support {name}")
        if think is None and "thinking" in known:
            think = True
        elif think == "max" and self.is_harmony:
            think = "high"
        prompt = self.template.prompt({**body, "think": think}, now)
        return prompt.removeprefix(b"<bos>") if self._tokenizer.vocabulary.add_bos else prompt

    def _request(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The request with what the model has of its own before the messages, and without earlier thoughts."""
        given = body.get("messages")
        if not isinstance(given, list) or not all(isinstance(message, Mapping) for message in given):
            raise ChatError("'messages' must be an array of objects")
        messages = [*(each for each in self._layers.messages if isinstance(each, Mapping)), *given]
        if given and given[0].get("role") != "system" and self._layers.system:
            messages.insert(0, {"role": "system", "content": self._layers.system})
        if self._layers.config.get("model_family") == "qwen3" or self._layers.name.model == "deepseek-r1":
            users = [number for number, each in enumerate(messages) if each.get("role") == "user"]
            last = users[-1] if users else -1
            messages = [
                _without_thoughts(each) if number < last else each for number, each in enumerate(messages)
            ]
        return {**body, "messages": messages}


def _short(layers: OllamaLayers) -> str:
    return str(layers.name).removeprefix("ollama:").removesuffix(":latest")


def _without_thoughts(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """An answer without what stands between <think> and </think> at its beginning."""
    content = message.get("content")
    if message.get("role") != "assistant" or not isinstance(content, str):
        return message
    begun = content.lstrip()
    if begun.startswith("<think>"):
        return {**message, "content": begun.partition("</think>")[2].lstrip()}
    return {**message, "content": ""} if "<think>".startswith(begun) else message


def _jinja_capabilities(source: str) -> set[str]:
    has_thoughts = "<think>" in source and "</think>" in source
    splits = re.search(r"""content\.split\((['"])</think>\1\)""", source) is not None
    thinks = splits and "reasoning_content" not in source and "<SPECIAL_12>" not in source
    return ({"tools"} if _shows_tools(source) else set()) | (
        {"thinking"} if has_thoughts or thinks else set()
    )


def _shows_tools(source: str) -> bool:
    return "tools" in source or "tool_call" in source


def _go_capabilities(template: OllamaTemplate) -> set[str]:
    found = {name for name, field in (("tools", "tools"), ("insert", "suffix")) if field in template.names}
    return found | ({"thinking"} if all(thinking_tags(template)) else set())


def _prefers(jinja: str, template: OllamaTemplate) -> bool:
    """Whether Ollama takes the template within the file rather than the Go template."""
    of_jinja, of_go = _jinja_capabilities(jinja), _go_capabilities(template)
    if len(of_jinja) > len(of_go):
        return not _go_shows_results(template) or _jinja_shows_results(jinja)
    if of_jinja != of_go or "tools" not in of_go:
        return False
    return _jinja_shows_results(jinja) and not _go_shows_results(template)


def _jinja_shows_results(source: str) -> bool:
    """Whether a template shows calls of tools and their results."""
    calls = "tool_calls" in source or "assistant_tool_call" in source
    results = ("tool_response", "tool_results", "ipython")
    asks = re.search(r"""role['"]\] == (['"])tool\1|message\.role == (['"])tool\2""", source)
    return calls and (asks is not None or any(word in source for word in results))


def _go_shows_results(template: OllamaTemplate) -> bool:
    words = ('eq .Role "tool"', "tool_response", "TOOL_RESULTS")
    return {"tools", "toolcalls"} <= template.names and any(
        word in template.template.source for word in words
    )


def thinking_tags(template: OllamaTemplate) -> tuple[str, str]:
    """The texts around thoughts, as Ollama finds them: the first and last text of the list that writes `.Thinking`.

    That must be in a loop over `.Messages`. Either is "" if there is none.
    """
    opening = closing = ""
    for nodes in _lists_of_thoughts(template.template.templates[""], None):
        if isinstance(nodes[0], str):
            opening = nodes[0].strip(WHITE_SPACE)
        if isinstance(nodes[-1], str):
            closing = nodes[-1].strip(WHITE_SPACE)
    return opening, closing


def _lists_of_thoughts(nodes: Nodes, loop: Pipe | None) -> Iterator[Nodes]:
    """For each field `.Thinking`, in order, the innermost list around it, if the innermost loop is over `.Messages`."""
    for node in nodes:
        pipe = (
            node.pipe if isinstance(node, (Branch, Invocation)) else node if isinstance(node, Pipe) else None
        )
        inner = pipe if isinstance(node, Branch) and node.word == "range" else loop
        over = inner is not None and any(operand.names[0] == "Messages" for operand in _fields(inner))
        if pipe is not None and over:
            yield from (nodes for operand in _fields(pipe) if operand.names[0] == "Thinking")
        if isinstance(node, Branch):
            yield from _lists_of_thoughts(node.body, inner)
            yield from _lists_of_thoughts(node.other or (), inner)


def _fields(pipe: Pipe) -> Iterator[Operand]:
    """The fields of a pipe, those in parentheses included."""
    for operand in (operand for command in pipe.commands for operand in command):
        if operand.kind == "field":
            yield operand
        elif operand.kind == "pipe" and not operand.names:
            yield from _fields(operand.value)
