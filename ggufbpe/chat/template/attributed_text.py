r"""A string that tracks the origin of each character and its concatenation points.

An origin is a number, kept as a character: `origins` is as long as the text, and whatever cuts, joins or changes the
text does the same to it. In all other respects (equality, containment, its hash) it is that text, so
a template cannot tell the difference and writes what it always writes.

>>> (Attributed("ab", "\1\1") + "cd")[1:3].origins
'\x01\x00'

A text that was joined from several is made of parts, as in llama.cpp: `starts` marks the first character of each.
Changes of letters and `strip` keep the parts; whatever else makes a text makes one of a single part.

>>> (attributed("ab") + "cd").by_parts(str.title)
'AbCd'

A function that makes a plain `str` out of an attributed one loses its origins; `attributing_runtime` restores them
for those functions that templates call.

Source: common/jinja/string.h, whose parts are marked as input or not, for the same reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, SupportsIndex

NOBODY = "\0"  # the origin of the template's own text
START, INSIDE = "\1", "\0"  # the first character of a part, and any other
_RUN = re.compile(r"(.)\1*", re.DOTALL)
_PART = re.compile(f".{INSIDE}*", re.DOTALL)


class Attributed(str):
    """A text with its origins, one character for each of its own, and the starts of its parts, "" for a single one."""

    __slots__ = ("origins", "starts")
    origins: str
    starts: str

    def __new__(cls, text: str, origins: str, starts: str = "") -> Attributed:
        made = str.__new__(cls, text)
        made.origins = origins
        made.starts = starts
        return made

    def __str__(self) -> str:
        return self

    def __add__(self, other: str) -> Attributed:
        return appended_texts((self, other)) if isinstance(other, str) else NotImplemented

    def __radd__(self, other: str) -> Attributed:
        return appended_texts((other, self)) if isinstance(other, str) else NotImplemented

    def __mul__(self, count: SupportsIndex) -> Attributed:
        return Attributed(str.__mul__(self, count), self.origins * count, starts_of(self) * count)

    __rmul__ = __mul__

    def __getitem__(self, key: SupportsIndex | slice) -> Attributed:
        return Attributed(str.__getitem__(self, key), self.origins[key])

    def runs(self) -> Iterator[tuple[str, str]]:
        """The stretches of a single origin, each with its origin."""
        for run in _RUN.finditer(self.origins):
            yield str.__getitem__(self, slice(*run.span())), run[1]

    def changed(self, change: Callable[[str], str]) -> Attributed:
        """The text with each stretch of a single origin changed separately."""
        return joined_texts("", (attributed(change(text), origin) for text, origin in self.runs()))

    def by_parts(self, change: Callable[[str], str]) -> Attributed:
        """The text with each of its parts changed separately, none of them in length."""
        parts = _PART.finditer(starts_of(self))
        changed = [change(str.__getitem__(self, slice(*part.span()))) for part in parts]
        return Attributed("".join(changed), self.origins, self.starts)

    def lstrip(self, characters: str | None = None) -> Attributed:
        return self._kept(slice(len(self) - len(str.lstrip(self, characters)), None))

    def rstrip(self, characters: str | None = None) -> Attributed:
        return self._kept(slice(len(str.rstrip(self, characters))))

    def _kept(self, key: slice) -> Attributed:
        """A slice that keeps the parts."""
        return Attributed(str.__getitem__(self, key), self.origins[key], self.starts[key])

    def strip(self, characters: str | None = None) -> Attributed:
        return self.lstrip(characters).rstrip(characters)

    def removeprefix(self, prefix: str) -> Attributed:
        return self[len(prefix) :] if self.startswith(prefix) else self

    def removesuffix(self, suffix: str) -> Attributed:
        return self[: len(self) - len(suffix)] if self.endswith(suffix) else self

    def partition(self, separator: str) -> tuple[str, str, str]:
        return self._parted(str.partition(self, separator))

    def rpartition(self, separator: str) -> tuple[str, str, str]:
        return self._parted(str.rpartition(self, separator))

    def _parted(self, parts: tuple[str, str, str]) -> tuple[str, str, str]:
        before, behind = len(parts[0]), len(self) - len(parts[2])
        return self[:before], self[before:behind], self[behind:]

    def split(self, separator: str | None = None, most: SupportsIndex = -1) -> list[str]:
        """The parts between separators; a separator is required."""
        assert separator is not None
        parts, at = list[str](), 0
        for part in str.split(self, separator, most):
            parts.append(self[at : at + len(part)])
            at += len(part) + len(separator)
        return parts

    def replace(self, old: str, new: str, count: SupportsIndex = -1) -> Attributed:
        assert count == -1
        between = self.split(old) if old else ["", *(self[at] for at in range(len(self))), ""]
        return joined_texts(new, between)

    def translate(self, table: Any) -> Attributed:
        out = str.translate(self, table)
        if len(out) == len(self):
            return Attributed(out, self.origins, self.starts)
        return self.changed(lambda text: text.translate(table))


class AttributedInt(int):
    """A number from a request: its text has its origin; what is computed from it has none."""

    origin: str = NOBODY

    def __str__(self) -> Attributed:
        return attributed(int.__repr__(self), self.origin)


def origins_of(text: str) -> str:
    """The origin of each character."""
    return text.origins if isinstance(text, Attributed) else NOBODY * len(text)


def starts_of(text: str) -> str:
    """For each character whether a part starts there."""
    starts = text.starts if isinstance(text, Attributed) else ""
    return starts or (START + INSIDE * (len(text) - 1) if text else "")


def attributed(text: str, origin: str = NOBODY) -> Attributed:
    """A text with a single origin."""
    return Attributed(text, origin * len(text))


def appended_texts(texts: Iterable[str]) -> Attributed:
    """Texts put together, which stay parts of the whole."""
    texts = list(texts)
    starts = "".join(map(starts_of, texts))
    return Attributed(str.join("", texts), "".join(map(origins_of, texts)), starts)


def joined_texts(between: str, parts: Iterable[str]) -> Attributed:
    """`between.join(parts)`, a single part."""
    parts = list(parts)
    return Attributed(str.join(between, parts), origins_of(between).join(map(origins_of, parts)))


def with_one_origin(value: Any, origin: str) -> Any:
    """A JSON value whose texts and ints all have one origin."""
    if isinstance(value, str):
        return attributed(value, origin)
    if isinstance(value, dict):
        return {
            with_one_origin(key, origin): with_one_origin(member, origin) for key, member in value.items()
        }
    if type(value) is int and -(1 << 63) <= value < 1 << 63:
        number = AttributedInt(value)
        number.origin = origin
        return number
    return [with_one_origin(member, origin) for member in value] if isinstance(value, list) else value


def with_origin_of(text: str, value: Any) -> Any:
    """A value that was parsed from a text, with the text's origin."""
    return with_one_origin(value, text.origins[:1] or NOBODY) if isinstance(text, Attributed) else value
