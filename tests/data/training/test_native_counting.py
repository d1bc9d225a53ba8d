"""The compiled counter and learner do what the ones in Python do, on any number of threads."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import missing
from training_cases import EVERY_SCRIPT, source_text

from ggufbpe import train
from ggufbpe._util.progress import Progress
from ggufbpe.data.training.learn_merges import TIES
from ggufbpe.data.training.native_counting import is_there
from ggufbpe.data.training.train_vocabulary import TrainedVocabulary


@pytest.fixture(autouse=True)
def _built() -> None:
    if not is_there():
        missing("the compiled module is not built")


def by_reference(*arguments: Any, **options: Any) -> TrainedVocabulary:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ggufbpe.data.training.train_vocabulary.is_there", lambda: False)
        return train(*arguments, **options)


@pytest.mark.parametrize("ties", TIES)
def test_number_of_threads_does_not_matter(ties: str) -> None:
    text = EVERY_SCRIPT + source_text()
    texts = [text, text[1000:], "more text"]
    options: dict[str, Any] = {"vocab_size": 1500, "ties": ties, "pre": "gpt-4o", "min_frequency": 2}
    expected = by_reference(texts, **options, max_token_length=7)
    for threads in (None, 1, 2, 5):
        found = train(texts, **options, max_token_length=7, threads=threads)
        assert (found.trace, found.tokens, found.word_count) == (
            expected.trace,
            expected.tokens,
            expected.word_count,
        )


FORMS: dict[str, dict[str, Any]] = {
    "words": {"pre": "words", "units": "chars", "end_of_word": "</w>", "unk": "<unk>", "limit_alphabet": 40},
    "characters": {"pre": "gemma4", "special": ["<eos>"], "max_token_length": 8},
    "whitespace": {"pre": "whitespace"},
    "lines": {"pre": "none", "max_token_length": 6},
    "special tokens": {"pre": "llama-bpe", "special": ["def"], "user_defined": ["return", "    "]},
    "counted words": {"word_counts": {"def": 3, "zebra": 1000}},
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_give_the_same(form: str) -> None:
    texts = [EVERY_SCRIPT, source_text()[:60_000]]
    found, expected = (make(texts, vocab_size=900, **FORMS[form]) for make in (train, by_reference))
    assert found.trace == expected.trace
    assert found.tokens == expected.tokens
    assert len(found.trace) > 100


def test_progress_grows_and_ends_at_what_was_done() -> None:
    seen: list[Progress] = []
    found = train([source_text()], vocab_size=3000, progress=seen.append)
    assert [told[:2] for told in seen] == sorted(told[:2] for told in seen)
    assert seen[-1] == Progress("merge", len(found.trace), 3000 - 256, "merges")
