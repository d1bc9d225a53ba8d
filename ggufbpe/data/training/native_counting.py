"""Counts words and learns merges in the compiled engine, with the results of word_counts.py and learn_merges.py.

The work is done without the interpreter's lock (GIL), in short turns: between turns Python checks for Ctrl-C and
reports progress. `train` decides when the compiled engine is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, chain
from typing import Any

from ... import native
from ..._util.lazy import IMPORT_LOCK
from ..._util.processors import processors
from .learn_merges import LearnedMerge, Rules
from .word_counts import Splitting

_TURN = 0.05  # seconds
_UNLIMITED = (1 << 63) - 1


def is_there() -> bool:
    """Whether the compiled engine is installed."""
    return native.native is not None


def count_natively(
    texts: Iterable[str], split: Splitting, cut: Callable[[str], Iterable[str]] | None, threads: int | None
) -> Any:
    """A `native.WordCounter` that has counted the words of `texts`, as `count_words` does."""
    with IMPORT_LOCK:
        from ...models.pretokenizers.compiled_splitter import compiled_splitter

    assert native.native is not None
    counter = native.native.WordCounter(processors() if threads is None else threads)
    compiled = compiled_splitter(split.listed)
    for text in texts:
        for part in (text,) if cut is None else cut(text):
            counter.add(compiled, split.prepared(part).encode())
    return counter


class CompiledLearner:
    """`Learner`, compiled."""

    def __init__(
        self,
        tokens: list[str],
        raw: Sequence[bytes],
        lengths: Sequence[int],
        known: Sequence[tuple[int, int, int]],
        rules: Rules,
    ) -> None:
        assert native.native is not None
        self._tokens = tokens
        self._learner = native.native.Learner(
            tokens,
            list(raw),
            list(lengths),
            [(left, right, 0, token) for left, right, token in known],
            rules.vocab_size,
            rules.ties,
            max(rules.min_frequency, 1),
            _UNLIMITED if rules.max_token_length is None else rules.max_token_length,
            list(rules.forbidden),
        )

    def add_words(self, words: Sequence[Sequence[int]], counts: Sequence[int]) -> None:
        """Give the learner all words."""
        self._learner.add_words(
            list(chain.from_iterable(words)), list(accumulate(map(len, words))), list(counts)
        )

    def add_counted(self, counter: Any, token_of_byte: list[int]) -> int:
        """Give the learner all words of a counter, written in bytes; returns how many there are."""
        count: int = self._learner.add_counted(counter, token_of_byte)
        return count

    def learn(self, progress: Callable[[int], object] | None = None) -> list[LearnedMerge]:
        """The merges, in order; `tokens` grows with them."""
        goes_on = True
        while goes_on:
            goes_on = self._learner.run(_TURN)
            if progress is not None:
                progress(len(self._learner))
        merges = [LearnedMerge(*merge) for merge in self._learner.merges()]
        for left, right, _, token in merges:
            if token == len(self._tokens):
                self._tokens.append(self._tokens[left] + self._tokens[right])
        return merges


def add_counts(counter: Any, counts: Mapping[str, int]) -> None:
    """Add words that are already counted."""
    for word, count in counts.items():
        counter.add_word(word.encode(), count)
