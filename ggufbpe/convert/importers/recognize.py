r"""Finds which of llama.cpp's pre-tokenizers splits like a tokenizer.json: by pattern texts, by trying, by tokens.

Three ways, the surest first. The patterns of most models are known word for word, as are those that
convert/exporters/tokenizer_json.py writes. Otherwise the library splits random texts, and the families of the registry
are ranked by how many they split alike; that needs the package `tokenizers`. Failing that, the tokens tell
(models/pretokenizers/families.py).

A family whose original llama.cpp cannot run as written (models/pretokenizers/hf_splitting.py) is recognized all the
same; that some words differ shows when ids are compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, NamedTuple

from ..._util.panics import panics_as_errors
from ...models.pretokenizers.families import families
from ...models.pretokenizers.pattern import parse
from ...models.pretokenizers.random_texts import RandomTexts
from ...models.pretokenizers.registry import PRE_TOKENIZERS, one_of_each
from ...models.pretokenizers.splitter import splitter
from ..exporters.boundary_markers import borders
from ..portable_patterns import oniguruma
from ..upstream_patterns import ORIGINALS, PORTABLE

_TRIED = 3000  # texts
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"  # built into ByteLevel
# the last one only where the pattern matches every character
_KEEPING = (("Isolated", False), ("Contiguous", False), ("Removed", True))
_PUNCTUATION = "punctuation"  # in place of a pattern: the pre-tokenizer of that name

# Patterns of tokenizer.json files that are neither in `ORIGINALS` nor llama.cpp's own word for word.
_OTHERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("gpt-2", (_GPT2,)),
    ("starcoder", (r"\p{N}", _GPT2)),
    ("falcon", (_PUNCTUATION, _GPT2, r"\p{N}+", r"[0-9][0-9][0-9]")),
    ("falcon", (_PUNCTUATION, _GPT2, r"[0-9][0-9][0-9]")),
)


class Candidate(NamedTuple):
    """A family, and the share of texts that it splits alike."""

    family: str
    share: float


class Recognized(NamedTuple):
    """The likeliest family, and why. `how` is one of "patterns", "texts", "tokens"."""

    family: str
    how: str
    sentence: str  # for people
    exact: bool = False  # whether words are the same in every text
    ranking: tuple[Candidate, ...] = ()


def recognize(pre_tokenizer: Any, made: Iterable[str]) -> Recognized | None:
    """The family of a byte-level tokenizer.json; None if none of the registry is near.

    `made` has the tokens that merging made. Raises `ValueError` if the library rejects the pre-tokenizer, or
    panics on a text.
    """
    patterns = listed_patterns(pre_tokenizer)
    family = None if patterns is None else _known().get(patterns)
    if family is not None:
        entry = one_of_each()[family]
        exact = patterns in (tuple(oniguruma(entry)), tuple(borders(entry)))
        return Recognized(family, "patterns", "its patterns are known, word for word", exact)
    try:
        with panics_as_errors("tokenizers"):
            ranking = _ranked(_library_split(pre_tokenizer))
    except ModuleNotFoundError:
        found = families(made)[0]
        return Recognized(
            found.family,
            "tokens",
            "its patterns are not known, and the package tokenizers 0.x is not installed to try them; the tokens look "
            f"made with this splitting, which keeps {100 * found.share:.2f}% of them whole",
        )
    best, second = ranking[:2]
    if best.share < 0.5:
        return None
    sure = "" if best.share == 1 else ", so it is not the same"
    return Recognized(
        best.family,
        "texts",
        f"its patterns are not known; {best.family} splits {100 * best.share:.1f}% of {_TRIED} random texts "
        f"alike{sure}; next is {second.family} with {100 * second.share:.1f}%",
        ranking=ranking,
    )


def listed_patterns(pre_tokenizer: Any) -> tuple[str, ...] | None:
    r"""The regular expressions of a pre-tokenizer, in order; None if a part is not one.

    >>> listed_patterns({"type": "Digits", "individual_digits": True})
    ('\\p{N}',)
    """
    patterns: list[str] = []
    for part in flattened_parts(pre_tokenizer, "pretokenizers"):
        kind = part.get("type")
        if kind == "ByteLevel":
            patterns += [_GPT2] * bool(part.get("use_regex", True))
        elif kind == "Digits":
            patterns.append(r"\p{N}" if part.get("individual_digits") else r"\p{N}+")
        elif kind == "Punctuation":
            patterns.append(_PUNCTUATION)
        elif kind == "Split" and (part.get("behavior"), bool(part.get("invert"))) in _KEEPING:
            pattern = part.get("pattern", {})
            text = _plain(pattern.get("Regex") or re.escape(pattern.get("String", "")))
            patterns.append(f"(?:{text})+" if part["behavior"] == "Contiguous" else text)
        else:
            return None
    return tuple(patterns)


def flattened_parts(part: Any, children: str) -> list[dict[str, Any]]:
    """The parts of a possibly nested sequence, in order; nothing for null."""
    if not isinstance(part, dict):
        return []
    if part.get("type") != "Sequence":
        return [part]
    return [leaf for child in part.get(children, ()) for leaf in flattened_parts(child, children)]


def _plain(pattern: str) -> str:
    """A pattern with escaped characters beyond ASCII written literally."""
    return re.sub(r"\\u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})", lambda m: chr(int(m[1] or m[2], 16)), pattern)


@cache
def _known() -> dict[tuple[str, ...], str]:
    known: dict[tuple[str, ...], str] = {}
    for family, patterns in (*_OTHERS, *ORIGINALS.items()):
        known.setdefault(tuple(map(_plain, patterns)), family)
    for family, parts in PORTABLE.items():
        portable = listed_patterns({"type": "Sequence", "pretokenizers": parts})
        assert portable is not None
        known.setdefault(portable, family)
    for family, entry in one_of_each().items():
        known.setdefault(tuple(map(_plain, entry.patterns)), family)
        known.setdefault(tuple(oniguruma(entry)), family)
        known.setdefault(tuple(borders(entry)), family)
    return known


# ---- by trying ------------------------------------------------------------------------------------------


def _library_split(pre_tokenizer: Any) -> Callable[[str], list[str]]:
    """The library's own splitting. `ModuleNotFoundError` if it is not installed, `ValueError` if it refuses."""
    import json

    from tokenizers import Tokenizer

    if not hasattr(Tokenizer, "pre_tokenizer"):
        raise ModuleNotFoundError("tokenizers 1.0 splits only as a part of encoding")
    empty = {"type": "BPE", "vocab": {}, "merges": []}
    document = {"version": "1.0", "added_tokens": [], "pre_tokenizer": pre_tokenizer, "model": empty}
    nothing = dict.fromkeys(("truncation", "padding", "normalizer", "post_processor", "decoder"))
    try:
        split = Tokenizer.from_str(json.dumps({**nothing, **document})).pre_tokenizer
    except Exception as error:  # the library has no exception class for it
        raise ValueError(f"the package tokenizers does not take the pre-tokenizer: {error}") from error
    if split is None:
        return lambda text: [text]
    return lambda text: [text[start:end] for _, (start, end) in split.pre_tokenize_str(text)]


def _ranked(split: Callable[[str], list[str]]) -> tuple[Candidate, ...]:
    """The families by the share of texts that they split as `split` does, the likeliest first."""
    entries = one_of_each()
    rules = [parse(stage.rule) for entry in entries.values() for stage in entry.stages if stage.rule]
    source = RandomTexts("recognize", patterns=rules)
    texts = [source.text().decode("utf-8", "replace") for _ in range(_TRIED)]
    theirs = list(map(split, texts))
    candidates = []
    for family, entry in entries.items():
        words = splitter(entry).words
        alike = sum(words(text) == pieces for text, pieces in zip(texts, theirs))
        candidates.append(Candidate(family, alike / len(texts)))
    names = [entry.family for entry in PRE_TOKENIZERS.values()]
    return tuple(sorted(candidates, key=lambda candidate: (-candidate.share, -names.count(candidate.family))))
