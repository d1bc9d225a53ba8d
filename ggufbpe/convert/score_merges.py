"""Turns scores of tokens into ranked merges, and back: SentencePiece's byte pair encoding in a file that has merges.

llama.cpp joins two neighbours whose joined text is a token: those with the best score, of equal scores the leftmost.
A library with merges joins the pair of the lowest rank, of equal pairs the leftmost. So every way to cut a token into
two tokens is a merge, and tokens with a better score come first. Two pairs of equal score may overlap in a text, one
ending with what the other begins with; then the one that ends with it must come first, since it is to the left. Where
that leads in a circle, no order is right for every text.

Tokens that are joined from characters that are not tokens have no merges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

Pair = tuple[str, str]


class ScoreMerges(NamedTuple):
    """Merges by rank; tokens whose order among equal scores depends on the text; those that no merges make."""

    pairs: list[Pair]
    circular: list[str]
    unmade: list[str]


def merges_by_scores(
    tokens: Iterable[str], ranks: Sequence[int], token_to_id: Mapping[str, int]
) -> ScoreMerges:
    """The merges that join what `ranks`, one for each token and 0 for the best score, would join.

    >>> merges_by_scores(["a", "b", "ab", "abb"], [9, 9, 1, 0], {"a": 0, "b": 1, "ab": 2, "abb": 3}).pairs
    [('ab', 'b'), ('a', 'b')]
    """
    by_rank: dict[int, list[Pair]] = {}
    unmade = []
    for text, rank in zip(tokens, ranks):
        for at in range(1, len(text)):
            left, right = text[:at], text[at:]
            if left in token_to_id and right in token_to_id:
                by_rank.setdefault(rank, []).append((left, right))
            elif (at == 1 or left in token_to_id) and (at == len(text) - 1 or right in token_to_id):
                unmade.append(text)
    pairs: list[Pair] = []
    circular: dict[str, None] = {}
    for rank in sorted(by_rank):
        ordered, is_circular = _ordered(by_rank[rank])
        pairs += ordered
        circular.update(dict.fromkeys(map("".join, ordered if is_circular else ())))
    return ScoreMerges(pairs, list(circular), list(dict.fromkeys(unmade)))


def _ordered(pairs: list[Pair]) -> tuple[list[Pair], bool]:
    """Pairs of equal score, each before those that begin with what it ends with; and whether they form a circle.

    In a circle the longer left side comes first: in a run of one character, the left end grows.
    """
    pairs = sorted(pairs, key=lambda pair: (-len(pair[0]), -len(pair[1]), pair))
    starts = Counter(left for left, _ in pairs)
    if not any(starts[right] > (left == right) for left, right in pairs):
        return pairs, False
    # A node of one text stands between the pairs that end with it and those that begin with it.
    graph: TopologicalSorter[Pair | str] = TopologicalSorter()
    doubled = {left for left, right in pairs if left == right}
    for pair in pairs:
        left, right = pair
        graph.add(pair, left)
        if left != right:
            graph.add(right, pair)
            if left in doubled:
                graph.add(pair, (left, left))
    try:
        return [node for node in graph.static_order() if isinstance(node, tuple)], False
    except CycleError:
        return pairs, True


class MergeScores(NamedTuple):
    """Scores of the tokens that merges make, and the tokens that share one because their merges interleave."""

    scores: dict[str, float]
    shared: list[str]


def scores_by_merges(pairs: Sequence[Pair]) -> MergeScores:
    """Scores that join as these merges do, -1 for the token of the first, as far as such scores exist.

    >>> scores_by_merges([("ab", "b"), ("a", "b")])
    MergeScores(scores={'abb': -1.0, 'ab': -2.0}, shared=[])
    >>> scores_by_merges([("aa", "a"), ("a", "a"), ("a", "aa")]).shared
    ['aaa', 'aa']
    """
    last = {left + right: number for number, (left, right) in enumerate(pairs)}
    scores: dict[str, float] = {}
    shared: list[str] = []
    group: list[str] = []
    group_end = -1
    score = 0.0
    for number, (left, right) in enumerate(pairs):
        text = left + right
        if text in scores:
            continue
        if number > group_end:
            shared += group if len(group) > 1 else []
            group = []
            score -= 1.0
        group.append(text)
        group_end = max(group_end, last[text])
        scores[text] = score
    return MergeScores(scores, shared + (group if len(group) > 1 else []))
