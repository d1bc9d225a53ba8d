"""Checks of a trace: its fragments join to the text, and its merges can be replayed."""

from __future__ import annotations

from itertools import pairwise

from ggufbpe.models.bpe.merge import NO_MERGE, PairRanks
from ggufbpe.models.tracers.trace_types import Merge
from ggufbpe.tokenizer.trace import Trace


def check_fragments(found: Trace) -> None:
    """The fragments are the text, and each token lies in its own."""
    ends = [fragment.end for fragment in found.fragments]
    assert [fragment.start for fragment in found.fragments] == ([0, *ends[:-1]] if ends else [])
    assert (ends[-1] if ends else 0) == len(found.text)
    for token in found.tokens:
        fragment = found.fragments[token.fragment]
        assert fragment.start <= token.start <= token.end <= fragment.end
        assert (token.word is None) == (fragment.kind != "text")


def replayed(ranks: PairRanks, written: str, merges: tuple[Merge, ...]) -> list[str]:
    """The symbols after `merges`, each of which must be the first of the lowest rank at its time."""
    symbols = list(enumerate(written))
    for merge in merges:
        pairs = list(pairwise(symbols))
        lowest, position = min((ranks[a, b], at) for (at, a), (_, b) in pairs)
        assert (merge.rank, merge.position) == (lowest, position)
        index = [at for at, _ in symbols].index(position)
        assert (symbols[index][1], symbols[index + 1][1]) == (merge.left, merge.right)
        symbols[index : index + 2] = [(position, merge.left + merge.right)]
    assert all(ranks[a, b] == NO_MERGE for (_, a), (_, b) in pairwise(symbols))
    return [text for _, text in symbols]
