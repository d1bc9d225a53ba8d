r"""Writes sets of code points as ranges, and patterns with them: regular expressions that need no Unicode tables.

What `\p{L}` matches depends on the engine's Unicode version; what `\s` matches, on llama.cpp's way of matching. So
every set is written out, code point by code point: `[\x{41}-\x{5a}\x{61}-\x{7a}...]`. Oniguruma and Rust's regex
crates read that the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from itertools import pairwise

from .._util.unicode_classes import STARTS
from ..models.pretokenizers.pattern import Ahead, Chars, CharSet, Choice, Node, Repeat, Sequence

Ranges = tuple[tuple[int, int], ...]
"""Code points in ascending ranges that do not touch, both ends included; no surrogates."""

ALL: Ranges = ((0, 0xD7FF), (0xE000, 0x10FFFF))


@cache
def ranges(chars: CharSet) -> Ranges:
    """The code points of a set, as llama.cpp matches it.

    >>> from ggufbpe.models.pretokenizers.pattern import parse
    >>> ranges(parse(r"[\\r\\n]").set)
    ((10, 10), (13, 13))
    """
    borders = {0x80, *(p for term in chars.terms for low, high in term.ranges for p in (low, high + 1))}
    return ranges_where(chars.contains, borders)


def ranges_where(belongs: Callable[[int], bool], borders: Iterable[int]) -> Ranges:
    """The code points of a set whose membership changes only at `borders` and at the borders of classes."""
    starts = sorted({*STARTS, *borders, 0x110000})  # between two of them, all are in the set or none is
    pieces = ((low, high - 1) for low, high in pairwise(starts) if belongs(low))
    return intersection(_joined(pieces), ALL)


def intersection(a: Ranges, b: Ranges) -> Ranges:
    """The code points in both.

    >>> intersection(((1, 5), (9, 9)), ((3, 10),))
    ((3, 5), (9, 9))
    """
    common = []
    i = j = 0
    while i < len(a) and j < len(b):
        low, high = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if low <= high:
            common.append((low, high))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return tuple(common)


def difference(a: Ranges, b: Ranges) -> Ranges:
    """The code points of `a` that are not in `b`.

    >>> difference(((1, 5),), ((3, 3),))
    ((1, 2), (4, 5))
    """
    starts = [0, *(high + 1 for _, high in b)]
    ends = [*(low - 1 for low, _ in b), 0x10FFFF]
    return intersection(a, tuple((low, high) for low, high in zip(starts, ends) if low <= high))


def _joined(pieces: Iterable[tuple[int, int]]) -> Ranges:
    """Ascending pieces that may touch, joined into ranges that do not."""
    joined: list[tuple[int, int]] = []
    for low, high in pieces:
        if joined and joined[-1][1] == low - 1:
            joined[-1] = joined[-1][0], high
        else:
            joined.append((low, high))
    return tuple(joined)


def bracket(points: Ranges) -> str:
    r"""A bracket expression for these code points, in whichever of its two forms is shorter.

    >>> bracket(((0x41, 0x5a), (0xe9, 0xe9)))
    '[A-Z\\x{e9}]'
    """
    others = difference(ALL, points)
    if len(others) < len(points) and others:
        return f"[^{_members(others)}]"
    return f"[{_members(points)}]"


def _members(points: Ranges) -> str:
    # U+D7FF and U+E000 are neighbours: texts have no surrogates
    joined = _joined((low - 0x800 * (low > 0xDFFF), high - 0x800 * (high > 0xDFFF)) for low, high in points)
    ends = ((low + 0x800 * (low > 0xD7FF), high + 0x800 * (high > 0xD7FF)) for low, high in joined)
    return "".join(_char(a) if a == b else f"{_char(a)}-{_char(b)}" for a, b in ends)


def _char(point: int) -> str:
    char = chr(point)
    return char if char.isascii() and char.isalnum() else f"\\x{{{point:x}}}"


def emit(node: Node, universe: Ranges = ALL) -> str | None:
    r"""The regular expression of a pattern for a text that has only code points of `universe`.

    None if it cannot match there. Lookaheads are limited to the universe, too: any other code point counts as the end
    of the text.

    >>> from ggufbpe.models.pretokenizers.pattern import parse
    >>> emit(parse(r"a+|[a-c](?!b)"))
    '(?:a+|[a-c](?!b))'
    """
    if isinstance(node, Chars):
        points = intersection(ranges(node.set), universe)
        if not points:
            return None
        return _char(points[0][0]) if points == ((points[0][0],) * 2,) else bracket(points)
    if isinstance(node, Sequence):
        parts = [emit(item, universe) for item in node.items]
        return None if None in parts else "".join(part for part in parts if part)
    if isinstance(node, Choice):
        options = [text for option in node.options if (text := emit(option, universe)) is not None]
        return f"(?:{'|'.join(options)})" if options else None
    inner = emit(node.item, universe)
    if isinstance(node, Ahead):
        if inner is None:
            return "" if node.negated else None
        return f"(?{'!' if node.negated else '='}{inner})"
    if inner is None:
        return None if node.least else ""
    return (inner if isinstance(node.item, (Chars, Choice)) else f"(?:{inner})") + _count(node)


def _count(node: Repeat) -> str:
    known = {(0, 1): "?", (0, None): "*", (1, None): "+", (1, 1): ""}
    sign = known.get((node.least, node.most))
    if sign is not None:
        return sign
    if node.most == node.least:
        return f"{{{node.least}}}"
    return f"{{{node.least},{'' if node.most is None else node.most}}}"
