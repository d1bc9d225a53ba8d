"""Measures batches of texts: tokens, and the text that they cover, by group and tokenizer.

Counted in the text, for all tokenizers alike: bytes, characters (code points as llama.cpp reads them, where an
undecodable byte is one) and words, which are runs without white space. Counted for each tokenizer: tokens, the pieces
into which its pre-tokenizer cuts, tokens of one byte, tokens that are not whole characters, and which tokens were
used.

No texts are kept, and of the tokens that a group uses only the ids.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import numpy.typing as npt

from ..._util import utf8
from ..._util.wording import counted
from ...models.vocabulary import CONTROL, UNKNOWN, UNUSED
from ...tokenizer import Tokenizer
from ...tokenizer.chunking import added_ids
from .text_groups import Batch

Ids = npt.NDArray[np.int64]

_NOT_FOR_TEXT = CONTROL | UNKNOWN | UNUSED
_UNSEEN, _WHOLE, _SINGLE_BYTE, _SINGLE_PART, _PARTS = range(5)  # kinds of tokens, by what they decode to


@dataclass(frozen=True)
class Measures:
    """How the tokenizer `tokenizer` cuts the texts of the group `group`. Ratios are None if they would divide by zero.

    `texts`, `bytes`, `characters` (code points), `words` (runs without white space) and `tokens` are counted, and
    `pieces`, the words of the pre-tokenizer. `undecodable_bytes` are not UTF-8; each counts as a character.
    `single_byte_tokens` decode to one byte, be it a letter or a part of one, and `partial_tokens` to bytes that are not
    whole characters. `used_tokens` counts the distinct tokens, without control, unknown and unused ones.
    """

    group: str
    tokenizer: str
    texts: int
    bytes: int
    characters: int
    words: int
    undecodable_bytes: int
    tokens: int
    pieces: int
    single_byte_tokens: int
    partial_tokens: int
    used_tokens: int

    @property
    def bytes_per_token(self) -> float | None:
        """Mean length of a token in bytes of the text."""
        return _ratio(self.bytes, self.tokens)

    @property
    def characters_per_token(self) -> float | None:
        """Mean length of a token in code points."""
        return _ratio(self.characters, self.tokens)

    @property
    def tokens_per_word(self) -> float | None:
        """Tokens per run without white space, often called fertility."""
        return _ratio(self.tokens, self.words)

    @property
    def tokens_per_piece(self) -> float | None:
        """Tokens per piece of the pre-tokenizer: 1 if no piece had to be cut."""
        return _ratio(self.tokens, self.pieces)

    @property
    def single_byte_share(self) -> float | None:
        """The share of tokens that are one byte, 0 to 1."""
        return _ratio(self.single_byte_tokens, self.tokens)

    @property
    def partial_share(self) -> float | None:
        """The share of tokens that are not whole characters, 0 to 1."""
        return _ratio(self.partial_tokens, self.tokens)

    def to_dict(self) -> dict[str, str | int | float | None]:
        """All numbers, including ratios, by name."""
        return {**dataclasses.asdict(self), **{name: getattr(self, name) for name in RATIOS}}


_NOT_SUMMED = ("group", "tokenizer", "used_tokens")
RATIOS = [name for name, value in vars(Measures).items() if isinstance(value, property)]


@dataclass(frozen=True)
class Usage:
    """How often the whole corpus uses each token of one vocabulary.

    `tokenizer` is the name of the tokenizer, `pre` its pre-tokenizer, and `vocab_size` the number of its tokens. Both
    arrays have the shape (vocab_size,): `counts` is how often each token was used, and `for_text` whether it is for
    text, so not control, unknown or unused.
    """

    tokenizer: str
    pre: str
    vocab_size: int
    counts: Ids = field(repr=False, compare=False)
    for_text: npt.NDArray[np.bool_] = field(repr=False, compare=False)

    @property
    def text_tokens(self) -> int:
        """The number of tokens of the vocabulary that are for text: not control, unknown or unused."""
        return int(self.for_text.sum())

    @property
    def used_tokens(self) -> int:
        """The number of tokens for text that the corpus uses at least once."""
        return int((self.for_text & (self.counts > 0)).sum())

    @property
    def unused_tokens(self) -> int:
        """The number of tokens for text that the corpus never uses."""
        return self.text_tokens - self.used_tokens

    @property
    def unused_ids(self) -> list[int]:
        """The ids of the tokens for text that the corpus never uses, ascending."""
        ids: list[int] = (self.for_text & (self.counts == 0)).nonzero()[0].tolist()
        return ids

    def to_dict(self) -> dict[str, str | int]:
        """The numbers by name, without the counts of single tokens."""
        numbers = {"text_tokens": self.text_tokens, "used_tokens": self.used_tokens}
        named: dict[str, str | int] = {"name": self.tokenizer, "pre": self.pre, "vocab_size": self.vocab_size}
        return {**named, **numbers, "unused_tokens": self.unused_tokens}


@dataclass(frozen=True, repr=False)
class Stats:
    """How tokenizers cut a corpus.

    `usage` has a `Usage` for each tokenizer. `rows` are the `Measures` by group in the order of the corpus, and within
    a group by tokenizer; `total` are those of each tokenizer over all groups. `skipped` counts the files left out of
    directories by kind: "hidden", "binary", "link or special".
    """

    usage: list[Usage]
    rows: list[Measures]
    total: list[Measures]
    skipped: dict[str, int]

    def __repr__(self) -> str:
        texts = counted(self.total[0].texts, "text") if self.total else "no texts"
        return f"<Stats of {', '.join(self.tokenizers)}: {texts}, {counted(len(self.groups), 'group')}>"

    @property
    def tokenizers(self) -> list[str]:
        """The names of the tokenizers."""
        return [usage.tokenizer for usage in self.usage]

    @property
    def groups(self) -> list[str]:
        """The names of the groups."""
        return list(dict.fromkeys(row.group for row in self.rows))

    def to_dict(self) -> dict[str, object]:
        """Everything, in JSON types."""
        return {
            "tokenizers": [usage.to_dict() for usage in self.usage],
            "rows": [row.to_dict() for row in self.rows],
            "total": [row.to_dict() for row in self.total],
            "skipped": self.skipped,
        }

    def plot(self, path: str, *, theme: str = "light") -> None:
        """Draw the tokenizers side by side, as PNG or SVG by the suffix of `path`.

        `theme` is "light" or "dark". `NotInstalledError` without matplotlib.
        """
        from .plots import plot

        plot(self, path, theme=theme)


def _ratio(number: int, of: int) -> float | None:
    return number / of if of else None


class Measurer:
    """Adds up the counts of batches."""

    def __init__(
        self,
        tokenizers: Mapping[str, Tokenizer],
        parse_special: bool,
        add_bos: bool,
        are_prompts: bool = False,
    ) -> None:
        """`add_bos` as in `stats`; if texts `are_prompts`, they get the tokens that llama-server adds to prompts."""
        added = {
            name: list(chain(*(model.vocabulary.added if are_prompts else added_ids(model))))
            if add_bos
            else []
            for name, model in tokenizers.items()
        }
        self._models = [_Model(name, model, parse_special, added[name]) for name, model in tokenizers.items()]
        self._groups: dict[str, _Group] = {}
        self._in_word = False  # the last chunk ended within a word

    def add(self, batch: Batch) -> None:
        """Count the texts of a batch."""
        group = self._groups.get(batch.group)
        if group is None:
            group = self._groups[batch.group] = _Group(len(self._models))
        group.texts += batch.begun
        for data in batch.texts:
            text = utf8.decode(data)
            group.bytes += len(data)
            group.characters += len(text)
            group.words += len(text.split())
            if not batch.begun and self._in_word and not text[:1].isspace():
                group.words -= 1  # the first one, cut in two
            self._in_word = not text[-1:].isspace()
            group.undecodable_bytes += utf8.undecodable(data, text)
        for model, counts in zip(self._models, group.counts):
            model.count(batch.texts, batch.begun, counts)

    def result(self, skipped: Counter[str]) -> Stats:
        """The counts so far."""
        rows = [
            _measures(name, group, model, counts)
            for name, group in self._groups.items()
            for model, counts in zip(self._models, group.counts)
        ]
        usage = [model.usage() for model in self._models]
        total = [_total(each, rows[number :: len(usage)]) for number, each in enumerate(usage)]
        left_out = {kind: number for kind, number in sorted(skipped.items()) if number}
        return Stats(usage, rows, total, left_out)


class _Counts:
    """The counts of one tokenizer in one group, so far."""

    def __init__(self) -> None:
        self.tokens = self.pieces = self.single_byte = self.partial = 0
        self.used: Ids = np.zeros(0, dtype=np.int64)  # ascending


class _Group:
    """The counts of one group, so far."""

    def __init__(self, models: int) -> None:
        self.texts = self.bytes = self.characters = self.words = self.undecodable_bytes = 0
        self.counts = [_Counts() for _ in range(models)]


def _measures(name: str, group: _Group, model: _Model, counts: _Counts) -> Measures:
    return Measures(
        group=name,
        tokenizer=model.name,
        texts=group.texts,
        bytes=group.bytes,
        characters=group.characters,
        words=group.words,
        undecodable_bytes=group.undecodable_bytes,
        tokens=counts.tokens,
        pieces=counts.pieces,
        single_byte_tokens=counts.single_byte,
        partial_tokens=counts.partial,
        used_tokens=int(model.for_text[counts.used].sum()),
    )


def _total(usage: Usage, rows: list[Measures]) -> Measures:
    """The sum of a tokenizer's rows."""
    names = {each.name for each in dataclasses.fields(Measures)}.difference(_NOT_SUMMED)
    sums = {name: sum(getattr(row, name) for row in rows) for name in names}
    return Measures("total", usage.tokenizer, **sums, used_tokens=usage.used_tokens)


class _Model:
    """One tokenizer, and how often each of its tokens was used."""

    def __init__(self, name: str, tokenizer: Tokenizer, parse_special: bool, added: list[int]) -> None:
        self.name = name
        self._tokenizer = tokenizer
        self._parse_special = parse_special
        self._added = added
        self.counts: Ids = np.zeros(tokenizer.vocab_size, dtype=np.int64)
        attributes = np.array(tokenizer.vocabulary.attributes, dtype=np.int64)
        self.for_text: npt.NDArray[np.bool_] = attributes & _NOT_FOR_TEXT == 0
        self._kinds = np.full(tokenizer.vocab_size, _UNSEEN, dtype=np.int8)

    def count(self, texts: list[bytes], begun: int, counts: _Counts) -> None:
        """Count the tokens of texts, of which `begun` begin here."""
        for token in self._added:
            self.counts[token] += begun
        counts.tokens += begun * len(self._added)
        ids, times = self._tally(self._ids(texts, continues=not begun))
        for token in ids[self._kinds[ids] == _UNSEEN].tolist():
            self._kinds[token] = _kind(self._tokenizer.token_to_piece(token, special=False))
        kinds = np.bincount(self._kinds[ids], weights=times, minlength=_PARTS + 1)
        self.counts[ids] += times
        counts.tokens += int(times.sum())
        counts.single_byte += int(kinds[_SINGLE_BYTE] + kinds[_SINGLE_PART])
        counts.partial += int(kinds[_SINGLE_PART] + kinds[_PARTS])
        # a model without words has one, which continues in the next part
        if begun or not self._tokenizer.vocabulary.tokenizer_model.is_one_word:
            counts.pieces += sum(map(self._tokenizer.count_words, texts))
        added = np.array(self._added[: begun * len(self._added)], dtype=np.int64)
        used = np.concatenate([ids, added])
        new = np.unique(used[~np.isin(used, counts.used)])  # few, so that no chunk sorts all that were used
        counts.used = np.insert(counts.used, np.searchsorted(counts.used, new), new)

    def usage(self) -> Usage:
        return Usage(self.name, self._tokenizer.pre, self._tokenizer.vocab_size, self.counts, self.for_text)

    def _ids(self, texts: list[bytes], continues: bool) -> npt.NDArray[np.integer]:
        if len(texts) == 1:
            return self._tokenizer.encode_to_numpy(
                texts[0], add_special=False, parse_special=self._parse_special, continues=continues
            )
        rows = self._tokenizer.encode_batch(texts, add_special=False, parse_special=self._parse_special)
        return np.fromiter(chain.from_iterable(rows), dtype=np.int32)

    def _tally(self, ids: npt.NDArray[np.integer]) -> tuple[Ids, Ids]:
        """The distinct ids, ascending, and how often each occurs."""
        if len(ids) < self._tokenizer.vocab_size // 8:  # sorting these is faster than a pass over all tokens
            distinct, times = np.unique(ids, return_counts=True)
            return distinct.astype(np.int64), times.astype(np.int64)
        counted = np.bincount(ids, minlength=self._tokenizer.vocab_size)
        used = counted.nonzero()[0]
        return used, counted[used]


def _kind(piece: bytes) -> int:
    """The kind of bytes that a token decodes to; for a control token none."""
    try:
        piece.decode()
    except UnicodeDecodeError:
        return _SINGLE_PART if len(piece) == 1 else _PARTS
    return _SINGLE_BYTE if len(piece) == 1 else _WHOLE
