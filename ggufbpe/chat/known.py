"""The chat templates that llama.cpp carries for models, by their names there: `known:NAME` in commands.

data/chat_templates.json.xz -> [this file] -> cli/, examination/

But: llama.cpp does not look into that folder when it runs; `--chat-template-file` names one of them, or another.
Source: models/templates, taken by scripts/generate_chat_templates.py.
"""

from __future__ import annotations

import os
from functools import cache
from typing import NamedTuple

from ..errors import printable
from ..once import making

PREFIX = "known:"
_FILE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "data", "chat_templates.json.xz")
_FOR_TOOLS = "-tool_use"


class KnownTemplate(NamedTuple):
    """A template of llama.cpp's collection."""

    name: str
    models: tuple[str, ...]  # that it belongs to, without their publishers; () if unknown
    source: str

    @property
    def variant(self) -> str:
        """The name under which a model's file has it: "tool_use", or "" for the default."""
        return "tool_use" if self.name.endswith(_FOR_TOOLS) else ""


def known_templates() -> dict[str, KnownTemplate]:
    """All of them by name."""
    with making:
        return _read()[1]


def known_build() -> str:
    """The build of llama.cpp whose templates these are.

    >>> known_build()
    'b11549'
    """
    with making:
        return _read()[0]


@cache
def _read() -> tuple[str, dict[str, KnownTemplate]]:
    import json
    import lzma

    with lzma.open(_FILE) as file:
        content = json.load(file)
    models, templates = content["models"], content["templates"]
    found = {name: KnownTemplate(name, tuple(models[name]), text) for name, text in templates.items()}
    return content["llama.cpp"], found


def known_source(given: str) -> str | None:
    """The template that `known:NAME` names; None if the argument has another form. `ValueError` as below."""
    return known_template(given[len(PREFIX) :]).source if given.startswith(PREFIX) else None


def known_template(name: str) -> KnownTemplate:
    """The template with a name, ignoring case; `ValueError` with the closest names if there is none.

    >>> known_template("Qwen-Qwen3-0.6B").models
    ('Qwen3-0.6B',)
    """
    templates = known_templates()
    by_name = {known.lower(): known for known in templates}
    if name.lower() in by_name:
        return templates[by_name[name.lower()]]
    import difflib

    near = [known for each, known in by_name.items() if name and name.lower() in each]
    near = near or [by_name[each] for each in difflib.get_close_matches(name.lower(), by_name, n=3)]
    raise ValueError(
        f"llama.cpp {known_build()} has no chat template of the name {printable(name)}"
        + (f"; near: {', '.join(near)}" if near else f"; there are {', '.join(templates)}")
    )
