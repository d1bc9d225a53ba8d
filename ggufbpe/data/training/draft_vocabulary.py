"""A vocabulary before learning: special tokens and base units, or the tokens and merges of a seed GGUF."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from ..._util.errors import printable
from ..._util.spelling import BYTE_TOKENS
from ...gguf.merges import parts
from ...models.bpe.merge import BYTE_CHARS
from ...models.vocabulary import BYTE, CONTROL, NORMAL, SPECIAL_TYPES, UNKNOWN, USER_DEFINED, Vocabulary
from ...tokenizer.special_tokens import SpecialTokens
from .trained_vocabulary import Form, TrainedVocabulary
from .word_counts import Splitting


class Added(NamedTuple):
    """Tokens that are not made by merging: control and user-defined ones, and the unknown token."""

    special: list[str]
    user_defined: list[str]
    unk: str | None

    def attributes(self) -> dict[str, int]:
        """The attribute of each token, in the order of their ids."""
        attributes = {} if self.unk is None else {self.unk: UNKNOWN}
        for token, attribute in (
            *((token, CONTROL) for token in self.special),
            *((token, USER_DEFINED) for token in self.user_defined),
        ):
            if not token or token in attributes:
                raise ValueError(f"the token {printable(token)} is empty or named twice")
            attributes[token] = attribute
        return attributes


class Draft(NamedTuple):
    """A vocabulary before learning: tokens with their attributes, and merges."""

    tokens: list[str]
    attributes: list[int]
    merges: list[tuple[str, str]]
    seed: Vocabulary | None = None


def cutter(added: Added, seed: Vocabulary | None) -> Callable[[str], Iterable[str]] | None:
    """A function that yields the plain parts of a text between special tokens; None if there are no such tokens."""
    attributes = dict(zip(seed.tokens, seed.attributes)) if seed is not None else {}
    attributes = {token: a for token, a in attributes.items() if a & SPECIAL_TYPES}
    attributes |= {token: a for token, a in added.attributes().items() if not a & UNKNOWN}
    if not attributes:
        return None
    tokens = list(attributes)
    form = Form(Splitting("gpt-2", "bytes"))
    special = SpecialTokens(
        TrainedVocabulary(tokens, list(attributes.values()), [], [], form).as_vocabulary()
    )

    def parts(text: str) -> Iterable[str]:
        fragments = special.partition(text, parse_special=True)
        return (text[start:end] for token, start, end in fragments if token is None)

    return parts


def base(
    form: Form, added: Added, counts: Mapping[str, int], limit: int | None, certain: frozenset[str]
) -> Draft:
    """A new vocabulary: special tokens, then the units by code point."""
    attributes = added.attributes()
    split = form.splitting
    raw = split.entry is not None and not split.entry.byte_encode and form.unk is None
    units = dict.fromkeys(BYTE_TOKENS if raw else (), BYTE)
    alphabet = sorted(BYTE_CHARS) if split.units == "bytes" else _alphabet(counts, limit, certain, raw)
    if form.end_of_word is not None:
        alphabet = sorted({*alphabet, form.end_of_word})
    units |= dict.fromkeys(alphabet, NORMAL)
    for token in attributes:
        if token in units:
            raise ValueError(f"the token {printable(token)} is a unit of the text; it cannot also be special")
    attributes |= units
    return Draft(list(attributes), list(attributes.values()), [])


def _alphabet(counts: Mapping[str, int], limit: int | None, certain: frozenset[str], raw: bool) -> list[str]:
    """The most frequent characters of the words; of equally frequent ones the first by code point."""
    frequencies = dict.fromkeys(certain, 0)
    for word, count in counts.items():
        for char in word:
            frequencies[char] = frequencies.get(char, 0) + count
    if raw:
        frequencies.pop("\0", None)  # ends a string in llama.cpp; it has a byte token
    kept = sorted(frequencies, key=lambda char: (char not in certain, -frequencies[char], char))
    return sorted(kept if limit is None else kept[:limit])


def seeded(seed: Vocabulary, added: Added) -> Draft:
    """A vocabulary that continues another: its tokens keep their ids, added ones follow."""
    attributes = {
        token: attribute for token, attribute in added.attributes().items() if token not in seed.token_to_id
    }
    return Draft(
        [*seed.tokens, *attributes],
        [*seed.attributes, *attributes.values()],
        [pair for pair in map(parts, seed.merges) if any(pair)],
        seed,
    )
