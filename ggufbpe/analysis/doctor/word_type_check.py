"""Checks that no ordinary word, such as "The", has the type of a marker.

A word is a token that merges make, or one of the bytes that they begin with, and that is not written as a marker. In
llama.cpp's vocabularies, all of these are of type NORMAL, unless they are special ids. Without merges, nothing tells a
single word from a marker without brackets, so that only a file is reported in which most words have such a type.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import compress
from operator import eq

from ..._util.wording import counted, listed
from ...gguf.constants import TokenType
from ...models.special_ids import SPECIAL_IDS
from .facts import Facts
from .finding import Finding, listed_tokens
from .marker_tokens import BYTES_OF_TEXT
from .token_checks import are_most_words, is_added_word, is_written_as_marker, marker_like

_TAKEN_OUT = "llama.cpp takes it out of a prompt before the text around it is split, so that other ids follow"
_WHY = {
    TokenType.CONTROL: f"{_TAKEN_OUT}, and when the model generates it, nothing is shown.",
    TokenType.USER_DEFINED: f"{_TAKEN_OUT}.",
    TokenType.UNUSED: "When the model generates it, nothing is shown.",
    TokenType.UNKNOWN: f"{_TAKEN_OUT}, and when the model generates it, nothing is shown.",
}
_CALLED = {
    TokenType.CONTROL: "control tokens",
    TokenType.USER_DEFINED: "user-defined tokens",
    TokenType.UNUSED: "unused tokens",
    TokenType.UNKNOWN: "unknown tokens",
}


def word_types(model: Facts) -> Iterator[Finding]:
    """Words that are control, unused or unknown tokens; a note for some user-defined ones, which may be meant."""
    for kind in _WHY:
        found = _words_of_type(model, kind)
        if not found:
            continue
        is_note = kind is TokenType.USER_DEFINED and not are_most_words(model.tokens, found)
        command = model.set_types(NORMAL=found)
        yield Finding(
            "note" if is_note else "warning",
            "word_type",
            f"Ordinary words are stored as {_CALLED[kind]}.",
            _WHY[kind] + " Some models were trained so." * is_note,
            f"if the model was not trained so: {command}" if is_note else command,
            model.token(found[0]),
            listed_tokens(found, model.tokens),
            f"{_counted(model, len(found))} of type {kind.name}: "
            f"{listed(found, len(found), shown=model.quoted)}.",
        )
    yield from _added_words(model)


def _added_words(model: Facts) -> Iterator[Finding]:
    """Words that a fine-tune has added as control tokens."""
    if not model.merges:
        return
    named = _named(model)
    found = [
        token
        for token in _of_type(model, TokenType.CONTROL)
        if is_added_word(text := model.tokens[token])
        and not (text in model.merged or token in named or text in model.template)
    ]
    if found:
        yield Finding(
            "warning",
            "word_type",
            "Words that were added to the vocabulary are stored as control tokens.",
            "When the model generates a control token, nothing is shown: its answers lack these words.",
            model.set_types(USER_DEFINED=found),
            model.token(found[0]),
            listed_tokens(found, model.tokens),
            f"{counted(len(found), 'word is', 'words are')} of type CONTROL: "
            f"{listed(found, len(found), shown=model.quoted)}.",
        )


def _named(model: Facts) -> set[object]:
    """Return the special ids of the file, which other checks look at."""
    return {model.scalar(key) for _, keys, _ in SPECIAL_IDS for key in keys}


def _of_type(model: Facts, kind: TokenType) -> list[int]:
    return list(compress(range(len(model.tokens)), map(partial(eq, int(kind)), model.types)))


def _words_of_type(model: Facts, kind: TokenType) -> list[int]:
    named = _named(model)
    of_type = _of_type(model, kind)
    if model.kind.has_pre_tokenizer:
        single = BYTES_OF_TEXT if model.entry.byte_encode and model.merges else frozenset()
        pairs = [(token, model.tokens[token]) for token in of_type if token not in named]
        made = [(token, text) for token, text in pairs if text in model.merged or text in single]
        return [token for token, text in made if not is_written_as_marker(text)]
    if not are_most_words(model.tokens, of_type):
        return []
    words = [token for token in of_type if not is_written_as_marker(model.tokens[token])]
    apart = {*named, *model.byte_tokens.values(), *model.kind.default_ids.values(), *marker_like(model)}
    # between words, "<h2>" is text as well: markers without usual names stand before or behind all of them
    return [token for token in of_type if words[0] <= token <= words[-1] and token not in apart]


def _counted(model: Facts, number: int) -> str:
    if model.kind.has_pre_tokenizer:
        return counted(number, "token that merges make or use is", "tokens that merges make or use are")
    return f"{number} of {counted(len(model.tokens), 'token')} are"
