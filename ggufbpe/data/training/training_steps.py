"""Records how merges are learned: the words as they are cut now, the best pair, the runners-up, and how ties fall.

A second, plain run of `Learner` is watched for as many merges as are asked for, so that learning itself stays fast.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import nsmallest
from itertools import pairwise
from typing import NamedTuple

from .learn_merges import Learner

RUNNERS_UP = 4
_WORDS, _CUTS = 6, 24  # words shown of a step, and followed through all steps


class PairCount(NamedTuple):
    """A pair of neighbouring symbols, `left` and `right`, and how often it occurs in the words (`frequency`)."""

    left: str
    right: str
    frequency: int


class CutWord(NamedTuple):
    """A word as it is cut now, into `symbols`, and how often it occurs (`frequency`)."""

    symbols: tuple[str, ...]
    frequency: int


class TrainingStep(NamedTuple):
    """What was there before a merge, and why it was taken.

    `merge` is the pair, `token` the result, and `runners_up` are the next pairs. `words` are the most frequent of the
    `word_count` words that contain the pair, `cuts` the words that are followed through all steps. `tied` counts the
    other pairs of equal frequency, and `tie` says why the pair goes first among them; "" without a tie.
    """

    merge: PairCount
    token: str
    runners_up: tuple[PairCount, ...]
    tied: int
    tie: str
    words: tuple[CutWord, ...]
    word_count: int
    cuts: tuple[CutWord, ...]


class Recorder:
    """Records the first `most` merges of a `Learner`."""

    def __init__(self, learner: Learner, tokens: Sequence[str], ties: str, most: int) -> None:
        """`tokens` are the learner's, which grow with its merges; `ties` is its order of ties."""
        self._learner = learner
        self._tokens = tokens
        self._ties = ties
        self._most = most
        self._followed: list[int] = []
        self.steps: list[TrainingStep] = []

    def record(self) -> list[TrainingStep]:
        """Let the learner learn, and return the steps."""
        self._learner.learn(watch=self._watch)
        return self.steps

    def _watch(self, best: tuple[int, int]) -> bool:
        """Record the merge of the pair `best` of ids; False if no more are wanted."""
        if len(self.steps) >= self._most:
            return False
        learner = self._learner
        words = learner.words()
        if not self.steps:
            several = [index for index, (symbols, _) in enumerate(words) if len(symbols) > 1]
            self._followed = nsmallest(_CUTS, several, key=lambda index: -words[index][1])
        counts = learner.counts
        frequency = counts[best]
        others = [
            pair
            for pair, count in counts.items()
            if 0 < count <= frequency and pair != best and learner.is_allowed(*pair)
        ]
        following = nsmallest(RUNNERS_UP, others, key=lambda pair: (-counts[pair], learner.tie_order(pair)))
        tied = sum(counts[pair] == frequency for pair in others)
        holding = [index for index, (symbols, _) in enumerate(words) if best in pairwise(symbols)]
        shown = nsmallest(_WORDS, holding, key=lambda index: -words[index][1])
        left, right = self._texts(best)
        self.steps.append(
            TrainingStep(
                PairCount(left, right, frequency),
                left + right,
                tuple(PairCount(*self._texts(pair), counts[pair]) for pair in following),
                tied,
                self._reason(best, following[0]) if tied else "",
                tuple(self._cut(words[index]) for index in shown),
                len(holding),
                tuple(self._cut(words[index]) for index in self._followed),
            )
        )
        return True

    def _texts(self, pair: tuple[int, int]) -> tuple[str, str]:
        return self._tokens[pair[0]], self._tokens[pair[1]]

    def _cut(self, word: tuple[Sequence[int], int]) -> CutWord:
        symbols, count = word
        return CutWord(tuple(self._tokens[symbol] for symbol in symbols), count)

    def _reason(self, best: tuple[int, int], second: tuple[int, int]) -> str:
        """Why `best` goes before `second`, which is as frequent."""
        side = 0 if best[0] != second[0] else 1
        which = ("left", "right")[side]
        one, other = _quoted(self._tokens[best[side]]), _quoted(self._tokens[second[side]])
        if self._ties == "lowest-ids":
            ids = best[side], second[side]
            return (
                f"its {which} token {one} has the id {ids[0]}, which is lower than that of {other}, {ids[1]}"
            )
        if self._ties == "lexicographic":
            return f"its {which} token {one} comes before {other} in the order of bytes"
        return f"it comes before {' '.join(map(_quoted, self._texts(second)))} in the text"


def _quoted(token: str) -> str:
    """Return a token of a sentence, in quotes unless it looks like a word.

    >>> _quoted("low"), _quoted(","), _quoted("a b")
    ('low', "','", "'a b'")
    """
    return token if token.isalnum() else f"'{token}'"


def replayed(steps: Sequence[TrainingStep]) -> Iterator[tuple[TrainingStep, tuple[CutWord, ...]]]:
    """Yield each step with the followed words as they are cut after it; those of the last step are merged here."""
    for step, following in pairwise(steps):
        yield step, following.cuts
    if steps:
        yield steps[-1], tuple(_merged(word, steps[-1].merge) for word in steps[-1].cuts)


def _merged(word: CutWord, pair: PairCount) -> CutWord:
    """A word after a merge.

    >>> _merged(CutWord(("a", "a", "a", "b"), 1), PairCount("a", "a", 1)).symbols
    ('aa', 'a', 'b')
    """
    symbols: list[str] = []
    rest = list(word.symbols)
    while rest:
        if rest[:2] == [pair.left, pair.right]:
            rest[:2] = []
            symbols.append(pair.left + pair.right)
        else:
            symbols.append(rest.pop(0))
    return word._replace(symbols=tuple(symbols))
