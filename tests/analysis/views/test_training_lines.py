"""How merges are shown as lines (views/training_lines.py)."""

from __future__ import annotations

import pytest

from ggufbpe import train
from ggufbpe.analysis.views.explain_cells import quoted
from ggufbpe.analysis.views.training_lines import token_shown, trace_lines
from ggufbpe.cli._classic import classic_vocabulary

WORDS = {"low": 5, "lower": 2, "lowest": 1}


@pytest.mark.parametrize("width", [50, 80, 200, None])
def test_lines_fit_and_only_recorded_merges_are_shown_in_full(width: int | None) -> None:
    found = train(word_counts=WORDS, vocab_size=12, pre="words", units="chars", record=2)
    lines = list(trace_lines(found, color=False, width=width))
    assert [line[:2] for line in lines if not line.startswith(" ")] == [
        f"{n}." for n in range(1, len(found.trace) + 1)
    ]
    assert sum("cut now" in line for line in lines) == 2
    assert all(len(line) <= (width or 1000) for line in lines)
    assert any("\x1b" in line for line in trace_lines(found, color=True, width=80))


@pytest.mark.parametrize(("token", "said"), [("a", "a"), ("a b", "'a b'"), ("\x1b", "\\x1b"), ("Ġa", "Ġa")])
def test_a_token(token: str, said: str) -> None:
    assert token_shown(token) == said


@pytest.mark.parametrize(("text", "said"), [("a", "'a'"), ("it's", '"it\'s"'), ("'\"", "'\\'\"'")])
def test_quotes_can_be_told_from_those_of_the_text(text: str, said: str) -> None:
    assert quoted(text).plain == said


def test_a_gguf_is_no_classic_vocabulary() -> None:
    import argparse

    for model in (None, "model.gguf", "no-such.json"):
        assert classic_vocabulary(argparse.Namespace(model=model)) is None
