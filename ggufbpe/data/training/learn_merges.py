"""Learns merges from words with counts: the training of byte pair encoding.

Repeatedly the most frequent pair of neighbouring symbols in all words becomes one symbol, until the vocabulary has its
size or no pair is left. Every occurrence of a pair counts, even if they overlap: "aaa" has two of (a, a), as in minbpe
and in HF tokenizers.

Only the words that contain the chosen pair are counted again. Pairs wait in a heap under the count that they had when
they were pushed. Counts fall without an update of the heap: a pair popped with an outdated count is pushed again with
the new one. A pair whose count rises is pushed again.

Among pairs of equal count, the order of ties decides:

- lowest-ids: the smaller id on the left, then on the right, as in HF tokenizers;
- lexicographic: the smaller left token, then the smaller right one, by bytes;
- first-seen: the pair that comes first in the text as merged so far, as in minbpe.

With a seed, a pair may join to an existing token, by other merges. It becomes a merge, as the encoder needs it, but
not a token; and earlier merges that now apply again are applied at once, as the encoder does.

The compiled engine has its own learner, which is tested against `Learner`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

TIES = ("lowest-ids", "lexicographic", "first-seen")
_REPORT_EVERY = 64  # merges
Pair = tuple[int, int]  # of the ids of neighbouring symbols


class LearnedMerge(NamedTuple):
    """The pair of ids that is joined, how often it occurred in the words, and the id of the result."""

    left: int
    right: int
    frequency: int
    token: int


class Rules(NamedTuple):
    """What is learned, and when learning stops."""

    vocab_size: int
    ties: str = "lowest-ids"
    min_frequency: int = 1
    max_token_length: int | None = None  # in units
    forbidden: frozenset[str] = frozenset()  # texts that no merge may produce: those of special tokens


class Learner:
    """Learns merges from words; `tokens` grows with them.

    >>> tokens = list("abcd")
    >>> learner = Learner(tokens, [b"a", b"b", b"c", b"d"], [1] * 4, [], Rules(7))
    >>> learner.add_words([[0, 0, 0, 1, 3, 0, 0, 0, 1, 0, 2]], [1])
    >>> [tuple(merge) for merge in learner.learn()]
    [(0, 0, 4, 4), (0, 1, 2, 5), (4, 5, 2, 6)]
    >>> tokens[4:]
    ['aa', 'ab', 'aaab']
    """

    def __init__(
        self,
        tokens: list[str],
        raw: list[bytes],
        lengths: list[int],
        known: Sequence[tuple[int, int, int]],
        rules: Rules,
    ) -> None:
        """`raw` and `lengths`: the bytes and units of each token.

        `known`: existing merges, (left, right, token) by rank; words no longer contain their pairs.
        """
        self._tokens = tokens
        self._raw = raw
        self._lengths = lengths
        self._limits = rules
        self._ids = {token: index for index, token in enumerate(tokens)}
        self._rules = {(left, right): (rank, token) for rank, (left, right, token) in enumerate(known)}
        self._words: list[list[int]] = []
        self._word_counts: list[int] = []
        self.counts: dict[Pair, int] = {}  # how often each pair occurs now
        self._where: dict[Pair, list[int]] = {}  # words, ascending; the pair may no longer occur there
        self._passed: dict[Pair, int] = {}  # how many of these words certainly lack the pair

    def add_words(self, words: list[list[int]], counts: Sequence[int]) -> None:
        """Add words, as ids of their symbols; they are changed in place."""
        for symbols, count in zip(words, counts):
            for pair in pairwise(symbols):
                self._add(pair, count, len(self._words))
            self._words.append(symbols)
            self._word_counts.append(count)

    def learn(
        self,
        progress: Callable[[int], object] | None = None,
        watch: Callable[[Pair], bool] | None = None,
    ) -> list[LearnedMerge]:
        """The merges, in order. `progress` is called now and then with the number of merges.

        `watch` is called with each pair of ids before it is merged; learning ends where that returns False.
        """
        rules = self._limits
        place = self.tie_order
        least = max(rules.min_frequency, 1)
        heap = [(-count, place(pair), pair) for pair, count in self.counts.items() if count >= least]
        heapq.heapify(heap)
        merges: list[LearnedMerge] = []
        while heap and len(self._tokens) < rules.vocab_size:
            before = heapq.heappop(heap)
            pair = before[-1]
            count = self.counts.get(pair, 0)
            if count < least:
                continue
            now = (-count, place(pair), pair)
            if now != before:
                heapq.heappush(heap, now)
                continue
            if not self.is_allowed(*pair):
                continue
            if watch is not None and not watch(pair):
                break
            merge, changed_pairs = self._merge(pair, count)
            merges.append(merge)
            for changed in changed_pairs:
                risen = self.counts.get(changed, 0)
                if risen >= least:
                    heapq.heappush(heap, (-risen, place(changed), changed))
            if progress is not None and len(merges) % _REPORT_EVERY == 0:
                progress(len(merges))
        if progress is not None:
            progress(len(merges))
        return merges

    # ---- what a watcher looks at ----------------------------------------------------------------

    def words(self) -> list[tuple[list[int], int]]:
        """The words as they are cut now, with their counts."""
        return list(zip(self._words, self._word_counts))

    @property
    def tie_order(self) -> Callable[[Pair], Any]:
        """Gives the place of a pair among equally frequent ones: the least goes first."""
        ties: dict[str, Callable[[Pair], Any]] = {
            "lowest-ids": lambda pair: pair,
            "lexicographic": lambda pair: (self._raw[pair[0]], self._raw[pair[1]]),
            "first-seen": self._first_place,
        }
        return ties[self._limits.ties]

    def _first_place(self, pair: Pair) -> tuple[int, int]:
        """The first word in which the pair occurs now, and at which symbol, in units."""
        words = self._where[pair]
        for number in range(self._passed.get(pair, 0), len(words)):
            offset = 0
            for there in pairwise(self._words[words[number]]):
                if there == pair:
                    self._passed[pair] = number
                    return words[number], offset
                offset += self._lengths[there[0]]
        raise AssertionError("a pair with a count occurs somewhere")

    # ---- merging --------------------------------------------------------------------------------

    def is_allowed(self, left: int, right: int) -> bool:
        """Whether a pair may be merged: the result is neither too long nor the text of a special token."""
        rules = self._limits
        length = self._lengths[left] + self._lengths[right]
        if rules.max_token_length is not None and length > rules.max_token_length:
            return False
        return not rules.forbidden or self._tokens[left] + self._tokens[right] not in rules.forbidden

    def _joined(self, left: int, right: int) -> tuple[int, bool]:
        """The id of the token that a pair joins to, and whether it is new."""
        text = self._tokens[left] + self._tokens[right]
        if text in self._ids:
            return self._ids[text], False
        self._ids[text] = len(self._tokens)
        self._tokens.append(text)
        self._raw.append(self._raw[left] + self._raw[right])
        self._lengths.append(self._lengths[left] + self._lengths[right])
        return self._ids[text], True

    def _merge(self, pair: Pair, count: int) -> tuple[LearnedMerge, Iterable[Pair]]:
        """Merge a pair in all words; also returns the pairs that this created."""
        left, right = pair
        token, is_new = self._joined(left, right)
        self._rules[pair] = (len(self._rules), token)
        words = self._where.pop(pair)
        self._passed.pop(pair, None)
        risen: dict[Pair, None] = {}
        for index in words:
            self._merge_in(index, left, right, token, risen)
            if not is_new:
                self._settle(index, risen)
        self.counts.pop(pair, None)
        if not is_new:
            for changed in risen:  # their words are no longer in order
                self._where[changed] = sorted(set(self._where.get(changed, ())))
                self._passed.pop(changed, None)
        return LearnedMerge(left, right, count, token), risen

    def _merge_in(self, index: int, left: int, right: int, token: int, risen: dict[Pair, None]) -> None:
        symbols, count = self._words[index], self._word_counts[index]
        counts = self.counts
        merged: list[int] = []
        position, last = 0, len(symbols) - 1
        while position <= last:
            symbol = symbols[position]
            if symbol != left or position == last or symbols[position + 1] != right:
                merged.append(symbol)
                position += 1
                continue
            if merged:
                before = merged[-1]
                counts[before, left] -= count
                self._add((before, token), count, index)
                risen[before, token] = None
            if position + 2 <= last:
                after = symbols[position + 2]
                counts[right, after] -= count
                self._add((token, after), count, index)
                risen[token, after] = None
            merged.append(token)
            position += 2
        self._words[index] = merged

    def _settle(self, index: int, risen: dict[Pair, None]) -> None:
        """Apply earlier merges, the lowest rank first, where a word has their pairs again."""
        symbols, count = self._words[index], self._word_counts[index]
        while known := [
            (*self._rules[pair], at) for at, pair in enumerate(pairwise(symbols)) if pair in self._rules
        ]:
            _, token, at = min(known)
            for pair in pairwise(symbols):
                self.counts[pair] -= count
            symbols[at : at + 2] = [token]
            for pair in pairwise(symbols):
                self._add(pair, count, index)
                risen[pair] = None

    def _add(self, pair: Pair, count: int, index: int) -> None:
        where = self._where.setdefault(pair, [])
        if not where or where[-1] != index:
            where.append(index)
        self.counts[pair] = self.counts.get(pair, 0) + count
