r"""Infers from a vocabulary's tokens which family of pre-tokenizers it was trained with.

A merge never crosses a word boundary, so the tokens of a vocabulary show how its training text was cut.
Two kinds of evidence count. A token that a family would cut in two is proof against it: if "2019" is a token,
digits were not cut into threes. And a family that lets strings form that are common in every corpus (those of
`FEATURES`) is unlikely if none of them is a token. The evidence against a family is its cost.

Measured on the 14 BPE vocabularies of llama.cpp: the right family of each comes first or is tied for first, and
cuts at most 12 of its tokens.

Letters with combining marks do not count. Qwen 2's vocabulary has 1,700 tokens with such letters, which its own
pattern never lets form: it was trained with another one. Nor do tokens with letters beyond ASCII count against gpt-4o
and tekken: llama.cpp cuts "ÁS", and the pattern that the models were trained with does not (hf_splitting.py).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from itertools import islice
from math import log2
from typing import NamedTuple

from ..._util.errors import printable
from ..._util.spelling import SPACE
from ..._util.wording import counted, listed
from ...native import native
from ..bpe.merge import CHAR_BYTES, texts_made_by
from .compiled_splitter import compiled_splitter
from .hf_splitting import CASE_BEYOND_ASCII, DIFFERENCES
from .pretokenizer_evidence import FEATURES, has_feature, telltales
from .registry import PRE_TOKENIZERS, PreTokenizer, one_of_each
from .splitter import splitter
from .token_shapes import TokenShapes, token_texts

_ALLOWED = 0.5  # a family allows a feature if it keeps at least this share
_TIED = 1.0  # families whose costs differ by less are tied
_SHARE_CUT = 0.002  # share of tokens cut that raises doubt; the right pre-tokenizer cuts 0.0002 of real ones
_COST_MORE = 6.0  # than the likeliest family's, in terms of `Family.cost`
_LETTER_BEYOND_ASCII = re.compile(r"[^\W\d_\x00-\x7f]")
_LACKS = "the vocabulary has few of that kind or none"


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
            text += f". It also allows tokens such as {_like(first.missing)}, but {_LACKS}"
        if len(self.best) > 1:
            equal = [each.family for each in self.best if each is not first]
            text += f". {', '.join(equal)} {'fits' if len(equal) == 1 else 'fit'} just as well"
        others = [family for family in self.found if family not in self.best]
        if others:
            less = others[0]
            reason = (
                f"cuts {counted(less.of - less.kept, 'token')}"
                if less.kept < less.of - 9 or not less.missing
                else f"also allows tokens such as {_like(less.missing)}, but {_LACKS}"
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
            text += f", {own.family} allows tokens such as {_like(own.missing)}, but {_LACKS}"
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
    shapes = TokenShapes(made)
    entries = list(one_of_each().values())
    cut = list(map(_split_by(list(shapes.counts)), entries))
    first = shapes.first_tokens({shape for some in cut for shape in some})
    judged = [_judged(entry, absent, shapes.counts, some, first) for entry, some in zip(entries, cut)]
    return sorted(judged, key=lambda family: (family.cost, -len(family.names)))


def tied(ranked: list[Family]) -> list[Family]:
    """The families that nothing in the vocabulary distinguishes from the likeliest one, itself included.

    Those with the most names first: a model of a widely used one is more likely.
    """
    best = [family for family in ranked if family.cost < ranked[0].cost + _TIED]
    return sorted(best, key=lambda family: -len(family.names))


def is_byte_level(tokens: Iterable[str]) -> bool:
    """Whether most tokens are written in GPT-2's byte alphabet."""
    some, alphabet = list(islice(tokens, 20000)), frozenset(CHAR_BYTES)
    raw = sum(not alphabet.issuperset(token) for token in some)
    return raw * 2 < len(some) or not some


def _judged(
    entry: PreTokenizer, absent: list[str], counts: Counter[str], cut: list[str], first: dict[str, str]
) -> Family:
    """Judge a family by the shapes that it would cut, of which `first` gives the first token."""
    number, total = sum(map(counts.__getitem__, cut)), counts.total()
    telling = number
    if CASE_BEYOND_ASCII in DIFFERENCES.get(entry.family, ()):
        telling = sum(counts[text] for text in cut if not _LETTER_BEYOND_ASCII.search(text))
    missing = tuple(feature for feature in absent if allows_feature(entry, feature))
    shown = sorted(sorted(cut, key=first.__getitem__), key=counts.__getitem__, reverse=True)[:5]
    examples = tuple(token_texts([first[shape] for shape in shown]))
    cost = len(missing) + log2(1 + telling)
    return Family(entry.family, cost, total - number, total, examples, missing)


def _split_by(texts: Sequence[str]) -> Callable[[PreTokenizer], list[str]]:
    """Return a function that gives those of `texts` that an entry splits, by the compiled engine if there is one."""
    if native is None:
        return lambda entry: [text for text in texts if len(splitter(entry).words(text)) > 1]
    encoded = [text.encode() for text in texts]
    return lambda entry: [texts[index] for index in compiled_splitter(entry).indices_of_split_texts(encoded)]


@cache
def allows_feature(entry: PreTokenizer, feature: str) -> bool:
    """Whether the family keeps the strings of a feature whole."""
    strings = FEATURES[feature]
    return len(strings) - len(_split_by(strings)(entry)) >= _ALLOWED * len(strings)
