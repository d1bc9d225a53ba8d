"""Runs a template again over texts that know their origins, so that the prompt has them, too.

ChatTemplate, Request of attributed texts -> [this file] -> prompt with origins

It is an ordinary run with the same functions. Only after those that turn an attributed string into a plain one are
the origins looked for again; what is not found counts as the template's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from ..errors import ChatError
from . import string_methods as strings
from .arguments import Arguments
from .attributed import NOBODY, Attributed, AttributedInt, attributed, joined_texts, origins_of
from .functions import METHODS, Builtin, in_ascii, tojson
from .messages import Request
from .origins import Origins, generated
from .reasoning import common_length
from .render import ChatTemplate
from .runtime import Runtime
from .values import JSON_ESCAPES, Value, as_string


class AttributedTemplate(ChatTemplate):
    """A prepared template whose prompts have origins."""

    def __init__(self, template: ChatTemplate) -> None:
        vars(self).update(vars(template))
        self._plain = template

    def attributed_prompt(self, request: Request, now: time.struct_time, origins: Origins) -> str:
        """The prompt with origins; the generation prompt is marked as such."""
        text = self.prompt(origins.of_request(request), now)
        if request.continuation or not request.add_generation_prompt:
            return text
        try:
            without = self._plain.prompt(replace(request, add_generation_prompt=False), now)
        except ChatError:
            return text
        behind = 0  # behind the text of the last message
        for number in set(origins_of(text)):
            if origins.kind(number) == "message":
                behind = max(behind, origins_of(text).rfind(number) + 1)
        return generated(text, max(behind, common_length(without, text)))

    def rendered(self, names: dict[str, Any], now: time.struct_time) -> str:
        return self.template.render_by(AttributingRuntime(now), names)

    def going_on(self, text: str, begun: str) -> str:
        return text + generated(begun)


class AttributingRuntime(Runtime):
    """A run whose texts keep their origins."""

    joined: Callable[[str, Iterable[str]], str] = staticmethod(joined_texts)

    def string(self, value: Value) -> str:
        written = super().string(value)
        return _of_members(value, written) if isinstance(value, (dict, list, tuple)) else written

    def text(self, value: Value) -> str:
        if isinstance(value, str):
            return value
        return (
            joined_texts("", map(self.text, value))
            if isinstance(value, (list, tuple))
            else super().text(value)
        )

    def applied(self, function: Builtin, given: Arguments) -> Value:
        if function in _OF_STRINGS and type(given[0]) is str and any(map(_is_attributed, given)):
            given[0] = attributed(given[0])  # a template's own text into which a message's is put
        value = super().applied(function, given)
        found_again = _FOUND_AGAIN.get(function)
        return value if found_again is None else found_again(given[0], value)


def _is_attributed(value: Value) -> bool:
    return isinstance(value, Attributed)


# ---- finding origins again --------------------------------------------------------------------------------


def _of_same_length(text: str, changed: str) -> str:
    return Attributed(changed, origins_of(text)) if len(text) == len(changed) else changed


def _of_members(value: Value, written: str) -> str:
    """An array or object written as text: it has the origin that all its texts share."""
    found = {origin for text in _texts(value) for origin in set(origins_of(text))}
    return attributed(written, found.pop() if len(found) == 1 else NOBODY)


def _of_json(value: Value, written: str) -> str:
    """JSON: each text keeps its origins, and what stands between two texts of the same origin has it, too."""
    if isinstance(value, AttributedInt):
        return str(value)
    origins, at, last = [""], 0, ""
    for text in _texts(value):
        literal = _literal(text, last or NOBODY)
        start = written.find(literal, at)
        if start < 0:
            literal = literal.changed(in_ascii)
            start = written.find(literal, at)
        if start < 0:
            return _of_members(value, written)
        origins += [_between(written[at:start], last, literal.origins[0]), literal.origins]
        at, last = start + len(literal), literal.origins[-1]
    if len(set("".join(origins[2:]))) < 2:
        return attributed(written, last or NOBODY)
    return Attributed(written, "".join(origins) + NOBODY * (len(written) - at))


def _between(text: str, last: str, following: str) -> str:
    """The origins of what JSON has between two texts, such as `3}, {`."""
    if last == following:
        return last * len(text)
    comma = text.rfind(",")
    if comma < 0:
        return NOBODY * len(text)
    return last * comma + NOBODY + following * (len(text) - comma - 1)


def _literal(text: str, otherwise: str) -> Attributed:
    """A text as JSON writes it; each quote has the origin of the character next to it."""
    origins = origins_of(text) or otherwise
    inner = text.translate(JSON_ESCAPES)
    return joined_texts("", (attributed('"', origins[0]), inner, attributed('"', origins[-1])))


def _texts(value: Value) -> Iterator[str]:
    """All texts in a value, including keys, in the order in which they are written."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, member in value.items():
            yield as_string(key)
            yield from _texts(member)
    elif isinstance(value, (list, tuple)):
        for member in value:
            yield from _texts(member)


_OF_STRINGS = frozenset(METHODS[str].values())
_FOUND_AGAIN: dict[Builtin, Callable[[Value, str], str]] = {
    tojson: _of_json,
    strings.title: _of_same_length,
}
