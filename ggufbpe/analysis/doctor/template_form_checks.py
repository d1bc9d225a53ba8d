"""Checks that a chat template is one: no JSON file, no byte order mark at its beginning, no escapes in its texts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..._util.wording import listed
from ...gguf.constants import TokenizerKey
from .chat_markers import markers_of_prompt
from .facts import Facts
from .finding import Finding
from .known_template_check import replacement
from .sample_prompts import ANSWER, NEXT, QUESTION
from .template_sources import template_in_settings, transformers_settings

_K = TokenizerKey
_BYTE_ORDER_MARK = "\ufeff"
_ESCAPE = r"(?:\\[nt]|&(?:lt|gt|amp|quot);)"


def template_is_settings(model: Facts) -> Iterator[Finding]:
    """A file of transformers in place of the chat template that is in it."""
    for name, source in model.templates.items():
        settings = transformers_settings(source)
        if settings is None:
            continue
        yield Finding(
            "error",
            "template_is_json",
            "The chat template is a JSON file, such as transformers' tokenizer_config.json, and no template.",
            "llama-server writes that file into each prompt.",
            f"take the template out of it: {model.set_own_template()}"
            if not name and template_in_settings(settings)
            else f"set the right one: {model.set_template_file(name)}",
            model.key(f"{_K.CHAT_TEMPLATE}.{name}" if name else _K.CHAT_TEMPLATE),
            {"keys": list(settings)[:20]},
            f"Its keys are {listed(settings, len(settings))}.",
        )


def byte_order_mark(model: Facts) -> Iterator[Finding]:
    """A byte order mark at the beginning, as editors write into files."""
    if model.template.startswith(_BYTE_ORDER_MARK):
        yield Finding(
            "warning",
            "template_bom",
            "The chat template begins with a byte order mark.",
            "It is a character of every prompt, which the model has not learned to see there.",
            f"take the template without it: {model.set_own_template()}",
            model.key(_K.CHAT_TEMPLATE),
            None,
            "The first character is U+FEFF.",
        )


def escapes_in_prompts(model: Facts) -> Iterator[Finding]:
    """Escapes of Python, JSON or HTML in plain prompts, such as a backslash and an n in place of a line break.

    One must be beside a marker or a message: a sentence of the template may speak of escapes.
    """
    rendered = model.rendered
    prompts = b"\n".join(rendered.prompt(chat) or b"" for chat in ("user", "turns")) if rendered else b""
    text = prompts.decode("utf-8", "replace")
    beside = "|".join(map(re.escape, (QUESTION, ANSWER, NEXT, *markers_of_prompt(text))))
    if re.search(f"(?:{beside}){_ESCAPE}|{_ESCAPE}(?:{beside})", text):
        found = list(dict.fromkeys(re.findall(_ESCAPE, text)))
        known = replacement(model)
        yield Finding(
            "warning",
            "template_escaped",
            "The chat template writes escapes in place of the characters that they stand for.",
            "The template was escaped once too often when it was copied, so that prompts are not those of training.",
            f"use llama.cpp's template for this model: {model.set_template(known)}"
            if known
            else f"set the original one: {model.set_template_file()}",
            model.key(_K.CHAT_TEMPLATE),
            {"escapes": found},
            f"The prompts of plain chats have {listed(found, len(found))}.",
        )
