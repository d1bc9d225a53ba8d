r"""Counts the words of texts, and splits words into the symbols that merging begins with.

The splittings are those of the registry (models/pretokenizers/splitter.py), and two that llama.cpp does not have:
`none`, where each line is a word, and `words`, where runs of letters, marks and digits and runs of other characters
are words and white space is dropped. Symbols are bytes, written in GPT-2's alphabet, or characters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ..._util.errors import printable
from ..._util.spelling import escape_spaces
from ..._util.unicode_classes import class_of
from ...models.bpe.merge import byte_level
from ...models.pretokenizers.registry import PRE_TOKENIZERS, PreTokenizer, Stage
from ...models.pretokenizers.splitter import splitter

UNITS = ("bytes", "chars")
NOT_IN_LLAMA_CPP = ("none", "words")


class _Words(PreTokenizer):
    """The entry of the splitting `words`, which the registry does not have."""

    @property
    def stages(self) -> tuple[Stage, ...]:
        rule = r"[\p{L}\p{M}\p{N}]+|[^\s\p{L}\p{M}\p{N}]+"
        return (Stage(rule, rule),)


_WORDS = _Words("words", "words")


class Splitting(NamedTuple):
    """How texts become words, and words symbols."""

    pre: str
    units: str  # "bytes" or "chars"

    @property
    def entry(self) -> PreTokenizer | None:
        """The registry entry; None for splittings that llama.cpp does not have."""
        return PRE_TOKENIZERS.get(self.pre)

    @property
    def listed(self) -> PreTokenizer | None:
        """The entry whose patterns split text; None if it is split into lines."""
        return _WORDS if self.pre == "words" else self.entry

    def prepared(self, text: str) -> str:
        """Plain text ready for splitting: with spaces escaped, if the pre-tokenizer does that."""
        return escape_spaces(text) if self.entry is not None and self.entry.escape_whitespaces else text

    def words(self, text: str) -> Iterable[str]:
        """The words of plain text, in order. They may include white space that is dropped later."""
        entry = self.listed
        return _lines(text) if entry is None else splitter(entry).iterate(self.prepared(text))

    def drops(self, word: str) -> bool:
        """Whether `word` is white space that no token stands for."""
        return self.pre in ("words", "whitespace") and class_of(ord(word[0])) == "W"

    def symbols(self, word: str) -> list[str]:
        """The symbols of a word.

        >>> Splitting("gpt-2", "bytes").symbols(" é")
        ['Ġ', 'Ã', '©']
        """
        return list(byte_level(word) if self.units == "bytes" else word)


def splitting(pre: str, units: str | None) -> Splitting:
    """The splitting of that name; `ValueError` for one that does not exist or does not have these units."""
    entry = PRE_TOKENIZERS.get(pre)
    if entry is None and pre not in NOT_IN_LLAMA_CPP:
        import difflib

        near = ", ".join(difflib.get_close_matches(pre, [*PRE_TOKENIZERS, *NOT_IN_LLAMA_CPP], n=3))
        raise ValueError(
            f"unknown pre-tokenizer {printable(pre)}{near and f' (near: {near})'}: "
            "`ggufbpe list-pre` shows all names, and there are 'none' and 'words'"
        )
    raw = entry is not None and not entry.byte_encode
    if units is None:
        units = "chars" if raw else "bytes"
    if units not in UNITS:
        raise ValueError(f"units are {' or '.join(UNITS)}, not {printable(units)}")
    if raw and units == "bytes":
        raise ValueError(f"{pre} does not write text as bytes; its units are chars")
    return Splitting(pre, units)


def count_words(
    texts: Iterable[str], split: Splitting, cut: Callable[[str], Iterable[str]] | None
) -> dict[str, int]:
    """How often each word occurs in `texts`; the words in the order of first occurrence.

    `cut` gives the plain parts of a text between special tokens.
    """
    counts: Counter[str] = Counter()
    for text in texts:
        for part in (text,) if cut is None else cut(text):
            counts.update(split.words(part))
    if split.pre in ("words", "whitespace"):
        return {word: count for word, count in counts.items() if not split.drops(word)}
    return counts


def _lines(text: str) -> list[str]:
    r"""Lines, each with its line break.

    >>> _lines("a\n\nb")
    ['a\n', '\n', 'b']
    """
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]
