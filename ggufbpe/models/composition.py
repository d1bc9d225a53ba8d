"""Canonical composition (Unicode's NFC), which unigram models apply to a text first if the file says so.

A character that is not in `COMPOSING` never changes, and never combines with what is before it. So a text is composed
in parts, each a character of that kind and those up to the next one.

Decompositions and the pairs that compose are those of the running Python, which never change for code points that
Unicode 15.1 has (its stability policy). Combining classes come from our table: older Pythons lack the newest marks.

Source: src/unicode.cpp, unicode_cpts_normalize_nfc, which is NFC of Unicode 15.1.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise

from .._util import utf8
from .._util.unicode_classes import class_of
from .._util.unicode_composition import COMPOSING


def compose(text: str) -> str:
    """Return `text` in NFC.

    >>> compose("Cafe\\u0301") == "Caf\\xe9"
    True
    """
    return _part().sub(lambda part: _composed(part[0]), text)


def composed_bytes(data: bytes, strict: bool) -> tuple[bytes, utf8.Offsets]:
    """Return the NFC of bytes as `utf8.decode` reads them, and what leads from its bytes back to those of `data`."""
    text, ends = utf8.decode(data, strict), [0, *utf8.char_ends(data, strict)]
    made, own, bounds = bytearray(), [0], [0]
    for start, end in pairwise(_cuts(text)):
        made += compose(text[start:end]).encode("utf-8", "surrogatepass")
        own.append(len(made))
        bounds.append(ends[end])
    return bytes(made), utf8.Offsets.of_parts(own, bounds)


def _cuts(text: str) -> Iterator[int]:
    """Where the parts of a text begin that are composed independently, and its end."""
    done = 0
    for part in _part().finditer(text):
        yield from range(done, part.start())
        yield part.start()
        done = part.end()
    yield from range(done, len(text) + 1)


@cache
def _part() -> re.Pattern[str]:
    """Matches a part that may change."""
    ranges = "".join(f"{chr(first)}-{chr(last)}" for first, last, _ in COMPOSING)
    return re.compile(f"[^{ranges}]?[{ranges}]+", re.DOTALL)


def _composed(part: str) -> str:
    """The NFC of a part."""
    points = _in_order([each for char in part for each in _decomposed(ord(char))])
    composed: list[int] = []
    # the place of the last character of class 0, and the class of the last one kept after it
    starter, last_class = (-1, 0)
    for point in points:
        this_class = _combining_class(point)
        if starter >= 0 and (last_class < this_class or starter == len(composed) - 1):
            pair = _pair(composed[starter], point)
            if pair is not None:
                composed[starter] = pair
                continue
        if this_class == 0:
            starter = len(composed)
        last_class = this_class
        composed.append(point)
    return "".join(map(chr, composed))


def _in_order(points: list[int]) -> list[int]:
    """Marks between two characters of class 0 in the order of their classes."""
    ordered: list[int] = []
    marks: list[int] = []
    for point in points:
        if _combining_class(point):
            marks.append(point)
            continue
        ordered += sorted(marks, key=_combining_class)
        ordered.append(point)
        marks = []
    return ordered + sorted(marks, key=_combining_class)


@cache
def _decomposed(point: int) -> Sequence[int]:
    """The full canonical decomposition."""
    return (point,) if class_of(point) == "-" else [*map(ord, unicodedata.normalize("NFD", chr(point)))]


@cache
def _pair(first: int, second: int) -> int | None:
    """What two code points compose to; None if they do not."""
    joined = unicodedata.normalize("NFC", chr(first) + chr(second))
    return ord(joined) if len(joined) == 1 and class_of(ord(joined)) != "-" else None


@cache
def _classes() -> dict[int, int]:
    return {point: kind for first, last, kind in COMPOSING if kind for point in range(first, last + 1)}


def _combining_class(point: int) -> int:
    return _classes().get(point, 0)
