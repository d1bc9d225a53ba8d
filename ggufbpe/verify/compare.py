"""Two vocabularies side by side: what is only in one, and what is otherwise in the other.

    vocabulary, vocabulary -> [this file] -> sections of differences -> cli/diff.py

Tokens are compared by their text, so a vocabulary whose ids are shifted shows as such and not as another one.

But: how texts are encoded is verify.py's part, with the second model for an oracle.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from ..doctor.round_trips import SAMPLES
from ..errors import printable
from ..models.bpe.registry import PreTokenizer
from ..models.bpe.split import splitter
from ..spelling import escape_spaces
from ..vocab import TokenAttribute, Vocabulary

_EXAMPLES = 100  # kept of each difference
_FLAGS = ("add_bos", "add_eos", "add_sep", "add_space_prefix", "lowercase")
_PRE_FLAGS = (
    "ignore_merges",
    "byte_encode",
    "escape_whitespaces",
    "clean_spaces",
    "newline_runs",
    "prepend_space",
)


class VocabularyDifference(NamedTuple):
    """One way in which two vocabularies differ; `a` and `b` are the values where there is one of each."""

    id: str
    what: str
    number: int = 1
    a: Any = None
    b: Any = None
    examples: tuple[Any, ...] = ()  # the first of them, as JSON has them
    lines: tuple[str, ...] = ()  # the same for people


def compare(a: Vocabulary, b: Vocabulary) -> dict[str, list[VocabularyDifference]]:
    """The differences by section: tokens, types, merges, flags, special ids, pre-tokenizer. Empty: none.

    >>> compare(vocabulary, vocabulary)                                      # doctest: +SKIP
    {'tokens': [], 'types': [], 'merges': [], 'flags': [], 'special': [], 'pre': []}
    """
    sections = {
        "tokens": _tokens(a, b),
        "types": _types(a, b),
        "merges": _merges(a, b),
        "flags": _flags(a, b),
        "special": _special(a, b),
        "pre": _pre(a, b),
    }
    return {name: list(differences) for name, differences in sections.items()}


def to_json(sections: dict[str, list[VocabularyDifference]]) -> dict[str, Any]:
    """All sections as dictionaries and lists."""
    return {
        name: [
            {key: value for key, value in difference._asdict().items() if key != "lines"}
            for difference in differences
        ]
        for name, differences in sections.items()
    }


def _tokens(a: Vocabulary, b: Vocabulary) -> Iterator[VocabularyDifference]:
    if a.model != b.model:
        yield VocabularyDifference("model", "tokenizer.ggml.model", 1, a.model, b.model)
    if len(a.tokens) != len(b.tokens):
        yield VocabularyDifference("size", "number of tokens", 1, len(a.tokens), len(b.tokens))
    for name, one, other in (("only_a", a, b), ("only_b", b, a)):
        found = [i for i, token in enumerate(one.tokens) if token not in other.token_to_id]
        if found:
            shown = [{"id": i, "token": one.tokens[i]} for i in found[:_EXAMPLES]]
            lines = [f"{i} {printable(one.tokens[i], 40)}" for i in found[:_EXAMPLES]]
            what = f"tokens only in {name[-1]}"
            yield VocabularyDifference(name, what, len(found), examples=tuple(shown), lines=tuple(lines))
    moved = [(i, j) for i, token in enumerate(a.tokens) if (j := b.token_to_id.get(token, i)) != i]
    if moved:
        by = {j - i for i, j in moved}
        what = (
            f"tokens in both with another id, all by {by.pop():+}"
            if len(by) == 1
            else "tokens in both with another id"
        )
        shown = [{"token": a.tokens[i], "a": i, "b": j} for i, j in moved[:_EXAMPLES]]
        lines = [f"{printable(a.tokens[i], 40)}: {i} in a, {j} in b" for i, j in moved[:_EXAMPLES]]
        yield VocabularyDifference("other_id", what, len(moved), examples=tuple(shown), lines=tuple(lines))


def _types(a: Vocabulary, b: Vocabulary) -> Iterator[VocabularyDifference]:
    found = [
        (i, j)
        for i, token in enumerate(a.tokens)
        if (j := b.token_to_id.get(token)) is not None and a.attributes[i] != b.attributes[j]
    ]
    if found:
        shown = [
            {"token": a.tokens[i], "id": i, "a": _kinds(a.attributes[i]), "b": _kinds(b.attributes[j])}
            for i, j in found[:_EXAMPLES]
        ]
        lines = [
            f"{item['id']} {printable(str(item['token']), 40)}: {item['a']} in a, {item['b']} in b"
            for item in shown
        ]
        yield VocabularyDifference(
            "types", "tokens of another type", len(found), examples=tuple(shown), lines=tuple(lines)
        )


def _kinds(attribute: int) -> str:
    names = [(flag.name or "").lower() for flag in TokenAttribute if flag and flag & attribute]
    return "+".join(names) or "undefined"


def _merges(a: Vocabulary, b: Vocabulary) -> Iterator[VocabularyDifference]:
    if len(a.merges) != len(b.merges):
        yield VocabularyDifference("merge_count", "number of merges", 1, len(a.merges), len(b.merges))
    own, other = ({merge: rank for rank, merge in reversed(list(enumerate(v.merges)))} for v in (a, b))
    for name, one, two in (("merges_only_a", own, other), ("merges_only_b", other, own)):
        found = sorted((rank, merge) for merge, rank in one.items() if merge not in two)
        if found:
            shown = [{"rank": rank, "merge": merge} for rank, merge in found[:_EXAMPLES]]
            lines = [f"rank {rank}: {printable(merge, 40)}" for rank, merge in found[:_EXAMPLES]]
            what = f"merges only in {name[-1]}"
            yield VocabularyDifference(name, what, len(found), examples=tuple(shown), lines=tuple(lines))
    common = sorted((rank, merge) for merge, rank in own.items() if merge in other)
    moved = [common[at] for at in _out_of_order([other[merge] for _, merge in common])]
    if moved:
        places = [{"merge": merge, "a": rank, "b": other[merge]} for rank, merge in moved[:_EXAMPLES]]
        lines = [
            f"{printable(merge, 40)}: rank {rank} in a, {other[merge]} in b"
            for rank, merge in moved[:_EXAMPLES]
        ]
        yield VocabularyDifference(
            "merge_order", "merges in another order", len(moved), examples=tuple(places), lines=tuple(lines)
        )


def _out_of_order(numbers: list[int]) -> list[int]:
    """The fewest positions without which `numbers` rise: all but a longest rising subsequence.

    >>> _out_of_order([0, 5, 1, 2])
    [1]
    """
    tails: list[int] = []  # the smallest last number of a rising subsequence of each length
    at: list[int] = []  # its position
    before = [-1] * len(numbers)
    for position, number in enumerate(numbers):
        length = bisect_left(tails, number)
        before[position] = at[length - 1] if length else -1
        tails[length : length + 1], at[length : length + 1] = [number], [position]
    kept = set()
    position = at[-1] if at else -1
    while position >= 0:
        kept.add(position)
        position = before[position]
    return [position for position in range(len(numbers)) if position not in kept]


def _flags(a: Vocabulary, b: Vocabulary) -> Iterator[VocabularyDifference]:
    pairs: list[tuple[str, Any, Any]] = [(name, getattr(a, name), getattr(b, name)) for name in _FLAGS]
    pairs += [(name, getattr(a.pre_tokenizer, name), getattr(b.pre_tokenizer, name)) for name in _PRE_FLAGS]
    for name, one, other in pairs:
        if one != other:
            yield VocabularyDifference(name, name, 1, one, other)


def _special(a: Vocabulary, b: Vocabulary) -> Iterator[VocabularyDifference]:
    for name in a.special_ids:
        one, other = (_token(v, v.special_ids.get(name)) for v in (a, b))
        if one != other:
            yield VocabularyDifference(name, name.upper(), 1, one, other)
    ends = [{v.tokens[i] for i in v.eog_ids} for v in (a, b)]
    if ends[0] != ends[1]:
        what = "tokens that end a generation"
        yield VocabularyDifference("end_of_generation", what, 1, sorted(ends[0]), sorted(ends[1]))
    special = [{v.tokens[i] for i in v.special_token_ids} for v in (a, b)]
    for name, found in (
        ("special_only_a", special[0] - special[1]),
        ("special_only_b", special[1] - special[0]),
    ):
        if found:
            texts = sorted(found)[:_EXAMPLES]
            what = f"tokens found in a prompt only by {name[-1]}"
            lines = tuple(printable(text, 40) for text in texts)
            yield VocabularyDifference(name, what, len(found), examples=tuple(texts), lines=lines)


def _token(vocabulary: Vocabulary, token: int | None) -> dict[str, Any] | None:
    return None if token is None else {"id": token, "text": vocabulary.tokens[token]}


def _pre(a: Vocabulary, b: Vocabulary) -> Iterator[VocabularyDifference]:
    one, other = a.pre_tokenizer, b.pre_tokenizer
    if one.name == other.name:
        return
    if one.family == other.family:
        yield VocabularyDifference(
            "pre", "pre-tokenizer, of one family: they split alike", 1, one.name, other.name
        )
        return
    both_split = a.tokenizer_model.has_pre_tokenizer and b.tokenizer_model.has_pre_tokenizer
    parted = list(_parted(one, other, SAMPLES)) if both_split else []
    lines = [f"{printable(text, 60)}: {_words(x)} in a, {_words(y)} in b" for text, x, y in parted]
    yield VocabularyDifference(
        "pre",
        "pre-tokenizer",
        1,
        one.name,
        other.name,
        tuple({"text": text, "a": x, "b": y} for text, x, y in parted),
        tuple(lines),
    )


def _words(words: list[str]) -> str:
    return " | ".join(printable(word, 20) for word in words)


def _parted(
    one: PreTokenizer, other: PreTokenizer, texts: Iterable[str]
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Of each text the first stretch that the two cut otherwise, from one common edge of words to the next."""
    for text in texts:
        rows = [splitter(entry).words(_as_split(entry, text)) for entry in (one, other)]
        edges = [{0, *_ends(words)} for words in rows]
        common = sorted(edges[0] & edges[1])
        for start, end in pairwise(common):
            inside = [[e for e in sorted(own) if start < e <= end] for own in edges]
            if inside[0] != inside[1]:
                pieces = [[text[i:j] for i, j in zip([start, *found], found)] for found in inside]
                yield text[start:end], pieces[0], pieces[1]
                break


def _as_split(entry: PreTokenizer, text: str) -> str:
    return escape_spaces(text) if entry.escape_whitespaces else text


def _ends(words: list[str]) -> Iterator[int]:
    end = 0
    for word in words:
        end += len(word)
        yield end
