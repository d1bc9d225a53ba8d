"""The page that replays a training: a step for each merge, shown one at a time without any script."""

from __future__ import annotations

import re

from ggufbpe import train
from ggufbpe.analysis.views.training_page import training_html


def page(record: int) -> str:
    counts = {"low": 5, "lower": 2, "newest": 6, "widest": 3}
    options = {"vocab_size": 13, "pre": "words", "units": "chars", "ties": "first-seen"}
    return "".join(training_html(train(word_counts=counts, **options, record=record)))  # type: ignore[arg-type]


def text_of(part: str) -> str:
    return " ".join(re.sub("<[^>]*>", " ", part).split())


def test_each_merge_is_a_step_with_what_was_there() -> None:
    shown = page(100)
    steps = re.findall(r'<section class="step">(.*?)</section>', shown, re.DOTALL)
    assert len(steps) == 3
    assert "<script" not in shown
    assert [len(re.findall(f'id="step-{number}"', shown)) for number in (1, 2, 3, 4)] == [1, 1, 1, 0]
    first = text_of(steps[0])
    assert first.startswith("next last 1. e + s = es 9 times, in 2 words")
    assert "1 other pair is as frequent; this one goes first, since it comes before s t in the text." in first
    assert "6 n e w e s t n e w es t" in first  # before and after
    assert text_of(steps[2]).startswith("first back 3. l + o = lo")


def test_how_many_are_replayed_is_said() -> None:
    shown = text_of(page(2))
    assert "3 merges, learned from 4 distinct words. The first 2 are replayed." in shown


def test_one_of_each_is_singular() -> None:
    found = train(word_counts={"ab": 1}, vocab_size=3, pre="none", units="chars", record=9)
    shown = text_of("".join(training_html(found)))
    assert "1 merge, learned from 1 distinct word." in shown
    assert "a + b = ab 1 time, in 1 word" in shown


def test_text_of_a_corpus_is_escaped() -> None:
    counts = {"<b>": 2}
    found = train(word_counts=counts, vocab_size=5, pre="none", units="chars", record=9)
    assert "<b>" not in "".join(training_html(found))


def test_the_alphabet_of_bytes_is_explained_where_tokens_are_written_in_it() -> None:
    said = "Ġ is a space"
    assert said not in page(100)
    assert said in "".join(training_html(train(["low low"], vocab_size=258, record=10)))
