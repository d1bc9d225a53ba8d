r"""Checks ggufbpe/models/pretokenizers/hf_splitting.py against Hugging Face's own engine.

    python scripts/hf_splitting.py [FAMILY ...]        # what differs, on which characters; minutes for all

Families whose original is not in ggufbpe/convert/upstream_patterns.py are tried with llama.cpp's pattern, which it took
from there; any difference is then in how the two run it. Needs the package `tokenizers`.

But: afmoe and the raw UTF-8 families are left out: the patterns of their tokenizer.json are not known here.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable

from ggufbpe._util.unicode_classes import class_of
from ggufbpe.convert.upstream_patterns import ORIGINALS
from ggufbpe.models.pretokenizers.registry import PreTokenizer, one_of_each
from ggufbpe.models.pretokenizers.splitter import splitter

SURROUNDINGS = (
    *("{}", "a{}", "{}a", "A{}", "{}A", "{}{}", " {}", "1{}", "{}1", "'{}", ".{}", "{}\n"),
    *("é{}", "{}É", "क{}", "中{}", "{} b", "'{}a", "a'{}a", "{}{}a", "B{}a", "{}1{}", "12{}", "{}12345"),
)


def entries() -> dict[str, PreTokenizer]:
    """One entry for each family that can be tried."""
    return {family: entry for family, entry in one_of_each().items() if family != "afmoe"}


def hugging_face(family: str) -> Callable[[str], list[str]]:
    """A function that splits as the `tokenizers` package does with the family's original patterns."""
    from tokenizers import Regex, pre_tokenizers

    patterns = ORIGINALS.get(family) or tuple(map(_without_escapes, entries()[family].patterns))
    splits = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in patterns]
    sequence = pre_tokenizers.Sequence(splits)
    return lambda text: [text[a:b] for _, (a, b) in sequence.pre_tokenize_str(text)]


def differing(family: str, code_points: Iterable[int]) -> dict[str, tuple[list[str], list[str]]]:
    """The texts that the two split differently, for each code point in all contexts: (theirs, ours)."""
    theirs, ours = hugging_face(family), splitter(entries()[family]).words
    found = {}
    for point in code_points:
        for surrounding in SURROUNDINGS:
            text = surrounding.format(chr(point), chr(point))
            if theirs(text) != ours(text):
                found[text] = theirs(text), ours(text)
    return found


def code_points(step: int = 7) -> list[int]:
    """Those below U+3000, and every `step`-th above; only those with a class: no controls, nothing unassigned."""
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
