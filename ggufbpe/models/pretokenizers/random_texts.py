"""Makes random texts that reach the branches of a pre-tokenizer, determined by a seed.

Texts are mostly short, since errors show within a few characters. They are made in several ways: words that match the
alternatives of the model's own patterns, combinations of what patterns look for, code points by block and around the
borders of classes, runs, special tokens, tokens of the vocabulary, and bytes.

There is no natural language among them; use files for that.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from ..._util.unicode_classes import STARTS
from .pattern import Ahead, CharSet, Choice, Node, Repeat, options
from .pattern import Chars as CharsNode
from .pattern import Sequence as SequenceNode

ATOMS = [
    *("a", "b", "z", "A", "Z", "ab", "AB", "Ab", "aB", "the", "The"),
    *(" the", " a", " A", " 1", " .", "é", "É"),
    *("ß", "ǅ", "ʰ", "0", "1", "12", "123", "1234", "999999", "٣", "²", "½", "Ⅳ", " ", " ", " ", "  ", "   "),
    *("    ", "\n", "\n", "\n\n", "\r\n", "\r", "\t", " \n", "\n ", "\v", "\f", "\x1c", "\x85", "\xa0"),
    *("\u2003", "\u2028", "\u3000", "\u200b", "\ufeff", "\0", "\x7f", ".", ",", "!", "?", "...", "'", '"'),
    *("(", ")", "/", "//", "/\n", "-", "_", "|", "<", ">", "<|", "|>"),
    *("$", "+", "=", "^", "~", "`", "€", "©"),
    *("'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'T", "'RE", "'VE", "'M", "'LL", "'D", "’s", "s"),
    *("中", "中文", "の", "カ", "ー", "한", "ㄱ", "ก", "ໄ", "ក", "က", "ש", "ب", "ह", "\u0301", "\u0301"),
    *("\u093e", "\u20dd", "\u200d", "\ufe0f", "🙂", "👍🏽", "👨\u200d👩\u200d👧", "🇩🇪", "𝟘", "\ue000"),
    *("\u0378", "\ufffd", "\U0010ffff", "“", "”", "—", "…", "、", "。", "<sentinel:", "12>", "IMGIMG", "ABZ"),
    *("<dna>", "</dna>", "ACGTAC", "<|endoftext|>", "</s>", "▁", "Ġ", "ll"),
]
BLOCKS = [
    *((0x20, 0x7F), (0xA0, 0x250), (0x250, 0x370), (0x370, 0x530), (0x530, 0x700), (0x700, 0x900)),
    *((0x900, 0xE00), (0xE00, 0x10A0), (0x10A0, 0x1200), (0x1200, 0x1700), (0x1700, 0x1C00)),
    *((0x1C00, 0x2000), (0x2000, 0x2070), (0x2070, 0x2C00), (0x2C00, 0x3000), (0x3000, 0x3100)),
    *((0x3100, 0x3400), (0x3400, 0xA000), (0xA000, 0xAC00), (0xAC00, 0xD800), (0xE000, 0xFB00)),
    *((0xFB00, 0x10000), (0x10000, 0x11000), (0x11000, 0x1F000), (0x1F000, 0x20000), (0x20000, 0x32000)),
    (0xE0000, 0xE0200),
]
_LENGTHS = (1, 2, 3, 4, 5, 6, 8, 10, 14, 20, 30, 60)
_RUNS = (2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33, 65, 129)

# Four bytes that decode to more than U+10FFFF: llama.cpp before b11739 crashes on them.
_BEYOND_UNICODE = re.compile(rb"(?:\xf4[\x90-\xbf]|[\xf5-\xf7][\x80-\xbf])[\x80-\xbf]{2}")


class RandomTexts:
    """A source of texts; the same arguments give the same texts.

    `special` are texts of special tokens, `pieces` those of other tokens, `patterns` trees as pattern.py parses them.
    All may be empty.

    >>> RandomTexts("1").text() == RandomTexts("1").text()
    True
    """

    def __init__(
        self,
        seed: str,
        *,
        special: Sequence[str] = (),
        pieces: Sequence[bytes] = (),
        patterns: Sequence[Node] = (),
    ) -> None:
        self._dice = random.Random(seed)
        self._atoms_known = ATOMS
        self._special = [text for text in special if text]
        self._pieces = pieces
        self._patterns = patterns
        self._members: dict[CharSet, list[str]] = {}
        ways: list[tuple[Callable[[], bytes], int, bool]] = [
            (self._atoms, 5, True),
            (self._code_points, 3, True),
            (self._random_bytes, 1, True),
            (self._run, 1, True),
            (self._around_special, 2, bool(self._special)),
            (self._matches, 5, bool(self._patterns)),
            (self._tokens, 3, bool(self._pieces)),
        ]
        self._ways = [way for way, _, possible in ways if possible]
        self._weights = [weight for _, weight, possible in ways if possible]

    def text(self) -> bytes:
        """One text, without bytes on which older builds of llama.cpp crash."""
        [way] = self._dice.choices(self._ways, self._weights)
        return within_unicode(way())

    def long_text(self) -> bytes:
        """One text of some thousand characters: a run of a few atoms, or many texts in a row."""
        dice = self._dice
        if dice.random() < 0.5:
            return b"".join(self.text() for _ in range(100))
        unit = "".join(dice.choices(self._atoms_known, k=dice.choice((1, 1, 2, 3))))
        return _utf8(self._atom() + unit * dice.randrange(500, 2000) + self._atom())

    # ---- the ways -------------------------------------------------------------------------------

    def _length(self) -> int:
        return self._dice.choice(_LENGTHS)

    def _atom(self) -> str:
        return self._dice.choice(self._atoms_known)

    def _atoms(self) -> bytes:
        palette = self._dice.choices(self._atoms_known, k=self._dice.choice((2, 3, 5, 12, 40)))
        return _utf8("".join(self._dice.choices(palette, k=self._length())))

    def _code_points(self) -> bytes:
        dice = self._dice
        border = dice.random() < 0.5
        block = dice.choice(BLOCKS)
        points = []
        for _ in range(self._length()):
            if dice.random() < 0.3:
                points.append(self._atom())
            elif border:
                points.append(chr(max(0, dice.choice(STARTS[:-1]) - dice.randrange(2))))
            elif dice.random() < 0.9:
                points.append(chr(dice.randrange(*block)))
            else:
                points.append(chr(dice.randrange(0x110000)))
        return _utf8("".join(points))

    def _random_bytes(self) -> bytes:
        """Bytes, mostly not UTF-8; also truncated characters."""
        dice = self._dice
        if dice.random() < 0.5:
            return bytes(dice.choices(range(256), k=self._length()))
        text = bytearray(self._atoms())
        for _ in range(dice.randrange(1, 4)):
            at = dice.randrange(len(text) + 1)
            text[at : at + dice.randrange(2)] = bytes([dice.randrange(256)]) * dice.randrange(2)
        return bytes(text)

    def _run(self) -> bytes:
        return _utf8(self._atom() + self._atom() * self._dice.choice(_RUNS) + self._atom())

    def _around_special(self) -> bytes:
        dice = self._dice
        made = [
            dice.choice(self._special) if dice.random() < 0.5 else self._atom() for _ in range(self._length())
        ]
        return _utf8("".join(made))

    def _tokens(self) -> bytes:
        """Tokens in a row, which may be merged in other ways."""
        return b"".join(self._dice.choices(self._pieces, k=self._length()))

    def _matches(self) -> bytes:
        """Words that match alternatives of a pattern, in a row; all alternatives are equally likely."""
        alternatives = options(self._dice.choice(self._patterns))
        return _utf8("".join(self._match(self._dice.choice(alternatives)) for _ in range(self._length())))

    def _match(self, node: Node) -> str:
        """A text that `node` matches, or nearly: lookaheads are not checked."""
        dice = self._dice
        if isinstance(node, CharsNode):
            return self._member(node.set)
        if isinstance(node, SequenceNode):
            return "".join(map(self._match, node.items))
        if isinstance(node, Choice):
            return self._match(dice.choice(node.options))
        if isinstance(node, Repeat):
            most = node.least + dice.choice((0, 1, 1, 2, 3, 9))
            times = most if node.most is None else min(most, node.most)
            return "".join(self._match(node.item) for _ in range(times))
        assert isinstance(node, Ahead)
        return "" if node.negated or dice.random() < 0.5 else self._match(node.item)

    def _member(self, chars: CharSet) -> str:
        if chars not in self._members:
            # Code points at the borders of classes, of all scripts.
            points = {
                *range(128),
                *(max(0, s - d) for s in self._dice.sample(STARTS[:-1], 200) for d in (0, 1)),
            }
            points |= {ord(char) for atom in ATOMS for char in atom}
            points |= {low for term in chars.terms for low, _ in term.ranges}
            self._members[chars] = [chr(point) for point in sorted(points) if chars.contains(point)] or ["a"]
        members = self._members[chars]
        return self._dice.choice(members if self._dice.random() < 0.3 else members[:60])


def within_unicode(data: bytes) -> bytes:
    """`data` with U+10FFFF for each form of a code point above it."""
    return _BEYOND_UNICODE.sub(b"\xf4\x8f\xbf\xbf", data)


def _utf8(text: str) -> bytes:
    """UTF-8, with surrogates encoded as three bytes each."""
    return text.encode("utf-8", "surrogatepass")
