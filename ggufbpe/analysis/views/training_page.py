"""Shows how a vocabulary is learned as an HTML page that replays the merges, without any script."""

from __future__ import annotations

from collections.abc import Iterator

from ...data.training.trained_vocabulary import TrainedVocabulary
from ...data.training.training_steps import replayed
from .html_page import rendered
from .training_lines import BYTE_ALPHABET, tie_in_words, token_shown


def training_html(vocabulary: TrainedVocabulary) -> Iterator[str]:
    """Yield one HTML file in pieces: a step for each merge that was recorded. `NotInstalledError` without jinja2."""
    return rendered(
        "training.html",
        title="How a vocabulary is learned",
        model="",
        steps=list(replayed(vocabulary.steps)),
        merges=len(vocabulary.trace),
        words=vocabulary.word_count,
        alphabet=BYTE_ALPHABET if vocabulary.form.splitting.units == "bytes" else "",
        token_shown=token_shown,
        tie_in_words=tie_in_words,
    )
