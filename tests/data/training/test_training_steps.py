"""What is recorded of each merge: against counting everything anew, and what is said of ties."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from ggufbpe import train
from ggufbpe.data.training.learn_merges import TIES
from ggufbpe.data.training.train_vocabulary import TrainedVocabulary
from ggufbpe.data.training.training_steps import RUNNERS_UP, CutWord, replayed

WORDS = {"low": 5, "lower": 2, "newer": 3, "newest": 1, "widest": 1}


def trained(ties: str, record: int = 100, **options: int) -> TrainedVocabulary:
    return train(
        word_counts=WORDS, vocab_size=20, pre="words", units="chars", ties=ties, record=record, **options
    )


@pytest.mark.parametrize("ties", TIES)
def test_steps_are_those_of_the_merges_counted_anew(ties: str) -> None:
    found = trained(ties)
    assert [(*step.merge, step.token) for step in found.steps] == list(map(tuple, found.trace))
    for step in found.steps:
        counts: Counter[tuple[str, str]] = Counter()
        for symbols, count in step.cuts:
            for pair in pairwise(symbols):
                counts[pair] += count
        best = max(counts.values())
        left, right, frequency = step.merge
        assert counts[left, right] == frequency == best
        assert step.tied == list(counts.values()).count(best) - 1
        del counts[left, right]
        assert [each.frequency for each in step.runners_up] == sorted(counts.values(), reverse=True)[
            :RUNNERS_UP
        ]
        holding = [word for word in step.cuts if (left, right) in pairwise(word.symbols)]
        assert (list(step.words), step.word_count) == (
            sorted(holding, key=lambda word: -word.frequency),
            len(holding),
        )
        assert bool(step.tie) == bool(step.tied)


@pytest.mark.parametrize(
    ("ties", "said"),
    [
        ("lowest-ids", "its left token l has the id 3, which is lower than that of o, 5"),
        ("lexicographic", "its left token l comes before o in the order of bytes"),
        ("first-seen", "it comes before o w in the text"),
    ],
)
def test_why_a_tie_fell_so(ties: str, said: str) -> None:
    assert trained(ties).steps[0].tie == said


@pytest.mark.parametrize(
    ("ties", "said"),
    [
        ("lowest-ids", "its left token ' ' has the id 0, which is lower than that of ',', 1"),
        ("lexicographic", "its left token ' ' comes before ',' in the order of bytes"),
        ("first-seen", "it comes before ',' b in the text"),
    ],
)
def test_spaces_and_punctuation_are_quoted_in_a_tie(ties: str, said: str) -> None:
    texts = [",b", " c"] if ties != "first-seen" else [" c", ",b"]
    found = train(texts, vocab_size=6, pre="none", units="chars", ties=ties, record=1)
    assert found.steps[0].tie == said


def test_the_replay_ends_as_words_are_encoded() -> None:
    found = trained("first-seen")
    *_, (_, after) = replayed(found.steps)
    assert [word.symbols for word in after] == [
        tuple(found.tokenize(word)) for word in sorted(WORDS, key=lambda word: -WORDS[word])
    ]


def test_only_as_many_as_asked_for_and_learning_is_as_without() -> None:
    found, plain = trained("lowest-ids", record=3), trained("lowest-ids", record=0)
    assert (len(found.steps), plain.steps) == (3, [])
    assert (found.trace, found.tokens) == (plain.trace, plain.tokens)
    assert list(replayed(plain.steps)) == []
    assert found.steps[0].cuts[0] == CutWord(("l", "o", "w"), 5)


def test_limits_hold_for_runners_up() -> None:
    longest = trained("lowest-ids", max_token_length=2)
    pairs = [each for step in longest.steps for each in step.runners_up]
    assert pairs
    assert max(len(each.left + each.right) for each in pairs) == 2
