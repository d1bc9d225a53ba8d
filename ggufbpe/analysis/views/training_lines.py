"""Shows how a vocabulary is learned, merge by merge, as lines for a terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from ..._util.wording import counted
from ...data.training.trained_vocabulary import LearnedStep, TrainedVocabulary
from ...data.training.training_steps import CutWord, PairCount, TrainingStep
from . import terminal
from .drawing import beside, drawn, unbroken

BYTE_ALPHABET = "bytes are written as in GPT-2's vocabulary: Ġ is a space, Ċ a line break"


def trace_lines(vocabulary: TrainedVocabulary, *, color: bool, width: int | None) -> Iterator[str]:
    """Yield the merges in order: those whose circumstances were recorded in full, others in a line each."""
    for number, step in enumerate(vocabulary.steps, 1):
        yield from drawn(_step(number, step), color, width)
    rest = islice(vocabulary.trace, len(vocabulary.steps), None)
    for number, learned in enumerate(rest, len(vocabulary.steps) + 1):
        yield f"{number}. {learned_in_words(learned)}"


def learned_in_words(step: LearnedStep) -> str:
    """Return a merge in a few words.

    >>> learned_in_words(LearnedStep("l", "o", 7, "lo"))
    'l + o = lo, 7 times'
    """
    left, right, token = map(token_shown, (step.left, step.right, step.token))
    return f"{left} + {right} = {token}, {counted(step.frequency, 'time')}"


def _step(number: int, step: TrainingStep) -> Iterator[RenderableType]:
    merge = step.merge
    learned = LearnedStep(merge.left, merge.right, merge.frequency, step.token)
    yield Text(f"{number}. {learned_in_words(learned)}", "bold")
    words = [unbroken(cut_in_words(word)) for word in step.words]
    more = f", and {step.word_count - len(words)} more" if step.word_count > len(words) else ""
    yield beside("   cut now    ", f"{', '.join(words)}{more}" or "nowhere")
    if step.runners_up:
        yield beside("   runners-up ", ", ".join(unbroken(pair_in_words(each)) for each in step.runners_up))
    if step.tie:
        yield beside("   tie        ", tie_in_words(step))


def cut_in_words(word: CutWord) -> str:
    """Return a word as it is cut, and its count.

    >>> cut_in_words(CutWord(("l", "ow"), 5))
    'l·ow ×5'
    """
    return f"{'·'.join(map(token_shown, word.symbols))} ×{word.frequency}"


def pair_in_words(pair: PairCount) -> str:
    """Return a pair and how often it occurs.

    >>> pair_in_words(PairCount("l", "o", 7))
    'l + o 7'
    """
    return f"{token_shown(pair.left)} + {token_shown(pair.right)} {pair.frequency}"


def tie_in_words(step: TrainingStep) -> str:
    """Return how many pairs are as frequent, and why this one goes first."""
    others = "1 other pair is" if step.tied == 1 else f"{step.tied} other pairs are"
    return f"{others} as frequent; this one goes first, since {terminal.one_line(step.tie)}"


def token_shown(token: str) -> str:
    """Return a token as the vocabulary writes it, safe for a terminal, in quotes if there is white space in it."""
    safe = terminal.one_line(token)
    return f"'{safe}'" if any(map(str.isspace, safe)) else safe


def training_as_json(vocabulary: TrainedVocabulary, *, trace: bool) -> dict[str, Any]:
    """Return what `train --json` prints beside the path: sizes, and with `trace` each merge and its circumstances."""
    sizes = {
        "tokens": len(vocabulary.tokens) - (vocabulary.form.unk is not None),
        "merges": len(vocabulary.merges),
        "words": vocabulary.word_count,
    }
    if not trace:
        return sizes
    steps = [
        {
            "merge": {**step.merge._asdict(), "token": step.token},
            "runners_up": [pair._asdict() for pair in step.runners_up],
            "tied": step.tied,
            "tie": step.tie,
            "words": list(map(_word, step.words)),
            "word_count": step.word_count,
            "cuts": list(map(_word, step.cuts)),
        }
        for step in vocabulary.steps
    ]
    return {**sizes, "trace": [step._asdict() for step in vocabulary.trace], "steps": steps}


def _word(word: CutWord) -> dict[str, Any]:
    return {"symbols": list(word.symbols), "frequency": word.frequency}
