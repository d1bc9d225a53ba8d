"""Reads a chat template for `fix`, tries it with a chat, and turns it into edits of a file.

Source: add_chat_template in gguf-py/gguf/gguf_writer.py, which writes named templates and a list of their names. Of
those, llama.cpp uses the one named `tool_use` (common_chat_templates_init in common/chat.cpp), listed or not.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

from ..._util.extras import NotInstalledError
from ...chat.known_templates import known_source
from ...chat.template.lexer import MOST_SOURCE
from ...errors import ChatError, GGUFError, printable
from ...gguf.constants import GGUFValueType, TokenizerKey
from ...gguf.edit import Edit
from ...gguf.reader import GGUFFile
from ...tokenizer.inputs import TextOrPath

_T = GGUFValueType
NAMES_KEY = "tokenizer.chat_templates"
_NAME = re.compile(r"[A-Za-z0-9_]+")
_UNWRITTEN = "nothing was written; force=True writes it"

ChatTemplates = TextOrPath | Mapping[str, TextOrPath]


def template_edits(file: GGUFFile, given: ChatTemplates, *, check: bool = True) -> Iterator[Edit]:
    """The edits that set these templates: one, or several by name; "" and "default" are the default template.

    A template is its text, a path, or "known:NAME" for one of llama.cpp's. With `check`, a template that cannot be
    parsed or refuses a chat of one message is a `ChatError`, and `NotInstalledError` is raised without jinja2.
    `ValueError` for an invalid name, text or size; `OSError` for a path that cannot be read.
    """
    templates = given if isinstance(given, Mapping) else {"": given}
    named = []
    for name, template in templates.items():
        name = "" if name == "default" else name
        if name and not _NAME.fullmatch(name):
            raise ValueError(
                f"{printable(name)} is not a valid name of a chat template: use letters, digits and _"
            )
        text = template_text(template)
        if check:
            _try(text, name)
        named += [name] if name else []
        yield Edit(
            f"{TokenizerKey.CHAT_TEMPLATE}.{name}" if name else TokenizerKey.CHAT_TEMPLATE, _T.STRING, text
        )
    listed = _listed(file)
    if new := [name for name in named if name not in listed]:
        yield Edit(NAMES_KEY, _T.ARRAY, [*listed, *new], _T.STRING)


def template_text(template: TextOrPath) -> str:
    """The text of a template that is given as text, as a path, or as known:NAME; `ValueError` if it is invalid."""
    what = "the chat template"
    if isinstance(template, os.PathLike):
        what = printable(os.fspath(template))
        with open(template, "rb") as file:
            template = file.read(MOST_SOURCE + 1)
    if isinstance(template, str) and (known := known_source(template)) is not None:
        return known
    data = template.encode() if isinstance(template, str) else bytes(memoryview(template))
    if len(data) > MOST_SOURCE:
        raise ValueError(f"{what} has more than {MOST_SOURCE:,} bytes, too many for a chat template")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{what} is not UTF-8: {error.reason} at byte {error.start}") from None
    if not text.strip():
        raise ValueError(
            f"{what} is empty; to remove the model's, remove the key {TokenizerKey.CHAT_TEMPLATE}"
        )
    if "\0" in text:
        raise ValueError(f"{what} contains a NUL character, where llama.cpp would end it")
    return text


def _try(text: str, name: str) -> None:
    """Make a prompt with the template. Its markers are not checked; doctor does that."""
    from ...chat.bos_eos import BosEos
    from ...chat.render import ChatTemplate
    from ...chat.request.messages import Message, Request

    tools = ({"type": "function", "function": {"name": "f", "description": "", "parameters": {}}},)
    try:
        request = Request((Message("user", "Hello"),), tools if name == "tool_use" else ())
        ChatTemplate(text, BosEos()).prompt(request, time.localtime())
    except ChatError as error:
        raise ChatError(f"{error.reason} ({_UNWRITTEN})", error.line) from None
    except NotInstalledError as error:
        raise NotInstalledError(f"{error} to try it ({_UNWRITTEN} untried)", name=error.name) from None


def _listed(file: GGUFFile) -> list[Any]:
    """The names of the templates that the file lists."""
    if NAMES_KEY not in file or file.element_type(NAMES_KEY) is not _T.STRING:
        return []
    try:
        return list(file[NAMES_KEY])  # type: ignore[arg-type]
    except GGUFError:
        return []
