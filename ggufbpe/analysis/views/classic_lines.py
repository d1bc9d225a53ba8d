"""Shows how a text becomes tokens with a trained vocabulary of a classic form, which no GGUF can hold."""

from __future__ import annotations

from collections.abc import Iterator

from ..._util.wording import counted
from ...data.training.trained_vocabulary import TrainedVocabulary
from . import terminal
from .training_lines import token_shown


def classic_lines(vocabulary: TrainedVocabulary, text: str) -> Iterator[str]:
    """Yield lines: the words of a text, the merges of each with the symbols after it, and its tokens."""
    form = vocabulary.form
    ids = vocabulary.encode(text)
    yield (
        f"{terminal.one_line(form.splitting.pre)}, {form.splitting.units}: {counted(len(text), 'character')}, "
        f"{counted(len(ids), 'token')}"
    )
    known: set[str] = set()
    for number, (token, word) in enumerate(vocabulary.words(text)):
        yield ""
        if token is not None:
            yield f"special token {token_shown(vocabulary.tokens[token])} {token}"
            continue
        yield f"word {number}  {terminal.in_quotes(terminal.one_line(word))}"
        first, steps = vocabulary.merges_of(word)
        if steps and word not in known:
            yield f"  rank  {_symbols(first)}"
            yield from (f"{rank:6}  {_symbols(symbols)}" for rank, symbols in steps)
        elif steps:
            yield "  merged as above"
        known.add(word)
        tokens = vocabulary.encode_word(word)
        yield f"  → {'  '.join(f'{token_shown(vocabulary.tokens[each])} {each}' for each in tokens)}"


def _symbols(symbols: list[str]) -> str:
    return " ".join(map(token_shown, filter(None, symbols)))
