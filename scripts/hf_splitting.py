r"""Holds ggufbpe/inspect/hf_splitting.py to Hugging Face's own engine.

    python scripts/hf_splitting.py [FAMILY ...]        # what differs, on which characters; minutes for all

`ORIGINALS` has the patterns of the models' tokenizer.json, as the comments of llama.cpp quote them
(src/llama-vocab.cpp; for kimi-k2 src/unicode.cpp). Other families have the pattern that llama.cpp has, which
is what it took from there; what differs is then how the two run it. Needs the package `tokenizers`.

But: afmoe and the raw UTF-8 families are left out: what their tokenizer.json has is not known here.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable

from ggufbpe.registry import PRE_TOKENIZERS, PreTokenizer
from ggufbpe.split import splitter
from ggufbpe.unicode_classes import class_of

_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_SPACES = r"\s+(?!\S)|\s+"
_TAIL = rf" ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|{_SPACES}"
_SLASH_TAIL = rf" ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|\s*[\r\n]+|{_SPACES}"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_JAIS = "|".join(
    rf"\s{{{count}}}(?!\S)" for count in ("512", "256", "128", "64", "32", "16", "8", "4", "1,2")
)


def _cased(suffix: str, upper: str = _UPPER, lower: str = _LOWER) -> str:
    first = r"[^\r\n\p{L}\p{N}]?"
    return f"{first}{upper}*{lower}+{suffix}|{first}{upper}+{lower}*{suffix}"


_NOT_HAN = r"&&[^\p{Han}]]"
_GPT_4O = _cased(_CONTRACTION + "?") + r"|\p{N}{1,3}|" + _SLASH_TAIL

ORIGINALS: dict[str, tuple[str, ...]] = {
    "llama-bpe": (rf"{_CONTRACTION}|{_WORD}|\p{{N}}{{1,3}}|{_TAIL}",),
    "jais-2": (
        rf"{_CONTRACTION}|{_WORD}|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|{_JAIS}|\s{{1}}",
    ),
    "qwen2": (rf"{_CONTRACTION}|{_WORD}|\p{{N}}|{_TAIL}",),
    "qwen35": (
        _CONTRACTION
        + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|"
        + _SPACES,
    ),
    "tekken": (_cased("") + r"|\p{N}|" + _SLASH_TAIL,),
    "gpt-4o": (_GPT_4O,),
    "granite-embed-multi-97m": (_GPT_4O,),
    "tiny_aya": (r"\d{1,3}(?=(?:\d{3})*\b)", _GPT_4O),
    "kimi-k2": (
        r"[\p{Han}]+|"
        + _cased(_CONTRACTION + "?", _UPPER[:-1] + _NOT_HAN, _LOWER[:-1] + _NOT_HAN)
        + r"|\p{N}{1,3}|"
        + _TAIL,
    ),
    "bailingmoe": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|"
        + _SPACES,
    ),
    "seed-coder": (rf"{_CONTRACTION}|{_WORD}|\p{{N}}{{1}}| ?[^\s\p{{L}}\p{{N}}\r\n]+|\s*[\r\n]+|{_SPACES}",),
    "exaone-moe": (
        _CONTRACTION
        + r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|"
        + _SPACES,
    ),
    "minicpm5": (r"\p{N}{1,3}", rf"{_CONTRACTION}|{_WORD}|\p{{N}}+|{_TAIL}"),
}

SURROUNDINGS = (
    *("{}", "a{}", "{}a", "A{}", "{}A", "{}{}", " {}", "1{}", "{}1", "'{}", ".{}", "{}\n"),
    *("é{}", "{}É", "क{}", "中{}", "{} b", "'{}a", "a'{}a", "{}{}a", "B{}a", "{}1{}", "12{}", "{}12345"),
)


def entries() -> dict[str, PreTokenizer]:
    """An entry of each family that can be tried."""
    found: dict[str, PreTokenizer] = {}
    for entry in PRE_TOKENIZERS.values():
        if entry.byte_encode and entry.family != "afmoe":
            found.setdefault(entry.family, entry)
    return found


def hugging_face(family: str) -> Callable[[str], list[str]]:
    """A function that splits as the `tokenizers` package does with the family's original patterns."""
    from tokenizers import Regex, pre_tokenizers

    patterns = ORIGINALS.get(family) or tuple(map(_without_escapes, entries()[family].patterns))
    splits = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in patterns]
    sequence = pre_tokenizers.Sequence(splits)
    return lambda text: [text[a:b] for _, (a, b) in sequence.pre_tokenize_str(text)]


def differing(family: str, code_points: Iterable[int]) -> dict[str, tuple[list[str], list[str]]]:
    """The texts that the two split otherwise, of each code point in all surroundings: (theirs, ours)."""
    theirs, ours = hugging_face(family), splitter(entries()[family]).words
    found = {}
    for point in code_points:
        for surrounding in SURROUNDINGS:
            text = surrounding.format(chr(point), chr(point))
            if theirs(text) != ours(text):
                found[text] = theirs(text), ours(text)
    return found


def code_points(step: int = 7) -> list[int]:
    """Those below U+3000, and every `step`-th above; only those that have a class: no controls, nothing unassigned."""
    points = [*range(0x3000), *range(0x3000, 0x30000, step)]
    return [point for point in points if class_of(point) != "-"]


def _without_escapes(pattern: str) -> str:
    """Oniguruma knows no U+ escapes of eight digits."""
    return re.sub(r"\\u([0-9a-f]{4})|\\U([0-9a-f]{8})", lambda m: chr(int(m[1] or m[2], 16)), pattern)


def main() -> None:
    for family in sys.argv[1:] or entries():
        found = differing(family, code_points())
        print(f"{family}: {len(found)} texts differ", flush=True)
        by_class: dict[str, list[str]] = defaultdict(list)
        for text, (theirs, ours) in found.items():
            by_class["".join(map(class_of, map(ord, text)))].append(f"{text!r}: {theirs} {ours}")
        for classes, examples in sorted(by_class.items(), key=lambda item: -len(item[1]))[:12]:
            print(f"  {classes:6} {len(examples):6} {examples[0]}")


if __name__ == "__main__":
    main()
