r"""Compiles the registry's patterns for the package `regex`, for users, `list-pre`, and the tests as a second opinion.

The text is llama.cpp's, with its meaning spelled out where `regex` has another: `\p{Lu}` and the like are any letter,
`\s` is the White_Space property, `\d` is ASCII, and white space beyond ASCII is in no range. Nothing here uses
pattern.py or splitter.py. `regex` classifies characters by its own Unicode version; `Patterns.other_characters` are
those that it classifies differently.

Some of these patterns take quadratic time on long runs; splitter.py does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, overload

from ..._util.arguments import checked_str
from ..._util.errors import printable
from ..._util.extras import imported
from ..._util.lazy import cached_property
from ..._util.unicode_classes import CLASSES, STARTS
from .pattern import HAN
from .registry import PRE_TOKENIZERS, PreTokenizer, Stage

_PART = re.compile(
    r"\\p\{(?P<property>\w+)\}|\\(?P<escape>.)|(?P<bracket>\[\^?(?:\\.|[^\]\\])*\])|.", re.DOTALL
)
_LETTERS = ("Lu", "Ll", "Lt", "Lm", "Lo")
_WHITE_SPACE = r"\p{White_Space}"
_HAN = "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in HAN)
_CLASSES = {"L": r"\p{L}", "M": r"\p{M}", "N": r"\p{N}", "P": r"\p{P}", "S": r"\p{S}", "W": _WHITE_SPACE}
_RANGE = re.compile(r"(\\u[0-9a-f]{4}|\\U[0-9a-f]{8}|[^\\])-(\\u[0-9a-f]{4}|\\U[0-9a-f]{8}|[^\\\]])")


class Patterns(Sequence[Any]):
    """The compiled patterns of the pre-tokenizer `name`, `regex.Pattern` each, to be run in order.

    Each splits the pieces left by those before: its matches are pieces, the text between them stays one piece each, and
    an empty match cuts. `words` does that. A pre-tokenizer that escapes spaces wants a text in which they already are
    U+2581.
    """

    def __init__(self, entry: PreTokenizer) -> None:
        regex = _regex()
        self.name = entry.name
        self._compiled = tuple(
            regex.compile(_of_stage(stage), regex.V1)
            for stage in entry.stages
            if stage.step != "blocks_of_white_space"  # which only saves time
        )

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        return self._compiled[index]

    def __len__(self) -> int:
        return len(self._compiled)

    def __repr__(self) -> str:
        return f"<Patterns of {self.name}: {len(self)}>"

    def words(self, text: str) -> list[str]:
        """The words of `text`, in order; together they are the text."""
        pieces = [text] if text else []
        for pattern in self._compiled:
            pieces = [part for piece in pieces for part in _cut(pattern, piece)]
        return pieces

    @cached_property
    def other_characters(self) -> tuple[int, ...]:
        """The code points that `regex` puts into another class than llama.cpp, among the classes that are used.

        llama.cpp's are those of Unicode 15.1. A text without these characters has the same words. Ascending.
        """
        texts = "".join(pattern.pattern for pattern in self._compiled)
        asked = (letter for letter, text in _CLASSES.items() if text[2:] in texts)
        return tuple(sorted(set().union(*map(_misclassified, asked))))


def patterns(name: str) -> Patterns:
    """Return the patterns of the pre-tokenizer `name`, a value of `tokenizer.ggml.pre`, compiled by `regex`.

    >>> patterns("llama-bpe").words("I'll count 1234567 words")
    ['I', "'ll", ' count', ' ', '123', '456', '7', ' words']

    `ValueError` for a name that llama.cpp does not know, `NotInstalledError` where `regex` is not installed.
    """
    if checked_str("name", name) not in PRE_TOKENIZERS:
        raise ValueError(
            f"llama.cpp knows no pre-tokenizer {printable(name)}; `ggufbpe list-pre` shows all names"
        )
    return Patterns(PRE_TOKENIZERS[name])


def _regex() -> Any:
    return imported("regex", "regex", "running the patterns")


def _cut(pattern: Any, piece: str) -> Iterator[str]:
    end = 0
    for match in pattern.finditer(piece):
        for part in (piece[end : match.start()], match[0]):
            if part:
                yield part
        end = match.end()
    if end < len(piece):
        yield piece[end:]


def _members(letter: str) -> set[int]:
    """The code points of a class in llama.cpp, without surrogates."""
    bounds = zip(STARTS, (*STARTS[1:], 0x110000), CLASSES)
    points = {
        point for low, high, class_letter in bounds if class_letter == letter for point in range(low, high)
    }
    return points - set(range(0xD800, 0xE000))


@cache
def _misclassified(letter: str) -> frozenset[int]:
    """The code points that are in a class only in `regex` or only in llama.cpp."""
    every = "".join(map(chr, (*range(0xD800), *range(0xE000, 0x110000))))
    runs = _regex().findall(f"{_CLASSES[letter]}+", every)
    return frozenset({ord(char) for run in runs for char in run} ^ _members(letter))


def _of_stage(stage: Stage) -> str:
    if stage.step == "digit_groups":  # a cut after each group, counted from the end
        digit = _spelled_out(stage.rule.removesuffix("+"))
        return f"(?<={digit})(?=(?:{digit}{{3}})*(?!{digit}))"
    if stage.step == "trailing_white_space":
        return rf"(?<!{_WHITE_SPACE}){_WHITE_SPACE}+\Z"
    return _spelled_out(stage.rule if stage.step is None else stage.pattern)


def _spelled_out(text: str) -> str:
    r"""A pattern of llama.cpp in the syntax of `regex`.

    >>> _spelled_out(r"[^\s\p{Lu}]+|\d")
    '[^\\p{White_Space}\\p{L}]+|[0-9]'
    """
    return _PART.sub(lambda part: _part(part), text)


def _part(part: re.Match[str], in_bracket: bool = False) -> str:
    name, escape, bracket = part["property"], part["escape"], part["bracket"]
    if bracket and not in_bracket:
        inside = re.sub(r"\\p\{(?P<property>\w+)\}|\\(?P<escape>.)|(?P<bracket>(?!))", _inside, bracket)
        return f"{inside[:-1]}&&\\P{{White_Space}}]" if _has_white_space(bracket) else inside
    if name == "Han":
        return _HAN if in_bracket else f"[{_HAN}]"
    if name:
        return r"\p{L}" if name in _LETTERS else part[0]
    known = {"s": _WHITE_SPACE, "S": r"\P{White_Space}", "d": "0-9" if in_bracket else "[0-9]"}
    return known.get(escape or "", part[0])


def _inside(part: re.Match[str]) -> str:
    return _part(part, in_bracket=True)


def _has_white_space(bracket: str) -> bool:
    """Whether a range of a bracket expression has white space beyond ASCII, which llama.cpp never matches there."""
    bounds = [tuple(ord(_character(end)) for end in pair) for pair in _RANGE.findall(bracket)]
    has_any = any(low <= point <= high for low, high in bounds for point in _members("W") if point > 0x7F)
    assert not (has_any and bracket.startswith("[^"))
    return has_any


def _character(text: str) -> str:
    return chr(int(text[2:], 16)) if text.startswith("\\") else text
