r"""Infers from a vocabulary's tokens which family of pre-tokenizers it was trained with.

A merge never crosses a word boundary, so the tokens of a vocabulary show how its training text was cut.
Two kinds of evidence count. A token that a family would cut in two is proof against it: if "2019" is a token,
digits were not cut into threes. And a family that lets strings form that are common in every corpus (those of
`FEATURES`) is unlikely if none of them is a token. The evidence against a family is its cost.

Measured on the 14 BPE vocabularies of llama.cpp: the right family of each comes first or is tied for first, and
cuts at most 12 of its tokens.

Letters with combining marks do not count. Qwen 2's vocabulary has 1,700 tokens with such letters, which its own
pattern never lets form: it was trained with another one.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from itertools import islice
from math import log2
from typing import NamedTuple

from ..._util.spelling import SPACE
from ..._util.unicode_classes import class_of
from ..._util.wording import listed
from ...errors import printable
from ...native import native
from ..bpe.merge import BYTE_CHARS, CHAR_BYTES, texts_made_by
from .automaton_tables import compiled_splitter
from .pattern import VERTICAL_TAB, char_sets, parse
from .pretokenizer_evidence import FEATURES, has_feature, telltales
from .registry import PRE_TOKENIZERS, PreTokenizer
from .splitter import splitter

_ALLOWED = 0.5  # a family allows a feature if it keeps at least this share
_TIED = 1.0  # families whose costs differ by less are tied
_SHARE_CUT = 0.002  # share of tokens cut that raises doubt; the right pre-tokenizer cuts 0.0002 of real ones
_COST_MORE = 6.0  # than the likeliest family's, in terms of `Family.cost`


class Family(NamedTuple):
    """How well one family explains a vocabulary."""

    family: str
    cost: float  # 0 for one that explains everything
    kept: int  # tokens of several characters that it keeps whole
    of: int
    cut: tuple[str, ...]  # some of those that it would cut, as text
    missing: tuple[str, ...]  # features that it allows and the vocabulary lacks

    @property
    def names(self) -> list[str]:
        """The names in `tokenizer.ggml.pre` that split this way."""
        return [entry.name for entry in PRE_TOKENIZERS.values() if entry.family == self.family]

    @property
    def share(self) -> float:
        """The share of tokens that the family keeps whole."""
        return self.kept / self.of if self.of else 1.0


class Evidence(NamedTuple):
    """What the tokens of a vocabulary reveal about the name in its `tokenizer.ggml.pre`."""

    pre: str  # as in the file; "" if it has none
    known: frozenset[str]  # all tokens
    found: list[Family]  # the likeliest first
    best: list[Family]  # those that cannot be told from the likeliest, itself included
    name: str  # to be set; "" if nothing points to one, without merges

    @property
    def problem(self) -> str:
        """ "missing", "default", "unknown" or "doubtful"; "" if nothing speaks against the name."""
        if not self.pre or self.pre == "default":
            return self.pre or "missing"
        if self.pre not in PRE_TOKENIZERS:
            return "unknown"
        return "doubtful" if self.is_against else ""

    @property
    def own(self) -> Family | None:
        """The family in force; None if it cannot read this vocabulary."""
        entry = PRE_TOKENIZERS.get(self.pre or "default")
        return next((family for family in self.found if entry and family.family == entry.family), None)

    @property
    def is_against(self) -> bool:
        """Whether the tokens speak against the family in force."""
        own, first = self.own, self.best[0]
        if not self.name or own is None:
            return bool(self.name)
        if not self.pre or self.pre == "default":  # no one chose it, so little evidence is enough
            return own not in self.best
        return own.cost > first.cost + _COST_MORE and (own.share < 1 - _SHARE_CUT or self._is_cut)

    @property
    def _is_cut(self) -> bool:
        """Whether it cuts enough tokens that opening the file should warn (pretokenizer_evidence.py)."""
        return bool(telltales(PRE_TOKENIZERS[self.pre], self.known))

    @property
    def sentence(self) -> str:
        """Which family the tokens point to, and how sure that is."""
        if not self.name:
            return "There are no merges to tell from which one is right."
        first = next(family for family in self.best if self.name in family.names)
        text = f"The tokens point to {with_alike(self.name, first.names)}"
        text += f", which keeps {first.kept} of {first.of} tokens whole"
        if first.missing:
            text += f", though no token looks like {_like(first.missing)}, which it would keep whole"
        if len(self.best) > 1:
            equal = [each.family for each in self.best if each is not first]
            text += f". {', '.join(equal)} {'fits' if len(equal) == 1 else 'fit'} just as well"
        others = [family for family in self.found if family not in self.best]
        if others:
            less = others[0]
            reason = (
                f"cuts {less.of - less.kept} tokens"
                if less.kept < less.of - 9
                else f"would keep text such as {_like(less.missing)} whole, but no token looks like that"
            )
            text += f". The next best is {less.family}, which {reason}"
        return text + "."

    def place(self, family: str) -> int:
        """The rank of a family among all, 0 for the likeliest; those that cannot read the vocabulary come last."""
        names = [found.family for found in (*self.best, *self.found)]
        return names.index(family) if family in names else len(names)

    def of_name(self, name: str) -> str:
        """What speaks for a name against the one in force, in a few words."""
        family = next((family for family in self.found if name in family.names), None)
        if family is None or not self.name:
            return ""
        text = f"{name} keeps {family.kept} of {family.of} tokens whole"
        own = self.own
        if own is not None and own.kept < own.of:
            some = ", ".join(printable(token, 20) for token in own.cut[:3])
            text += f", {own.family} cuts {own.of - own.kept} of them ({some} …)"
        elif own is not None and own.missing:
            text += f", and no token looks like {_like(own.missing)}, which {own.family} would keep whole"
        return text


def _like(features: Sequence[str]) -> str:
    """Return an example of each of the first two features, quoted.

    >>> _like(["two digits", "three digits", "four digits"])
    "'10' and '100'"
    """
    return " and ".join(printable(FEATURES[feature][0]) for feature in features[:2])


def evidence(
    tokens: Iterable[str], merges: Sequence[str], pre: str, architecture: str, model: str = ""
) -> Evidence:
    """What the tokens reveal about the name `pre`, "" if the file has none. Takes seconds for a large vocabulary.

    Of the likeliest names the one to set is that of the architecture, else that with which the model's name begins,
    else the family's.
    """
    known = frozenset(tokens)
    made = known & texts_made_by(merges)
    judged = _families_of(made or known)
    best = tied(judged)
    names = [name for family in best for name in family.names]
    name = architecture if architecture in names else _beginning(model, names) or best[0].family
    return Evidence(pre, known, judged, best, name if made else "")


def _beginning(model: str, names: list[str]) -> str:
    """The longest of the names with which that of a model begins, but for case and hyphens; "" for none.

    >>> _beginning("Falcon3 7B Instruct", ["falcon-h1", "falcon3"])
    'falcon3'
    """
    matching = [name for name in names if _letters(model).startswith(_letters(name))]
    return max(matching, key=len, default="")


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))


def with_alike(name: str, names: Iterable[str]) -> str:
    """A name with the others that split alike.

    >>> with_alike("qwen2", ["grok-2", "qwen2"])
    'qwen2 (splits the same as grok-2)'
    """
    others = [other for other in names if other != name]
    said = listed(others, len(others), " and {} more", shown=str)
    return f"{name} (splits the same as {said})" if others else name


@lru_cache(maxsize=2)  # two files that are compared mostly have the same tokens
def _families_of(made: frozenset[str]) -> list[Family]:
    """Return `families(made)`, which is remembered for the vocabularies that were asked for last."""
    return families(made)


def families(made: Iterable[str]) -> list[Family]:
    """All families that can read this vocabulary, the likeliest first; of equals, the one with the most names.

    `made`: the tokens that merging made, or all if that is not known. Added tokens reveal nothing.
    """
    made = set(made)
    if not is_byte_level(made):
        family = "gemma4" if any(SPACE in token for token in made) else "whitespace"
        return [Family(family, 0.0, len(made), len(made), (), ())]
    absent = [feature for feature in FEATURES if not has_feature(made, feature)]
    shapes, examples = _shapes(made)
    judged = [_judged(entry, absent, shapes, examples) for entry in one_of_each().values()]
    return sorted(judged, key=lambda family: (family.cost, -len(family.names)))


def tied(ranked: list[Family]) -> list[Family]:
    """The families that nothing in the vocabulary distinguishes from the likeliest one, itself included.

    Those with the most names first: a model of a widely used one is more likely.
    """
    best = [family for family in ranked if family.cost < ranked[0].cost + _TIED]
    return sorted(best, key=lambda family: -len(family.names))


def is_byte_level(tokens: Iterable[str]) -> bool:
    """Whether most tokens are written in GPT-2's byte alphabet."""
    some = list(islice(tokens, 20000))
    raw = sum(SPACE in token or not CHAR_BYTES.keys() >= set(token) for token in some)
    return raw * 2 < len(some) or not some


def _judged(entry: PreTokenizer, absent: list[str], shapes: Counter[str], examples: dict[str, str]) -> Family:
    count = _word_counter(entry)
    cut = [shape for shape in shapes if count(shape) > 1]
    number, total = sum(map(shapes.__getitem__, cut)), shapes.total()
    missing = tuple(feature for feature in absent if allows_feature(entry, feature))
    shown = sorted(cut, key=lambda shape: -shapes[shape])[:5]
    cost = len(missing) + log2(1 + number)
    return Family(entry.family, cost, total - number, total, tuple(map(examples.__getitem__, shown)), missing)


def _word_counter(entry: PreTokenizer) -> Callable[[str], int]:
    """Return a function that counts the words of a text, by the compiled engine if there is one."""
    if native is None:
        words = splitter(entry).words
        return lambda text: len(words(text))
    count: Callable[[bytes], int] = compiled_splitter(entry).count_words
    return lambda text: count(text.encode())


def _shapes(made: Iterable[str]) -> tuple[Counter[str], dict[str, str]]:
    """Return how many tokens have each shape, and the text of the first token of each in the order of tokens.

    The tokens become text and then shapes all at once, joined: one by one, that takes five times as long. Letters and
    digits are only told apart in tokens with an apostrophe.
    """
    tokens = list(made)
    texts = _utf8(tokens)
    table = _ascii_representatives()
    alike = _END.join([b"" if b"'" in text else text for text in texts]).translate(table).split(_END)
    others = _END.join([text for text in alike if not text.isascii()])
    spellings = iter(_decoded(others).translate(_representatives()).split(_decoded(_END)))
    keys: list[str | bytes] = [
        (alone or text) if alone.isascii() else next(spellings) for alone, text in zip(alike, texts)
    ]
    first: dict[str | bytes, str] = {}
    for key, token in zip(keys, tokens):
        if key not in first or token < first[key]:
            first[key] = token
    counts = Counter(keys)
    shapes: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for key in sorted(first, key=first.__getitem__):
        shape = key if isinstance(key, str) else _decoded(key)
        if not isinstance(key, str) and not shape.isascii():
            shape = shape.translate(_representatives())
        if len(shape) > 1 and _UNUSABLE not in shape:
            shape = _MORE_OF_A_RUN.sub("", shape)
            shapes[shape] += counts[key]
            examples.setdefault(shape, _decoded(_utf8([first[key]])[0]))
    return shapes, examples


_END = b"\xff"  # between tokens; UTF-8 has neither FE nor FF
_TABLE_OF_BYTES = codecs.charmap_build(BYTE_CHARS[:0xFF] + "\n")
_UNKNOWN = 0xFE


def _utf8(tokens: list[str]) -> list[bytes]:
    """Return the bytes that tokens in GPT-2's alphabet stand for, with FE for characters that are not in it."""
    joined = "\n".join(tokens)
    try:
        if joined.count("\n") == len(tokens) - 1:
            return codecs.charmap_encode(joined, "strict", _TABLE_OF_BYTES)[0].split(_END)
    except UnicodeEncodeError:
        pass
    known = {char: byte for char, byte in CHAR_BYTES.items() if byte != _END[0]}
    return [bytes([known.get(char, _UNKNOWN) for char in token]) for token in tokens]


_UNUSABLE = "\udcfe"  # in place of bytes that are not UTF-8, and of marks


def _decoded(text: bytes) -> str:
    """Return UTF-8 as text, with a lone surrogate for each byte that is not UTF-8."""
    return text.decode("utf-8", "surrogateescape")


@cache
def one_of_each() -> dict[str, PreTokenizer]:
    """A byte-level entry of each family, by family."""
    entries: dict[str, PreTokenizer] = {}
    for entry in PRE_TOKENIZERS.values():
        if entry.byte_encode:
            entries.setdefault(entry.family, entry)
    return entries


@cache
def allows_feature(entry: PreTokenizer, feature: str) -> bool:
    """Whether the family keeps the strings of a feature whole."""
    count = _word_counter(entry)
    strings = FEATURES[feature]
    return sum(count(text) == 1 for text in strings) >= _ALLOWED * len(strings)


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
        ] = {}  # by class, and by place between the bounds of all ranges
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
