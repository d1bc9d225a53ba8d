"""Writes the trace of a text as JSON, in pieces, so that a long trace is not held in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from ...chat.token_origins import ChatTokens
from ...models.tracers.trace_types import Word
from ...tokenizer.trace import Totals, Trace, as_json, tracer_of
from ..explain.long_text_parts import Parts
from ..explain.reasons import WhyNot
from . import answers, terminal


def of_answer(answer: WhyNot, model: str) -> Iterator[str]:
    """Why a piece was not produced."""
    yield terminal.json_text(answers.answer(answer.to_dict(), model=model), indent=2) + "\n"


def of_one(whole: Parts, word: int | None, token: int | None, *, merges: bool = False) -> Iterator[str]:
    """One word, or one token with its word."""
    found = answers.answer(_one(whole, word, token, merges), model=whole.tokenizer.name)
    yield terminal.json_text(found, indent=2) + "\n"


def of_trace(trace: Trace, model: str, word: int | None = None, token: int | None = None) -> dict[str, Any]:
    """A text that was traced as a whole, or one word or token of it, as the functions above write them."""
    if word is not None:
        found = as_json(trace.words[word])
    else:
        found = trace.to_dict() if token is None else token_in_word(trace, token, Totals())
    return answers.answer(found, model=model)


def _one(whole: Parts, word: int | None, token: int | None, merges: bool) -> dict[str, Any]:
    for before, trace in whole.parts:
        if word is not None and word - before.words < len(trace.words):
            return _word(whole, trace.words[word - before.words], before, merges)
        if token is not None and token - before.tokens < len(trace.tokens):
            return token_in_word(trace, token - before.tokens, before)
    raise AssertionError("a number that is not in the text")


def token_in_word(trace: Trace, number: int, before: Totals) -> dict[str, Any]:
    """Token `number` of a part of a text, and the word that it stands in as `in_word`, None if in none.

    `before` counts what comes before the part.
    """
    one = trace.tokens[number]
    in_word = None if one.word is None else as_json(trace.words[one.word], before)
    return {**as_json(one, before), "in_word": in_word}


def of_parts(whole: Parts, chat: ChatTokens | None = None, *, merges: bool = False) -> Iterator[str]:
    """The trace of all, as `Trace.to_dict` has it; a list at a time, so that none is held."""
    lists: dict[str, Iterable[Any]] = {
        "ids": chain.from_iterable(whole.ids),
        "fragments": (as_json(fragment) for fragment, _ in whole.fragments),
        "changes": (as_json(change, before) for before, trace in whole.parts for change in trace.changes),
        "words": (
            _word(whole, word, before, merges) for before, trace in whole.parts for word in trace.words
        ),
        "tokens": (as_json(token, before) for before, trace in whole.parts for token in trace.tokens),
    }
    between = "{\n  "
    found = {**whole.model.to_dict(), **(chat.to_origins() if chat else {})}
    for key, value in answers.answer(found, model=whole.tokenizer.name).items():
        yield f'{between}"{key}": '
        between = ",\n  "
        if key == "text":
            yield from _text(whole)
        elif key in lists:
            yield from terminal.json_list(lists[key])
        else:
            yield terminal.json_text(value, indent=2).replace("\n", "\n  ")
    yield "\n}\n"


def _word(whole: Parts, word: Word, before: Totals, merges: bool) -> dict[str, Any]:
    """A word; with `merges`, a word that was taken whole has what merges would make of it as `alone`."""
    found: dict[str, Any] = as_json(word, before)
    alone = tracer_of(whole.tokenizer).alone(word.written) if merges and word.whole is not None else None
    if alone is None:
        return found
    return {
        **found,
        "alone": {"merges": [as_json(each) for each in alone.merges], "symbols": list(alone.symbols)},
    }


def _text(whole: Parts) -> Iterator[str]:
    """The text, and its bytes where it is not UTF-8."""
    is_utf8 = True
    yield '"'
    for data in whole.text:  # cut between characters
        text = data.decode("utf-8", "replace")
        is_utf8 = is_utf8 and text.encode() == data
        yield terminal.json_text(text)[1:-1]
    yield '"'
    if not is_utf8:
        yield ',\n  "text_bytes": "'
        yield from (data.hex() for data in whole.text)
        yield '"'
