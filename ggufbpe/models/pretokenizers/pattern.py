r"""Parses the registry's patterns into small trees over sets of code points.

llama.cpp writes its patterns in the ECMAScript syntax of the C++ standard regex. Classes do not mean there what they
mean elsewhere, so sets are resolved here, by llama.cpp's rules (src/unicode.cpp, unicode_regex_split):

- `\p{L}`, `\p{M}`, `\p{N}`, `\p{P}`, `\p{S}` are the classes of _util/unicode_classes.py. `\p{Lu}`, `\p{Ll}`,
  `\p{Lt}`, `\p{Lm}` and `\p{Lo}` all mean "any letter": the text is matched with one marker a class.
- White space from U+0080 up is replaced by U+000B before matching: it is in `\s` and in `[^a-z]`, and never
  in a range such as `[\u3000-\u3002]`.
- `\d` is ASCII.

`\p{Han}` is ours, for the ranges of unicode_cpt_is_han, which only a hand-written splitter uses.

Only what the registry's patterns use is supported; anything else is a `ValueError`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from ..._util.unicode_classes import class_of

CLASS_LETTERS = "LMNPSW-"
VERTICAL_TAB = 0x0B

HAN = (  # src/unicode.cpp: unicode_cpt_is_han
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2EBEF),
    (0x2F800, 0x2FA1F),
)

_PROPERTIES = {"L": "L", "M": "M", "N": "N", "P": "P", "S": "S"}
_PROPERTIES |= dict.fromkeys(("Lu", "Ll", "Lt", "Lm", "Lo"), "L")
_CONTROL_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


class _Term(NamedTuple):
    """Ranges and classes, or everything except them."""

    negated: bool
    ranges: tuple[tuple[int, int], ...]  # ascending, not touching, both ends included
    classes: frozenset[str]

    def contains(self, code_point: int, letter: str) -> bool:
        if letter in self.classes:
            return not self.negated
        index = bisect_right(self.ranges, (code_point, 0x110000)) - 1
        return (index >= 0 and code_point <= self.ranges[index][1]) != self.negated


class CharSet(NamedTuple):
    """A set of code points: those in every one of its terms."""

    terms: tuple[_Term, ...]

    def contains(self, code_point: int) -> bool:
        """Whether llama.cpp's matching counts `code_point` as a member."""
        return self.contains_in_class(code_point, class_of(code_point))

    def contains_in_class(self, code_point: int, letter: str) -> bool:
        """Whether llama.cpp's matching counts `code_point`, whose class is known to be `letter`, as a member."""
        if letter == "W" and code_point > 0x7F:
            code_point = VERTICAL_TAB
        if len(self.terms) == 1:  # as nearly all sets have
            return self.terms[0].contains(code_point, letter)
        return all(term.contains(code_point, letter) for term in self.terms)

    def and_also(self, other: CharSet) -> CharSet:
        """The code points in both."""
        return CharSet(self.terms + other.terms)

    def inverted(self) -> CharSet:
        """All other code points; only for a set of one term."""
        (term,) = self.terms
        return CharSet((_Term(not term.negated, term.ranges, term.classes),))


class Chars(NamedTuple):
    """One code point from a set."""

    set: CharSet


class Sequence(NamedTuple):
    """Items one after the other."""

    items: tuple[Node, ...]


class Choice(NamedTuple):
    """The first option that leads to a match."""

    options: tuple[Node, ...]


class Repeat(NamedTuple):
    """An item repeated as often as possible, from `least` to `most` times; `most` is None for no limit."""

    item: Node
    least: int
    most: int | None


class Ahead(NamedTuple):
    """What follows matches `item`, or does not; nothing is consumed."""

    item: Node
    negated: bool


Node = Chars | Sequence | Choice | Repeat | Ahead


@cache
def parse(text: str) -> Node:
    """The tree of a pattern. `ValueError` for syntax that the registry does not use."""
    parser = _Parser(text)
    tree = parser.choice()
    if parser.position != len(text):
        raise parser.error("unbalanced parenthesis")
    return tree


def char_sets(node: Node) -> Iterator[CharSet]:
    """Every set in the tree, in the order of the pattern; one may come twice."""
    if isinstance(node, Chars):
        yield node.set
    elif isinstance(node, Sequence):
        for item in node.items:
            yield from char_sets(item)
    elif isinstance(node, Choice):
        for option in node.options:
            yield from char_sets(option)
    else:
        yield from char_sets(node.item)


def always_matches(node: Node) -> bool:
    """Whether some alternative takes every code point, whatever follows it: then no text is left over.

    Sufficient, not necessary: an alternative counts if it is one obligatory set among optional ones.
    """
    covering = [obligatory for option in options(node) if (obligatory := _obligatory_set(option))]
    lows = {low for s in char_sets(node) for term in s.terms for low, _ in term.ranges if low > 0x7F}
    non_ascii = [(low, letter) for low in (0x110000, *lows) for letter in CLASS_LETTERS]
    points = [(code_point, class_of(code_point)) for code_point in range(128)] + non_ascii
    return all(any(s.contains_in_class(*point) for s in covering) for point in points)


def options(node: Node) -> tuple[Node, ...]:
    """The alternatives of a pattern, in order."""
    return node.options if isinstance(node, Choice) else (node,)


def option_texts(text: str) -> list[str]:
    r"""The alternatives of a pattern, as written.

    >>> option_texts(r"[|]|(?:a|b)+|\|")
    ['[|]', '(?:a|b)+', '\\|']
    """
    texts, depth, in_bracket = [""], 0, False
    for part in re.findall(r"\\.|.", text, re.DOTALL):
        if in_bracket:
            in_bracket = part != "]"
        else:
            in_bracket = part == "["
            depth += (part == "(") - (part == ")")
        if part == "|" and not depth and not in_bracket:
            texts.append("")
        else:
            texts[-1] += part
    return texts


def _obligatory_set(option: Node) -> CharSet | None:
    """The one set that a match of `option` needs, if that is all it needs."""
    needed: list[CharSet] = []
    for item in option.items if isinstance(option, Sequence) else (option,):
        if isinstance(item, Repeat) and item.least == 0:
            continue
        if isinstance(item, Repeat) and item.least == 1:
            item = item.item
        if not isinstance(item, Chars):
            return None
        needed.append(item.set)
    return needed[0] if len(needed) == 1 else None


class _Parser:
    """Recursive descent over one pattern; `position` is the next character."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def error(self, problem: str) -> ValueError:
        return ValueError(f"{problem} at {self.position} in pattern {self.text!r}")

    def peek(self, text: str) -> bool:
        return self.text.startswith(text, self.position)

    def take(self, text: str) -> bool:
        is_next = self.peek(text)
        self.position += len(text) * is_next
        return is_next

    def next(self) -> str:
        if self.position == len(self.text):
            raise self.error("unexpected end")
        self.position += 1
        return self.text[self.position - 1]

    def choice(self) -> Node:
        options = [self.sequence()]
        while self.take("|"):
            options.append(self.sequence())
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def sequence(self) -> Node:
        items: list[Node] = []
        while self.position < len(self.text) and not self.peek("|") and not self.peek(")"):
            item = self.quantified(self.item())
            ahead = items[-1] if items else None
            if isinstance(ahead, Ahead) and isinstance(ahead.item, Chars) and isinstance(item, Chars):
                # `(?=A)B` is one code point in both sets
                condition = ahead.item.set.inverted() if ahead.negated else ahead.item.set
                items[-1] = Chars(condition.and_also(item.set))
            else:
                items.append(item)
        return items[0] if len(items) == 1 else Sequence(tuple(items))

    def item(self) -> Node:
        if self.take("(?="):
            return Ahead(self.group_body(), negated=False)
        if self.take("(?!"):
            return Ahead(self.group_body(), negated=True)
        if self.take("(?:") or self.take("("):
            return self.group_body()
        if self.take("["):
            return Chars(self.bracket())
        char = self.next()
        if char == "\\":
            return Chars(self.escape())
        if char in "?*+{})]^$.":
            raise self.error(f"{char!r} is not supported")
        return Chars(_one(char))

    def group_body(self) -> Node:
        body = self.choice()
        if not self.take(")"):
            raise self.error("missing )")
        return body

    def quantified(self, item: Node) -> Node:
        if self.take("?"):
            return Repeat(item, 0, 1)
        if self.take("*"):
            return Repeat(item, 0, None)
        if self.take("+"):
            return Repeat(item, 1, None)
        if not self.take("{"):
            return item
        least, comma, most = self.text[self.position : self.text.index("}", self.position)].partition(",")
        self.position = self.text.index("}", self.position) + 1
        return Repeat(item, int(least), int(most) if comma else int(least))

    def escape(self) -> CharSet:
        """The set of the escape whose backslash has been taken."""
        char = self.next()
        if char == "p" and self.take("{"):
            end = self.text.index("}", self.position)
            name = self.text[self.position : end]
            self.position = end + 1
            if name == "Han":
                return CharSet((_Term(False, HAN, frozenset()),))
            if name not in _PROPERTIES:
                raise self.error(f"unknown property {name!r}")
            return _in_classes(_PROPERTIES[name])
        if char in "sS":
            white_space = _in_classes("W")
            return white_space if char == "s" else white_space.inverted()
        if char == "d":
            return CharSet((_Term(False, ((0x30, 0x39),), frozenset()),))
        if char in "uU":
            digits = 4 if char == "u" else 8
            self.position += digits
            return _one(chr(int(self.text[self.position - digits : self.position], 16)))
        if char.isalnum():
            if char not in _CONTROL_ESCAPES:
                raise self.error("unknown escape")
            char = _CONTROL_ESCAPES[char]
        return _one(char)

    def bracket(self) -> CharSet:
        """The set of the bracket expression whose `[` has been taken."""
        negated = self.take("^")
        ranges: list[tuple[int, int]] = []
        classes: set[str] = set()
        while not self.take("]"):
            member = self.member()
            (term,) = member.terms
            if term.negated:
                raise self.error("a negated class in a bracket is not supported")
            classes |= term.classes
            if self.peek("-") and not self.peek("-]") and len(term.ranges) == 1:
                self.next()
                ((_, high),) = self.member().terms[0].ranges
                ranges.append((term.ranges[0][0], high))
            else:
                ranges.extend(term.ranges)
        return CharSet((_Term(negated, _merged(ranges), frozenset(classes)),))

    def member(self) -> CharSet:
        return self.escape() if self.take("\\") else _one(self.next())


def _one(char: str) -> CharSet:
    return CharSet((_Term(False, ((ord(char), ord(char)),), frozenset()),))


def _in_classes(letters: str) -> CharSet:
    return CharSet((_Term(False, (), frozenset(letters)),))


def _merged(ranges: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Code points as ascending ranges that do not touch.

    >>> _merged([(5, 9), (1, 5)])
    ((1, 9),)
    """
    result: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if result and low <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(high, result[-1][1]))
        else:
            result.append((low, high))
    return tuple(result)
