"""Shows how several tokenizers split a text as an HTML page."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from ..._util.wording import counted
from ..verify.side_by_side import Comparison
from .html_page import rendered

_STRETCHES_SHOWN, _TOKENS_SHOWN = 2000, 500  # on a page, and of a stretch, unless all are asked for


def result_in_words(compared: Comparison) -> str:
    """Return the size of the text, and in how many places the models split it differently."""
    places = compared.stretches.differing
    found = f"cut differently in {counted(places, 'place')}" if places else "cut alike by all"
    return f"{counted(len(compared.text), 'byte')}, {found}"


def rates(compared: Comparison) -> list[str]:
    """Return the characters per token of each model, as text; "-" for one without tokens."""
    characters = len(compared.text.decode("utf-8", "replace"))
    return [f"{characters / count:.2f}" if count else "-" for count in compared.counts]


def comparison_html(compared: Comparison, everything: bool = False) -> Iterator[str]:
    """Yield one HTML file in pieces: a table of the models, and the text with each model's tokens, aligned.

    Of a long text, the page has the first 2000 stretches, and of each the first 500 tokens, unless `everything` is
    asked for. `NotInstalledError` without jinja2.
    """
    total = len(compared.stretches)
    shown = total if everything else min(total, _STRETCHES_SHOWN)
    return rendered(
        "compare.html",
        title="How models split one text",
        model="",
        is_same=compared.is_same,
        verdict=result_in_words(compared),
        names=compared.names,
        numbers=zip(compared.names, compared.counts, rates(compared)),
        stretches=islice(compared.stretches, shown),
        shown=shown,
        total=total,
        tokens_shown=max(compared.counts, default=0) if everything else _TOKENS_SHOWN,
    )
