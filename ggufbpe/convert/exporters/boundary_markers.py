r"""Writes a pre-tokenizer as normalizers that mark word ends, for a library that cannot split by regular expressions.

tokenizers 1.0 runs a caller's regular expressions only in normalizers, which replace each match with a constant. So
each stage is a normalizer that replaces the empty string after each word, `\K`, with a boundary marker: a
noncharacter, which texts should not contain. Then the text is split at the markers. A later stage takes a marker for
the end of the text.

After an empty match, Oniguruma (0.x) continues where the match ended, and fancy-regex (1.0) one character later. So
each word is written twice: as it is, after `\G`, and with its first character in a lookbehind, `(?<=a)`.

fancy-regex gives up on a word that needs a million backtracking steps. The rest of the text is then one word.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..._util.spelling import SPACE
from ...models.pretokenizers.pattern import (
    Chars,
    Choice,
    Node,
    Repeat,
    Sequence,
    always_matches,
    char_sets,
    options,
    parse,
)
from ...models.pretokenizers.registry import PreTokenizer, Stage
from ..code_points import ALL, Ranges, bracket, difference, emit, intersection, ranges
from ..portable_patterns import stage_pattern
from ..upstream_patterns import split
from .hf_parts import replace

BORDER = "\ufdef"
_BORDER = r"\x{fdef}"
_POINTS = ((ord(BORDER), ord(BORDER)),)
_UNIVERSE = difference(ALL, _POINTS)
_NOT_IN_ONIGURUMA = "(?:(?!)(?-i)|"  # there an option extends past |, so no branch of the group can match


def borders(entry: PreTokenizer) -> list[str]:
    """A regular expression for each stage: its matches are empty and stand where borders go."""
    return [_stage(stage) for stage in entry.stages if stage.step != "blocks_of_white_space"]


def _stage(stage: Stage) -> str:
    if stage.step is None or stage.step == "letters_joined_by_spaces":
        return _after_words(parse(stage_pattern(stage)))
    run = parse(stage.rule)
    members = bracket(intersection(ranges(next(char_sets(run))), _UNIVERSE))
    if stage.step == "digit_groups":
        return f"(?<={members})(?=(?:{members}{{3}})*(?!{members}))"
    inside = f"(?<=[^{_BORDER}])"
    if stage.step == "thousands":
        return f"{inside}(?=(?:{members}{{3}})+(?!{members}))"
    assert stage.step == "trailing_white_space", stage.step
    return rf"{inside}(?<!{members})(?={members}+(?:{_BORDER}|\z))"


def _after_words(node: Node) -> str:
    """The end of each match, and of each stretch between matches."""
    whole = [text for option in options(node) if (text := emit(option, _UNIVERSE)) is not None]
    begun = []
    for first, rest in _openings(node):
        points = intersection(first, _UNIVERSE)
        text = emit(Sequence(rest), _UNIVERSE)
        if points and text is not None:
            begun.append(f"(?<={bracket(points)}){text}")
    left_over = "" if always_matches(node) else f"(?:(?!{'|'.join(whole)})[^{_BORDER}])"
    whole.append(f"{_BORDER}+")
    begun.append(f"(?<={_BORDER}){_BORDER}*")
    if left_over:
        whole.append(f"{left_over}+")
        begun.append(f"(?<=[^{_BORDER}]){left_over}*")
    return rf"(?:{_NOT_IN_ONIGURUMA}{'|'.join(begun)})|\G(?:{'|'.join(whole)}))\K"


def _openings(node: Node) -> Iterator[tuple[Ranges, tuple[Node, ...]]]:
    r"""The ways to match the first code point, in the order in which they are tried, and what must follow each.

    >>> from ggufbpe.models.pretokenizers.pattern import parse
    >>> [(points, emit(Sequence(rest))) for points, rest in _openings(parse("a?b+"))]
    [(((97, 97),), 'b+'), (((98, 98),), 'b*')]
    """
    for opening in _ways(node):
        assert opening is not None, "no pattern of a stage matches nothing"
        yield opening


def _ways(node: Node) -> Iterator[tuple[Ranges, tuple[Node, ...]] | None]:
    """The openings of a node (see `_openings`), with None for a way that consumes nothing."""
    if isinstance(node, Chars):
        yield ranges(node.set), ()
    elif isinstance(node, Choice):
        for option in node.options:
            yield from _ways(option)
    elif isinstance(node, Repeat):
        most = None if node.most is None else node.most - 1
        again = () if most == 0 else (Repeat(node.item, max(node.least - 1, 0), most),)
        yield from ((way[0], (*way[1], *again)) for way in _ways(node.item) if way is not None)
        if node.least == 0:
            yield None
    elif isinstance(node, Sequence):
        if not node.items:
            yield None
            return
        first, *others = node.items
        for way in _ways(first):
            if way is None:
                yield from _ways(Sequence(tuple(others)))
            else:
                yield way[0], (*way[1], *others)
    else:
        raise AssertionError("a stage that begins with a lookahead")


# ---- in a tokenizer.json --------------------------------------------------------------------------------

AT_BORDERS: dict[str, Any] = split(BORDER, "Removed", "String")
"""The pre-tokenizer that cuts at borders."""
WHITE_SPACE_SPLIT: dict[str, Any] = {"type": "WhitespaceSplit"}
"""The pre-tokenizer that drops white space and cuts there."""


def white_space() -> str:
    """The pattern that puts a border in the place of white space."""
    pattern = emit(parse(r"\s+"))
    assert pattern is not None
    return pattern


def border_steps(entry: PreTokenizer, *, drops_white_space: bool = False) -> list[dict[str, Any]]:
    """The normalizers that put borders after words, and everything else in splitting that changes the text."""
    dropped = [white_space()] * drops_white_space
    steps = [replace(pattern, BORDER, "Regex") for pattern in (*dropped, *borders(entry))]
    if entry.prepend_space:
        steps.append({"type": "Prepend", "prepend": BORDER})
        steps.append(replace(rf"{_BORDER}(?=[^\n{SPACE}{_BORDER}])", BORDER + SPACE, "Regex"))
    return steps
