"""Runs a template over strings that keep their origins and parts, and are all distinct objects.

The run is an ordinary one, with the same functions. Only after a function that turns an attributed string into a
plain one are the origins looked for again; text that is not found counts as the template's. A template that
capitalizes texts or asks whether two are the same object is always run in this way, since llama.cpp capitalizes each
part of a text separately.

Source: common/jinja/string.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from json.encoder import encode_basestring

from .attributed_text import (
    NOBODY,
    Attributed,
    AttributedInt,
    appended_texts,
    attributed,
    joined_texts,
    origins_of,
)
from .call_arguments import Arguments, Builtin
from .functions import METHODS, in_ascii, tojson
from .runtime import Runtime
from .values import Value, as_string
from .values import text as text_of


class AttributingRuntime(Runtime):
    """A run whose texts keep their origins and parts."""

    joined: Callable[[str, Iterable[str]], str] = staticmethod(joined_texts)
    appended: Callable[[Iterable[str]], str] = staticmethod(appended_texts)

    def plus(self, left: Value, right: Value, operator: str = "+") -> Value:
        return self.operate(left, operator, right)

    def parts(self, count: int, characters: int = 0) -> None:
        """Pay for parts; each is a text with its origins."""
        self.step(16 * count)
        self.spend(300 * count + characters)

    replacements = parts

    def by_parts(self, change: Callable[[str], str], text: str) -> str:
        return text.by_parts(change) if isinstance(text, Attributed) else change(text)

    def string(self, value: Value) -> str:
        written = super().string(value)
        return _of_members(value, written) if isinstance(value, (dict, list, tuple)) else written

    def text(self, value: Value) -> str:
        if isinstance(value, (list, tuple)):
            self.weigh(value, visit=30)
            return _text_of_items(value)
        return super().text(value)

    def applied(self, function: Builtin, given: Arguments) -> Value:
        if (
            function in _OF_STRINGS
            and type(given[0]) is str
            and any(isinstance(each, Attributed) for each in given)
        ):
            given[0] = attributed(given[0])  # a template's own text into which a message's is put
        value = super().applied(function, given)
        if function is tojson:
            return _of_json(given[0], value)
        return attributed(value) if type(value) is str else value


def _text_of_items(value: Value) -> str:
    """What `{{ value }}` writes, an array item by item."""
    return appended_texts(map(_text_of_items, value)) if isinstance(value, (list, tuple)) else text_of(value)


# ---- finding origins again --------------------------------------------------------------------------------


def _of_members(value: Value, written: str) -> str:
    """An array or object written as text: it has the origin that all its texts share."""
    origins = {origin for text in _texts(value) for origin in set(origins_of(text))}
    return attributed(written, origins.pop() if len(origins) == 1 else NOBODY)


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
    inner = text.changed(_escaped) if isinstance(text, Attributed) else _escaped(text)
    return joined_texts("", (attributed('"', origins[0]), inner, attributed('"', origins[-1])))


def _escaped(text: str) -> str:
    return encode_basestring(text)[1:-1]


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
