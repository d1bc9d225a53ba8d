"""Compares the chat templates of two models: their sources, and the prompts of a few small chats."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import unified_diff
from typing import Any

from ..._util.errors import printable
from ..._util.extras import NotInstalledError
from ..._util.wording import counted
from ...tokenizer import Tokenizer
from ..diagnose.id_evidence import text_difference
from ..doctor.sample_prompts import CHATS, SamplePrompts
from ..oracles.chat_answers import Prompt, Refused, with_count
from .vocabulary_diff import VocabularyDifference

_LONG_LINE = 200  # characters; longer lines of a template are compared block by block
_BLOCK = re.compile(r"(?<=%\})|(?<=\}\})")


def template_differences(a: Tokenizer, b: Tokenizer, names: tuple[str, str]) -> list[VocabularyDifference]:
    """Templates that only one of two models has, those that differ, with a unified diff, and prompts that differ."""
    differences = list(_of_texts(a.chat_templates, b.chat_templates, names))
    return [*differences, *_of_prompts(a, b, names)] if differences else []


def _of_texts(a: dict[str, str], b: dict[str, str], names: tuple[str, str]) -> Iterator[VocabularyDifference]:
    for name in dict.fromkeys((*a, *b)):
        shown = f"the chat template {printable(name)}" if name else "the default chat template"
        example = {"name": name, "a": a.get(name), "b": b.get(name)}
        if name not in a or name not in b:
            side = names[name not in a]
            kind = "template_only_a" if name in a else "template_only_b"
            what = f"chat template only in {side}: {shown.removeprefix('the chat template ')}"
            yield VocabularyDifference(kind, what, examples=(example,))
        elif a[name] != b[name]:
            lines = _unified(a[name], b[name], names)
            number = sum(line[0] in "+-" for line in lines)
            whole = {**example, "diff": lines}
            what = f"{'line differs' if number == 1 else 'lines differ'} in {shown}"
            yield VocabularyDifference("template", what, number, examples=(whole,), lines=tuple(lines))


def _unified(a: str, b: str, names: tuple[str, str]) -> list[str]:
    """The lines of a unified diff without its header; a long line is split into blocks."""
    return list(unified_diff(_lines(a), _lines(b), *names, n=1, lineterm=""))[2:]


def _lines(text: str) -> list[str]:
    lines: list[str] = []
    for line in text.splitlines():
        lines += filter(None, _BLOCK.split(line)) if len(line) > _LONG_LINE else [line]
    return lines + [""] * text.endswith("\n")


# ---- what they make of chats ----------------------------------------------------------------------------


def _of_prompts(a: Tokenizer, b: Tokenizer, names: tuple[str, str]) -> Iterator[VocabularyDifference]:
    """The small chats whose prompts differ, or a line which says that none do."""
    examples: list[dict[str, Any]] = []
    lines: list[str] = []
    number = 0
    try:
        both = [SamplePrompts(each, each.chat_templates).answers for each in (a, b)]
    except NotInstalledError as error:
        yield VocabularyDifference("prompts", f"small chats were rendered: {error}", 0)
        return
    for name, body in CHATS.items():
        one, other = (with_count(each, answers[name]) for each, answers in zip((a, b), both))
        if one != other:
            examples.append({"chat": name, "request": body, "a": _answer(one), "b": _answer(other)})
            lines += _told(name, one, other, names)
            number += 1
    have = "has a different prompt" if number == 1 else "have different prompts"
    what = f"of {counted(len(CHATS), 'small chat')} {have}"
    yield VocabularyDifference("prompts", what, number, examples=tuple(examples), lines=tuple(lines))


def _answer(answer: Prompt | Refused) -> dict[str, Any]:
    if isinstance(answer, Refused):
        return {"refused": str(answer)}
    return {"prompt": answer.text.decode("utf-8", "replace"), "tokens": answer.tokens}


def _told(name: str, one: Prompt | Refused, other: Prompt | Refused, names: tuple[str, str]) -> list[str]:
    """Both answers in words: the tokens, and where the prompts differ; or who refuses, and why."""
    sides = [
        f"refused by {side} ({answer})"
        if isinstance(answer, Refused)
        else f"{counted(answer.tokens or 0, 'token')} in {side}"
        for side, answer in zip(names, (one, other))
    ]
    lines = [f"{name}: {', '.join(sides)}"]
    if isinstance(one, Prompt) and isinstance(other, Prompt) and one.text != other.text:
        place = text_difference(one.text, one.text, other.text)
        lines.append(f"  at byte {place['offset']}: {place['ours']!r} and {place['theirs']!r}")
    return lines
