"""The page of a comparison: the numbers of each model, and the text with the tokens of all, aligned."""

from __future__ import annotations

import re

import pytest
from conftest import GPT2

from ggufbpe import GGUFWarning, Tokenizer, compare
from ggufbpe.analysis.views.compare_page import comparison_html


def page(text: str, everything: bool = False) -> str:
    tok = Tokenizer.from_gguf(GPT2)
    with pytest.warns(GGUFWarning, match="qwen2"):
        other = tok.with_overrides({"tokenizer.ggml.pre": "qwen2"})
    models = {"gpt-2": tok, "<qwen>": other}
    return "".join(comparison_html(compare(models, text), everything))


def words(shown: str) -> str:
    return " ".join(re.sub("<[^>]*>", " ", shown.partition("<h1>")[2]).split())


def test_numbers_and_aligned_tokens() -> None:
    shown = words(page("in 2024"))
    assert "7 bytes, cut differently in 1 place" in shown
    assert "tokens chars/token model 2 3.50 gpt-2 6 1.17 &lt;qwen&gt;" in shown
    assert shown.endswith(
        "byte 0 gpt-2 in 259 &lt;qwen&gt; in 259 byte 2 gpt-2 2024 48609 &lt;qwen&gt; 220 2 17 0 15 2 17 4 19"
    )


def test_only_tokens_of_places_that_differ_are_marked() -> None:
    assert re.findall(r'class="token differs', page("Hello")) == []
    marked = re.findall(r'class="token differs[^>]*>(.*?)</bdi>', page("in 2024"))
    assert len(marked) == 1 + 5


def test_what_a_text_has_is_escaped_and_nothing_runs() -> None:
    shown = page("<script>\x1b")
    assert "<script" not in shown
    assert "\x1b" not in shown
    assert "default-src 'none'" in shown


@pytest.mark.parametrize(("everything", "said"), [(False, ["… and 100 more"] * 2), (True, [])])
def test_a_long_stretch_is_shown_in_part(everything: bool, said: list[str]) -> None:
    assert re.findall("… and [0-9,]+ more", words(page(" a" * 600, everything))) == said


@pytest.mark.parametrize(
    ("everything", "shown"), [(False, "the first 2,000 of 2,200"), (True, "Stretches 2,200")]
)
def test_many_stretches_are_shown_in_part(everything: bool, shown: str) -> None:
    assert shown in words(page(" a 12" * 1100, everything))
