"""Groups tokens that every family of pre-tokenizers splits alike, so that each group is split once.

A vocabulary of 250,000 tokens has some 3,000 shapes: no pattern distinguishes most letters from each other, nor a run
of three letters from a longer one.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Container, Iterable
from functools import cache
from itertools import compress, repeat
from operator import contains, not_

from ..._util.unicode_classes import class_of
from ..bpe.merge import BYTE_CHARS, CHAR_BYTES
from .pattern import VERTICAL_TAB, char_sets, parse
from .registry import one_of_each

_Key = str | bytes


class TokenShapes:
    """The shapes of tokens: texts that each family cuts as it cuts the tokens. Tokens that reveal nothing have none.

    `counts` gives how many tokens have each shape.
    """

    def __init__(self, tokens: Iterable[str]) -> None:
        self._tokens = list(tokens)
        self._keys = _keys(self._tokens)
        self._shapes: dict[_Key, str] = {}  # by key
        self.counts: Counter[str] = Counter()
        for key, count in Counter(self._keys).items():
            if shape := _shape(key):
                self._shapes[key] = shape
                self.counts[shape] += count

    def first_tokens(self, wanted: Container[str]) -> dict[str, str]:
        """Return the first token, in the order of strings, of each of the `wanted` shapes."""
        keys = {key for key, shape in self._shapes.items() if shape in wanted}
        first: dict[str, str] = {}
        for key, token in compress(zip(self._keys, self._tokens), map(keys.__contains__, self._keys)):
            shape = self._shapes[key]
            if shape not in first or token < first[shape]:
                first[shape] = token
        return first


def token_texts(tokens: list[str]) -> list[str]:
    """Return the texts of tokens in GPT-2's alphabet, with a lone surrogate for each byte that is not UTF-8."""
    return list(map(_decoded, _utf8(tokens)))


def _keys(tokens: list[str]) -> list[_Key]:
    """Return for each token its text with one character for all those that no family distinguishes.

    The tokens become text and then keys all at once, joined: one by one, that takes five times as long. Letters and
    digits are only told apart in tokens with an apostrophe, whose keys are their texts.
    """
    alike = _joined_utf8(tokens).translate(_ascii_representatives()).split(_END)
    keys: list[_Key] = [*alike]
    others = list(compress(range(len(alike)), map(not_, map(bytes.isascii, alike))))
    joined = _decoded(_END.join([alike[index] for index in others])).translate(_representatives())
    for index, spelling in zip(others, joined.split(_decoded(_END))):
        keys[index] = spelling
    own = list(compress(range(len(keys)), map(contains, tokens, repeat("'"))))
    for index, text in zip(own, _utf8([tokens[index] for index in own])):
        keys[index] = text
    return keys


def _shape(key: _Key) -> str:
    """Return the text that all families cut as they cut the tokens with this key; "" if these reveal nothing."""
    shape = key if isinstance(key, str) else _decoded(key)
    if not isinstance(key, str) and not shape.isascii():
        shape = shape.translate(_representatives())
    return _MORE_OF_A_RUN.sub("", shape) if len(shape) > 1 and _UNUSABLE not in shape else ""


_END = b"\xff"  # between tokens; UTF-8 has neither FE nor FF
_TABLE_OF_BYTES = codecs.charmap_build(BYTE_CHARS[:0xFF] + "\n")
_UNKNOWN = 0xFE


def _utf8(tokens: list[str]) -> list[bytes]:
    """Return the bytes that tokens in GPT-2's alphabet stand for, with FE for characters that are not in it."""
    return _joined_utf8(tokens).split(_END) if tokens else []


def _joined_utf8(tokens: list[str]) -> bytes:
    """Return these bytes of all tokens, with FF between tokens."""
    joined = "\n".join(tokens)
    try:
        if joined.count("\n") == len(tokens) - 1:
            return codecs.charmap_encode(joined, "strict", _TABLE_OF_BYTES)[0]
    except UnicodeEncodeError:
        pass
    known = {char: byte for char, byte in CHAR_BYTES.items() if byte != _END[0]}
    return _END.join([bytes([known.get(char, _UNKNOWN) for char in token]) for token in tokens])


_UNUSABLE = "\udcfe"  # in place of bytes that are not UTF-8, and of marks


def _decoded(text: bytes) -> str:
    """Return UTF-8 as text, with a lone surrogate for each byte that is not UTF-8."""
    return text.decode("utf-8", "surrogateescape")


class _Representatives(dict[int, str]):
    """For each code point, one that no pattern of any family distinguishes from it; a table for `str.translate`."""

    def __init__(self) -> None:
        super().__init__()
        rules = [
            parse(stage.rule) for entry in one_of_each().values() for stage in entry.stages if stage.rule
        ]
        self._sets = tuple(dict.fromkeys(chars for rule in rules for chars in char_sets(rule)))
        ranges = {pair for chars in self._sets for term in chars.terms for pair in term.ranges}
        self._bounds = sorted({bound for first, last in ranges for bound in (first, last + 1)})
        self._first: dict[tuple[bool, ...], str] = {}
        self._by_place: dict[
            tuple[str, int], str
        ] = {}  # by class, and place between the bounds of all ranges
        self.update(dict.fromkeys(range(0xDC80, 0xDCFF), _UNUSABLE))  # as `_decoded` gives them
        self[ord(_decoded(_END))] = _decoded(_END)
        for point in (*b" aA0", *range(0x80)):  # so that the representatives of ASCII are ASCII
            self[point]

    def __missing__(self, code_point: int) -> str:
        letter = class_of(code_point)
        if letter == "M":
            self[code_point] = _UNUSABLE
            return _UNUSABLE
        seen_as = VERTICAL_TAB if letter == "W" and code_point > 0x7F else code_point
        place = letter, bisect_right(self._bounds, seen_as)
        if place not in self._by_place:
            signature = (
                letter == "L",
                *(chars.contains_in_class(code_point, letter) for chars in self._sets),
            )
            self._by_place[place] = self._first.setdefault(signature, chr(code_point))
        representative = self[code_point] = self._by_place[place]
        return representative


@cache
def _representatives() -> _Representatives:
    return _Representatives()


# Single ASCII letters matter only after an apostrophe, in contractions, and in chameleon's names of images.
_ALIKE = dict.fromkeys(b"bcdefghijklmnopqrstuvwxyz", "a")
_ALIKE |= dict.fromkeys(b"BCDEFGHIJKLMNOPQRSTUVWXYZ", "A") | dict.fromkeys(b"123456789", "0")


@cache
def _ascii_representatives() -> bytes:
    """Return a table for `bytes.translate` that leaves bytes beyond ASCII alone."""
    representatives = _representatives()
    ascii_ones = [representatives[ord(_ALIKE.get(point, chr(point)))] for point in range(0x80)]
    return "".join(ascii_ones).encode() + bytes(range(0x80, 0x100))


_MORE_OF_A_RUN = re.compile(r"([^\W\d_])(?=\1\1\1)")  # of one letter: three are as good as thirty
