r"""Which family of pre-tokenizers a vocabulary was trained with, told from its own tokens.

    tokens, merges -> [this file] -> doctor.py, variants.py

A merge never crosses the edge of a word, so the tokens of a vocabulary say how its training text was cut.
Two kinds of evidence count. A token that a family would cut in two is proof against it: with "2019" for a
token, digits were not cut into threes. And a family that lets strings form that are common in every corpus, as
`FEATURES` has them, is unlikely where not one of them is a token. What speaks against a family is its cost.

Measured on the 14 BPE vocabularies of llama.cpp: the family that belongs to each comes first or is tied for
it, and cuts at most 12 of its tokens.

But: letters with combining marks count for nothing. Qwen 2's vocabulary has 1,700 tokens with such, which its
own pattern never lets form: it was trained with another one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from math import log2
from typing import NamedTuple

from ..bpe import CHAR_BYTES, byte_level
from ..pattern import char_sets, parse
from ..registry import PRE_TOKENIZERS, PreTokenizer
from ..split import splitter
from ..unicode_classes import CLASSES, STARTS, class_of

_PRESENT = 0.2  # from this share of its strings on, a vocabulary has a feature; a small one has few of them
_ALLOWED = 0.5  # from this share on, a family allows it
_TIED = 1.0  # families whose costs differ by less are tied


_MARK = re.compile(
    "[" + "".join(f"{chr(a)}-{chr(b - 1)}" for a, b, c in zip(STARTS, STARTS[1:], CLASSES) if c == "M") + "]"
)


class Feature(NamedTuple):
    """Strings that would be tokens, and what they have in common."""

    name: str
    strings: tuple[str, ...]


FEATURES = tuple(
    Feature(name, tuple(strings))
    for name, strings in (
        ("two digits", [f"{number}" for number in range(10, 100)]),
        ("three digits", [f"{number}" for number in range(100, 1000, 7)]),
        ("four digits", [f"{year}" for year in range(1990, 2021)]),
        ("space and digits", [" 1", " 2", " 3", " 10", " 12", " 20", " 100"]),
        ("letters and digits", ["mp3", "h1", "x1", "v1", " a1", " i18"]),
        ("contractions", ["'s", "'t", "'re", "'ve", "'ll", "'m", "'d"]),
        ("contractions in capitals", ["'S", "'T", "'RE", "'LL"]),
        ("word with contraction", ["don't", " don't", "it's", " it's", " I'm", "n't"]),
        ("apostrophe and word", ["'on", "'in", "'id", "'al", "'em"]),
        ("apostrophe and word after a contraction's letter", ["'self", "'data", "'title", "'type", "'message"]),
        ("punctuation and word", ["(self", ".com", "(x", "_id", "/bin", ".get", "(data", "-on", ".py", '"name']),
        ("dash or quotation mark and word", ["—and", "“We", "“The", "—it", "…and"]),
        ("tab and word", ["\treturn", "\tif", "\tint", "\tthis"]),
        ("words joined by a space", [" of the", " in the", " to be", " and the", " on the"]),
        ("comma and word", [", and", ". The", ", the"]),
        ("capital inside a word", ["getElement", " JavaScript", " YouTube", " iPhone", " GitHub", " McC"]),
        ("punctuation and line break", [");\n", ";\n", ",\n", "{\n", ".\n", ":\n", ">\n", "}\n"]),
        ("punctuation and line breaks", [");\n\n", ".\n\n", "}\n\n", ":\n\n", ";\n\n"]),
        ("slash and line break", ["//\n", "/\n", "*/\n"]),
        ("space and punctuation", [" (", " '", " =", " -", " {", " ["]),
        ("several punctuation marks", ["();", "):", '",', "='", "');", "//", "...", "--"]),
        ("several line breaks", ["\n\n", "\n\n\n", "\n\n\n\n"]),
        ("line break and spaces", ["\n ", "\n  ", "\n    ", "\n        "]),
        ("line break, spaces, line break", ["\n \n", "\n  \n", "\n\n  "]),
        ("odd numbers of spaces", ["   ", "     ", "       ", "         "]),
        ("space and Han character", [" 的", " 中", " 中国", " 我"]),
        ("Chinese comma and word", ["，我", "。他", "，在", "的，"]),
    )
)  # fmt: skip


class Family(NamedTuple):
    """How well one family explains a vocabulary."""

    family: str
    cost: float  # 0 for one that explains everything
    kept: int  # tokens of several characters that it keeps whole
    of: int
    cut: tuple[str, ...]  # some of those that it would cut, as text
    missing: tuple[str, ...]  # features that it allows and the vocabulary does not have

    @property
    def names(self) -> list[str]:
        """The names in `tokenizer.ggml.pre` that split so."""
        return [entry.name for entry in PRE_TOKENIZERS.values() if entry.family == self.family]

    @property
    def share(self) -> float:
        """The share of tokens that the family keeps whole."""
        return self.kept / self.of if self.of else 1.0


def families(made: Iterable[str]) -> list[Family]:
    """All families that can read such a vocabulary, the likeliest first; of equals the one with most names.

    `made`: the tokens that merging made, or all where that is not known. Added tokens tell nothing.
    """
    made = set(made)
    if not is_byte_level(made):
        family = "gemma4" if any("▁" in token for token in made) else "whitespace"
        return [Family(family, 0.0, len(made), len(made), (), ())]
    absent = [feature for feature in FEATURES if not has_feature(made, feature)]
    shapes: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for text in _texts(made):
        shape = _shape(text)
        shapes[shape] += 1
        examples.setdefault(shape, text)
    found = [_judged(entry, absent, shapes, examples) for entry in one_of_each().values()]
    return sorted(found, key=lambda family: (family.cost, -len(family.names)))


def tied(found: list[Family]) -> list[Family]:
    """The families that nothing in the vocabulary tells from the likeliest one, itself included.

    Those of most names first: a model of a widely used one is the more likely.
    """
    best = [family for family in found if family.cost < found[0].cost + _TIED]
    return sorted(best, key=lambda family: -len(family.names))


def is_byte_level(tokens: Iterable[str]) -> bool:
    """Whether tokens are written in GPT-2's alphabet of bytes, as most of them show."""
    some = list(islice(tokens, 20000))
    raw = sum("▁" in token or not CHAR_BYTES.keys() >= set(token) for token in some)
    return raw * 2 < len(some) or not some


def _judged(
    entry: PreTokenizer, absent: list[Feature], shapes: Counter[str], examples: dict[str, str]
) -> Family:
    words = splitter(entry).words
    cut = [shape for shape in shapes if len(words(shape)) > 1]
    number, total = sum(map(shapes.__getitem__, cut)), shapes.total()
    missing = tuple(feature.name for feature in absent if allows_feature(entry, feature))
    shown = sorted(cut, key=lambda shape: -shapes[shape])[:5]
    cost = len(missing) + log2(1 + number)
    return Family(entry.family, cost, total - number, total, tuple(map(examples.__getitem__, shown)), missing)


def has_feature(made: set[str], feature: Feature) -> bool:
    """Whether enough of a feature's strings are among the tokens `made`."""
    found = sum(byte_level(text) in made for text in feature.strings)
    return found >= _PRESENT * len(feature.strings)


def _texts(made: Iterable[str]) -> Iterator[str]:
    """Tokens of several characters, as text, without those that end inside a character or have marks."""
    for token in sorted(made):
        try:
            text = bytes([CHAR_BYTES[char] for char in token]).decode()
        except (KeyError, UnicodeDecodeError):
            continue
        if len(text) > 1 and not _MARK.search(text):
            yield text


def parts(merge: str) -> tuple[str, str]:
    """The two sides of a merge, cut at its first space that does not begin it (src/llama-vocab.cpp, load)."""
    at = merge.find(" ", 1)
    return (merge[:at], merge[at + 1 :]) if at > 0 else ("", "")


@cache
def one_of_each() -> dict[str, PreTokenizer]:
    """A byte-level entry of each family, by family."""
    found: dict[str, PreTokenizer] = {}
    for entry in PRE_TOKENIZERS.values():
        if entry.byte_encode:
            found.setdefault(entry.family, entry)
    return found


@cache
def allows_feature(entry: PreTokenizer, feature: Feature) -> bool:
    """Whether the family keeps the strings of a feature whole."""
    words = splitter(entry).words
    return sum(len(words(text)) == 1 for text in feature.strings) >= _ALLOWED * len(feature.strings)


class _Representatives(dict[int, str]):
    """For each code point one that no pattern of any family tells from it; the table `str.translate` asks."""

    def __init__(self) -> None:
        super().__init__()
        rules = [
            parse(stage.rule) for entry in one_of_each().values() for stage in entry.stages if stage.rule
        ]
        self._sets = tuple(dict.fromkeys(chars for rule in rules for chars in char_sets(rule)))
        self._first: dict[tuple[bool, ...], str] = {}

    def __missing__(self, code_point: int) -> str:
        letter = class_of(code_point)
        signature = (letter == "L", *(chars.contains_in_class(code_point, letter) for chars in self._sets))
        found = self[code_point] = self._first.setdefault(signature, chr(code_point))
        return found


@cache
def _representatives() -> _Representatives:
    return _Representatives()


# Single ASCII letters matter after an apostrophe only, in contractions, and in chameleon's names of images.
_SAME = str.maketrans(
    "bcdefghijklmnopqrstuvwxyzBCDEFGHIJKLMNOPQRSTUVWXYZ123456789", "a" * 25 + "A" * 25 + "0" * 9
)
_MORE_OF_A_RUN = re.compile(r"([^\W\d_])(?=\1\1\1)")  # of one letter; three are as good as thirty


def _shape(text: str) -> str:
    """A text that every family splits as it splits this one, the same for many."""
    if "'" not in text:
        text = text.translate(_SAME)
    if not text.isascii():
        text = text.translate(_representatives())
    return _MORE_OF_A_RUN.sub("", text)
