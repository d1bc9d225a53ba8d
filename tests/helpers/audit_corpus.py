"""The hostile templates of fixtures/hostile, each with the findings that it must give.

A line of a file is `name | ids | where | template`. `where` is "whole" for a template of its own; otherwise the text is
put into ChatML or `known:NAME`: at its start or end, at the start of each turn, in place of the content of a message
("content"), or with "swap" in place of a text that it names. In a text, ⏎ is a line break and ⟪202e⟫ a character.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ggufbpe.chat.known_templates import CHATML, known_source

FOLDER = Path(__file__).parent.parent.parent / "fixtures" / "hostile"
_TURN = "{%- for message in messages -%}\n"


class Hostile(NamedTuple):
    """A template, and the ids of findings of which it must have all."""

    name: str
    ids: frozenset[str]
    template: str


def hostile_templates(file: str) -> Iterator[Hostile]:
    """The templates of one file, such as "roles"."""
    for line in (FOLDER / f"{file}.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, ids, where, text = line.split(" | ", 3)
            yield Hostile(name, frozenset(ids.split(", ")), _placed(where, _unescaped(text)))


def _unescaped(text: str) -> str:
    return re.sub("⟪([0-9a-f]+)⟫", lambda match: chr(int(match[1], 16)), text.replace("⏎", "\n"))


def _placed(where: str, text: str) -> str:
    place, _, name = where.partition(" ")
    base = (known_source(name) or "") if name else CHATML
    if place == "swap":
        old, new = text.split(" ⇒ ")
        assert old in base
        return base.replace(old, new)
    if place == "content":
        return base.replace("message.content", f"({text})", 1)
    made = {
        "whole": text,
        "start": text + base,
        "end": base + text,
        "turn": base.replace(_TURN, _TURN + text, 1),
    }
    return made[place]
