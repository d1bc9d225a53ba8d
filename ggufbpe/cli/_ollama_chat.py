"""`ggufbpe chat --ollama`: the prompt that Ollama makes of a chat, and how it differs from llama-server's."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from .._util.errors import ChatError, StoreError
from ..analysis.views.answers import answer
from ..tokenizer import Tokenizer
from . import _output
from ._arguments import Parser, UsageError
from ._chat import date_of

if TYPE_CHECKING:
    from ..hub.model_location import ModelLocation

_NOT_WITH = (
    "fit",
    "by_message",
    "chat_template",
    "chat_template_file",
    "chat_template_kwargs",
    "no_generation_prompt",
)


def add_ollama_flags(parser: Parser) -> None:
    """The flags for Ollama's prompt of a model in its store."""
    parser.add_switch(
        "--ollama",
        help="print the prompt that Ollama makes of the chat, by the Go template beside a model of its store "
        "(-m ollama:NAME)",
    )
    parser.add_switch(
        "--ollama-diff",
        help="show how Ollama's prompt and its ids differ from llama-server's; the exit code is 1 if they do",
    )


def says_which_template(tokenizer: Tokenizer, model: str | ModelLocation) -> str:
    """One sentence about the template that Ollama uses for a model of its store; "" for other models."""
    if isinstance(model, str) or model.store != "Ollama":
        return ""
    from ..chat.ollama_model import OllamaModel
    from ..hub.stores.ollama_store import ollama_layers

    try:
        layers = ollama_layers(model.name)
        return "" if layers is None else OllamaModel(layers, tokenizer).in_words()
    except (StoreError, OSError) as error:  # the GGUF is sound, and enough for llama-server's prompt
        return f"which template Ollama uses cannot be told: {error}"
    except ChatError as error:
        return f"Ollama refuses the Go template beside the file: {error}"


def run_ollama(
    arguments: argparse.Namespace, tokenizer: Tokenizer, model: str | ModelLocation, body: dict[str, Any]
) -> int:
    """Print what `--ollama` or `--ollama-diff` asks for."""
    from ..chat.ollama_comparison import ollama_chat
    from ..hub.stores.ollama_store import ollama_layers

    flag = "--ollama-diff" if arguments.ollama_diff else "--ollama"
    for name in _NOT_WITH:
        if getattr(arguments, name) not in (None, False):
            raise UsageError(f"{flag} takes no --{name.replace('_', '-')}: Ollama has nothing like it")
    is_stored = not isinstance(model, str) and model.store == "Ollama"
    layers = ollama_layers(model.name) if is_stored and not isinstance(model, str) else None
    if layers is None:
        raise UsageError(f"{flag} needs a model of Ollama's store: -m ollama:NAME, after `ollama pull NAME`")
    found = ollama_chat(tokenizer, layers, body, date_of(arguments), compares=arguments.ollama_diff)
    _output.note(f"ggufbpe: {found.says}")
    if arguments.json:
        _output.write_json(answer(found.to_dict(), model=tokenizer.name))
    elif arguments.ollama_diff:
        _output.write_lines(found.lines(tokenizer))
    elif arguments.ids or arguments.count:
        _output.write(f"{len(found.ollama.ids) if arguments.count else found.ollama.ids}\n".encode())
    else:
        _output.write(found.ollama.prompt)
    return 0 if found.is_same else 1
