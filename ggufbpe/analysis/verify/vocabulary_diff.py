"""Compares two vocabularies: what is only in one of them, and what differs.

Tokens are compared by their text, so shifted ids show as such and not as another vocabulary. How texts are encoded is
compared in model_diff.py, with the second model as an oracle.
"""

from __future__ import annotations

import re
from binascii import crc32
from collections.abc import Iterable, Iterator
from itertools import accumulate, chain, islice, pairwise
from typing import Any, NamedTuple

from ..._util.errors import printable
from ..._util.spelling import escape_spaces
from ..._util.wording import counted
from ...gguf.merges import parts
from ...models.pieces import quoted_text, quoted_token
from ...models.pretokenizers.registry import PreTokenizer
from ...models.pretokenizers.splitter import splitter
from ...models.token_attribute import TokenAttribute
from ...models.token_table import tokens_that_differ
from ...models.vocabulary import NORMAL, Vocabulary
from ...native.lazy_strings import as_dict
from ...tokenizer.trace import names_of
from ..doctor.merge_checks import longest_ascending
from ..doctor.round_trip_checks import SAMPLES

_EXAMPLES = 100  # kept of each difference
_FLAGS = ("add_bos", "add_eos", "add_sep", "add_space_prefix", "lowercase")
_FLAGS_OF_MODELS = ("strip_accents", "remove_extra_whitespaces")  # compared if one of the models uses them
_PRE_FLAGS = (
    "ignore_merges",
    "byte_encode",
    "escape_whitespaces",
    "clean_spaces",
    "newline_runs",
    "prepend_space",
)


class VocabularyDifference(NamedTuple):
    """One way in which two vocabularies differ; `a` and `b` are the values where there is one of each.

    `id` names the difference for programs, `what` describes it in words, and `number` counts the cases. `examples` are
    some of them as JSON has them, and `lines` the same for people.
    """

    id: str
    what: str
    number: int = 1
    a: Any = None
    b: Any = None
    examples: tuple[Any, ...] = ()
    lines: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<VocabularyDifference {self.id}: {self.number} {self.what}>"


Sections = dict[str, list[VocabularyDifference]]


def vocabulary_differences(a: Vocabulary, b: Vocabulary, names: tuple[str, str] = ("a", "b")) -> Sections:
    """The differences by section: tokens, types, merges, flags, special ids, pre-tokenizer. Empty: none.

    >>> vocabulary_differences(tok.vocabulary, tok.vocabulary)
    {'tokens': [], 'types': [], 'merges': [], 'flags': [], 'special': [], 'pre': []}

    `names` are what the sides are called in words.
    """
    one, other = (_Side(name, v) for name, v in zip(names, (a, b)))
    sections = {
        "tokens": chain(_tokens(one, other), _scores(one, other)),
        "types": _types(one, other),
        "merges": _merges(one, other),
        "flags": _flags(a, b),
        "special": _special(one, other),
        "pre": _pre(one, other),
    }
    return {name: list(differences) for name, differences in sections.items()}


def sections_to_dict(sections: Sections) -> dict[str, Any]:
    """All sections as dictionaries and lists."""
    return {
        name: [
            {key: value for key, value in difference._asdict().items() if key != "lines"}
            for difference in differences
        ]
        for name, differences in sections.items()
    }


class _Side(NamedTuple):
    """A vocabulary with its name; its tokens are shown as the text that they decode to."""

    name: str
    vocabulary: Vocabulary

    def shown(self, token: int) -> str:
        """The text of a token, quoted."""
        return quoted_token(self.vocabulary, token)

    def shown_apart(self, token: int, other: _Side) -> str:
        """The text of a token, as it is written in the file where the other's token of this id looks the same."""
        shown, tokens = self.shown(token), other.vocabulary.tokens
        is_alike = token < len(tokens) and other.shown(token) == shown
        return printable(self.vocabulary.tokens[token]) if is_alike else shown

    def merge_apart(self, rank: int, other: _Side) -> str:
        """The two parts of a merge, as they are written in the file where the other's of this rank look the same."""
        merges, others = self.vocabulary.merges, other.vocabulary.merges
        shown = self.shown_merge(merges[rank])
        is_alike = rank < len(others) and other.shown_merge(others[rank]) == shown
        return " + ".join(map(printable, parts(merges[rank]))) if is_alike else shown

    def shown_merge(self, merge: str) -> str:
        """The two parts of a merge, shown in the same way."""
        model, entry = self.vocabulary.tokenizer_model, self.vocabulary.pre_tokenizer
        return " + ".join(quoted_text(model, entry, part) for part in parts(merge))


def _listed(
    name: str, what: str, number: int, rows: Iterable[tuple[Any, str]]
) -> Iterator[VocabularyDifference]:
    """The difference with the first of the `rows`, each as data and as a line; nothing if `number` is 0.

    `what` begins with a plural, whose last letter is left out where there is only one.
    """
    if number:
        what = re.sub(r"\b(token|merge)s\b", r"\1", what, count=1) if number == 1 else what
        examples, lines = zip(*islice(rows, _EXAMPLES))
        yield VocabularyDifference(name, what, number, examples=examples, lines=lines)


def _tokens(one: _Side, other: _Side) -> Iterator[VocabularyDifference]:
    a, b = one.vocabulary, other.vocabulary
    if a.model != b.model:
        yield VocabularyDifference("model", "tokenizer.ggml.model", 1, a.model, b.model)
    if a.tokens == b.tokens:
        return
    if len(a.tokens) != len(b.tokens):
        yield VocabularyDifference("size", "number of tokens", 1, len(a.tokens), len(b.tokens))
    for name, side, opposite in (("only_a", one, other), ("only_b", other, one)):
        tokens, ids = side.vocabulary.tokens, as_dict(opposite.vocabulary.token_to_id)
        only_here = [i for i, token in enumerate(tokens) if token not in ids]
        shown = (({"id": i, "token": tokens[i]}, f"{i} {side.shown_apart(i, opposite)}") for i in only_here)
        yield from _listed(name, f"tokens only in {side.name}", len(only_here), shown)
    id_in_b = as_dict(b.token_to_id).get
    moved = [(i, j) for i, token in enumerate(a.tokens) if (j := id_in_b(token, i)) != i]
    by = {j - i for i, j in moved}
    what = "tokens with different ids" + (f", all shifted by {by.pop():+}" if len(by) == 1 else "")
    shown = (
        ({"token": a.tokens[i], "a": i, "b": j}, f"{one.shown(i)}: {i} in {one.name}, {j} in {other.name}")
        for i, j in moved
    )
    yield from _listed("other_id", what, len(moved), shown)


def _scores(one: _Side, other: _Side) -> Iterator[VocabularyDifference]:
    """The tokens with other scores, where the model chooses tokens by them."""
    a, b = one.vocabulary, other.vocabulary
    if not (a.tokenizer_model.has_scores and b.tokenizer_model.has_scores):
        return
    if not (a.scores and b.scores):
        if a.scores or b.scores:
            sizes = len(a.scores) or None, len(b.scores) or None
            yield VocabularyDifference("score_count", "number of scores", 1, *sizes)
        return
    ids = enumerate(map(as_dict(b.token_to_id).get, a.tokens))
    differing = [(i, j) for i, j in ids if j is not None and a.scores[i] != b.scores[j]]
    shown = (
        (
            {"token": a.tokens[i], "id": i, "a": a.scores[i], "b": b.scores[j]},
            f"{i} {one.shown(i)}: {a.scores[i]:g} in {one.name}, {b.scores[j]:g} in {other.name}",
        )
        for i, j in differing
    )
    yield from _listed("scores", "tokens with different scores", len(differing), shown)


def _types(one: _Side, other: _Side) -> Iterator[VocabularyDifference]:
    a, b = one.vocabulary, other.vocabulary
    if a.tokens == b.tokens:
        differing = [(i, i) for i in tokens_that_differ(a.attributes, b.attributes)]
    else:
        ids = enumerate(map(as_dict(b.token_to_id).get, a.tokens))
        differing = [(i, j) for i, j in ids if j is not None and a.attributes[i] != b.attributes[j]]
    shown = (
        (
            {"token": a.tokens[i], "id": i, "a": kind, "b": other_kind},
            f"{i} {text}: {kind} in {one.name}, {other_kind} in {other.name}",
        )
        for i, text, kind, other_kind in (
            (i, _shown_by(one, other, i, j), _kinds(a.attributes[i]), _kinds(b.attributes[j]))
            for i, j in differing
        )
    )
    yield from _listed("types", "tokens with different types", len(differing), shown)


def _shown_by(one: _Side, other: _Side, i: int, j: int) -> str:
    """A token as the side shows it where it is normal, so that the order of the files does not matter."""
    return other.shown(j) if other.vocabulary.attributes[j] & NORMAL else one.shown(i)


def _kinds(attribute: int) -> str:
    return "+".join(names_of(TokenAttribute(attribute))).lower() or "undefined"


def _merges(one: _Side, other: _Side) -> Iterator[VocabularyDifference]:
    a, b = one.vocabulary, other.vocabulary
    if a.merges == b.merges:
        return
    if len(a.merges) != len(b.merges):
        yield VocabularyDifference("merge_count", "number of merges", 1, len(a.merges), len(b.merges))
    ranks_a, ranks_b = ({merge: rank for rank, merge in reversed(list(enumerate(v.merges)))} for v in (a, b))
    repeated = [len(v.merges) - len(ranks) for v, ranks in ((a, ranks_a), (b, ranks_b))]
    for name, side, number in (
        ("merges_repeated_a", one, repeated[0]),
        ("merges_repeated_b", other, repeated[1]),
    ):
        if number and repeated[0] != repeated[1]:
            are = "merges are" if number > 1 else "merge is"
            yield VocabularyDifference(name, f"{are} listed more than once in {side.name}", number)
    for name, side, others, own, ranks in (
        ("merges_only_a", one, other, ranks_a, ranks_b),
        ("merges_only_b", other, one, ranks_b, ranks_a),
    ):
        only_here = sorted((rank, merge) for merge, rank in own.items() if merge not in ranks)
        shown = (
            ({"rank": rank, "merge": merge}, f"rank {rank}: {side.merge_apart(rank, others)}")
            for rank, merge in only_here
        )
        yield from _listed(name, f"merges only in {side.name}", len(only_here), shown)
    common = sorted((rank, merge) for merge, rank in ranks_a.items() if merge in ranks_b)
    in_order = set(longest_ascending([ranks_b[merge] for _, merge in common]))
    moved = [each for at, each in enumerate(common) if at not in in_order]
    shown = (
        (
            {"merge": merge, "a": rank, "b": ranks_b[merge]},
            f"{one.shown_merge(merge)}: rank {rank} in {one.name}, {ranks_b[merge]} in {other.name}",
        )
        for rank, merge in moved
    )
    yield from _listed("merge_order", "merges in a different order", len(moved), shown)


def _flags(a: Vocabulary, b: Vocabulary) -> Iterator[VocabularyDifference]:
    pairs: list[tuple[str, Any, Any]] = [(name, getattr(a, name), getattr(b, name)) for name in _FLAGS]
    heeded = {name for v in (a, b) for name in v.tokenizer_model.flags}
    pairs += [(name, getattr(a, name), getattr(b, name)) for name in _FLAGS_OF_MODELS if name in heeded]
    if a.tokenizer_model.composes or b.tokenizer_model.composes:
        pairs.append(("nfc", a.nfc, b.nfc))
    pairs.append(("charsmap", _charsmap(a, b), _charsmap(b, a)))
    pairs += [(name, getattr(a.pre_tokenizer, name), getattr(b.pre_tokenizer, name)) for name in _PRE_FLAGS]
    for name, own, others in pairs:
        if own != others:
            yield VocabularyDifference(name, name, 1, own, others)


def _charsmap(own: Vocabulary, other: Vocabulary) -> str | None:
    """The size of the map that normalizes text, with a checksum where the other's has this size; None without one."""
    size = len(own.charsmap)
    checksum = f", CRC {crc32(own.charsmap):08x}" if size == len(other.charsmap) else ""
    return f"{counted(size, 'byte')}{checksum}" if size else None


def _special(one: _Side, other: _Side) -> Iterator[VocabularyDifference]:
    a, b = one.vocabulary, other.vocabulary
    for name in a.special_ids:
        own, others = (_token(v, v.special_ids.get(name)) for v in (a, b))
        if own != others:
            yield VocabularyDifference(name, name.upper(), 1, own, others)
    ends = [{v.tokens[i] for i in v.eog_ids} for v in (a, b)]
    if ends[0] != ends[1]:
        what = "tokens that end a generation"
        yield VocabularyDifference("end_of_generation", what, 1, sorted(ends[0]), sorted(ends[1]))
    special = [{v.tokens[i] for i in v.special_token_ids} for v in (a, b)]
    for name, side, token_id in (
        ("special_only_a", one, special[0] - special[1]),
        ("special_only_b", other, special[1] - special[0]),
    ):
        shown = ((text, printable(text, 40)) for text in sorted(token_id))
        yield from _listed(name, f"special tokens that only {side.name} parses", len(token_id), shown)


def _token(vocabulary: Vocabulary, token: int | None) -> dict[str, Any] | None:
    return None if token is None else {"id": token, "text": vocabulary.tokens[token]}


def _pre(one: _Side, other: _Side) -> Iterator[VocabularyDifference]:
    a, b = one.vocabulary, other.vocabulary
    own, others = a.pre_tokenizer, b.pre_tokenizer
    if own.name == others.name:
        return
    if own.family == others.family:
        yield VocabularyDifference(
            "pre", "pre-tokenizer (of one family, so they split the same way)", 1, own.name, others.name
        )
        return
    both_split = a.tokenizer_model.has_pre_tokenizer and b.tokenizer_model.has_pre_tokenizer
    parted = list(_parted(own, others, SAMPLES)) if both_split else []
    lines = [
        f"{printable(text, 60)}: {_words(x)} in {one.name}, {_words(y)} in {other.name}"
        for text, x, y in parted
    ]
    yield VocabularyDifference(
        "pre",
        "pre-tokenizer",
        1,
        own.name,
        others.name,
        tuple({"text": text, "a": x, "b": y} for text, x, y in parted),
        tuple(lines),
    )


def _words(words: list[str]) -> str:
    return " | ".join(printable(word, 20) for word in words)


def _parted(
    one: PreTokenizer, other: PreTokenizer, texts: Iterable[str]
) -> Iterator[tuple[str, list[str], list[str]]]:
    """For each text, the first stretch that the two split differently, between word boundaries of both."""
    for text in texts:
        rows = [splitter(entry).words(_as_split(entry, text)) for entry in (one, other)]
        edges = [{0, *accumulate(map(len, words))} for words in rows]
        common = sorted(edges[0] & edges[1])
        for start, end in pairwise(common):
            inside = [[e for e in sorted(own) if start < e <= end] for own in edges]
            if inside[0] != inside[1]:
                pieces = [[text[i:j] for i, j in zip([start, *cuts], cuts)] for cuts in inside]
                yield text[start:end], pieces[0], pieces[1]
                break


def _as_split(entry: PreTokenizer, text: str) -> str:
    return escape_spaces(text) if entry.escape_whitespaces else text
