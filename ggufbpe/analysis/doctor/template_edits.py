"""Tries a chat template for `fix` with a chat, and turns it into edits of a file.

Source: add_chat_template in gguf-py/gguf/gguf_writer.py, which writes named templates and a list of their names. Of
those, llama.cpp uses the one named `tool_use` (common_chat_templates_init in common/chat.cpp), listed or not.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..._util.errors import ChatError, GGUFError, printable
from ..._util.extras import NotInstalledError
from ...gguf.constants import GGUFValueType, TokenizerKey
from ...gguf.edit import Edit
from ...gguf.reader import GGUFFile
from ...tokenizer.inputs import TextOrPath
from .template_sources import template_text

_T = GGUFValueType
_NAME = re.compile(r"[A-Za-z0-9_]+")
_UNWRITTEN = "nothing was written; force=True writes it"

ChatTemplates = TextOrPath | Mapping[str, TextOrPath]


def template_edits(file: GGUFFile, given: ChatTemplates, *, check: bool = True) -> Iterator[Edit]:
    """The edits that set these templates: one, or several by name; "" and "default" are the default template.

    A template is given as `template_text` takes it, with its errors. With `check`, one that cannot be parsed or refuses
    a chat of one message is a `ChatError`, and `NotInstalledError` is raised without jinja2. `ValueError` for an
    invalid name.
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
            try_template(text, name)
        named += [name] if name else []
        yield Edit(
            f"{TokenizerKey.CHAT_TEMPLATE}.{name}" if name else TokenizerKey.CHAT_TEMPLATE, _T.STRING, text
        )
    listed = _listed(file)
    if new := [name for name in named if name not in listed]:
        yield Edit(TokenizerKey.CHAT_TEMPLATES, _T.ARRAY, [*listed, *new], _T.STRING)


def try_template(text: str, name: str) -> None:
    """Make a prompt with the template called `name`; `ChatError` if it cannot, or the default one shows no message."""
    from ...chat.bos_eos import BosEos
    from ...chat.render import ChatTemplate
    from ...chat.request.chat_message import Message
    from ...chat.request.messages import Request

    tools = ({"type": "function", "function": {"name": "f", "description": "", "parameters": {}}},)
    request = Request((Message("user", "Hello"),), tools if name == "tool_use" else ())
    prompt = ChatTemplate(text, BosEos()).prompt(request, time.localtime())
    if not name and "Hello" not in prompt:
        raise ChatError("the template leaves out the user's message")


@contextmanager
def told_as_unwritten() -> Iterator[None]:
    """Say in the error of a template that cannot be used, or not be tried, that nothing was written."""
    try:
        yield
    except ChatError as error:
        raise ChatError(f"{error.reason} ({_UNWRITTEN})", error.line) from None
    except NotInstalledError as error:
        raise NotInstalledError(f"{error} to try it ({_UNWRITTEN} untried)", name=error.name) from None


def _listed(file: GGUFFile) -> list[Any]:
    """The names of the templates that the file lists."""
    key = TokenizerKey.CHAT_TEMPLATES
    if key not in file or file.element_type(key) is not _T.STRING:
        return []
    try:
        return list(file[key])  # type: ignore[arg-type]
    except GGUFError:
        return []
