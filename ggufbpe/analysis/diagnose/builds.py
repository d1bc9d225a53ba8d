"""Finds the build of llama.cpp that gives the expected ids for the same file and text.

Only builds whose answers are known (_util/llama_cpp_states.py) are tried.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..._util.errors import GGUFError
from ..._util.llama_cpp_states import (
    NFC,
    PLAMO2_ADDS_TOKENS,
    STATES,
    STRICT_UTF8,
    StateDifference,
    between,
    lacks,
)
from ..._util.utf8 import is_utf8
from ...models.vocabulary import Vocabulary
from ...tokenizer import Tokenizer
from . import causes
from .cause_search import Answer
from .encoding_changes import Encoding


def of_other_build(
    tokenizer: Tokenizer, text: bytes, ids: list[int], add_special: bool, parse_special: bool
) -> Answer | None:
    """Return the explanation that `ids` are those of another build, the newest that gives them; None if none does."""
    for vocabulary in _of_other_builds(tokenizer):
        other = Tokenizer(vocabulary)
        if other.encode(text, add_special=add_special, parse_special=parse_special) == ids:
            found = _differences(tokenizer.vocabulary, vocabulary, text)
            cause = causes.other_build(tokenizer.llama_cpp, vocabulary.llama_cpp, found)
            return Answer((cause,), 1.0, Encoding(vocabulary, parse_special).variant(text, add_special))
    return None


def _differences(ours: Vocabulary, theirs: Vocabulary, text: bytes) -> list[StateDifference]:
    """What differs between two builds and may act on the text."""
    older, newer = sorted((ours.llama_cpp, theirs.llama_cpp), key=STATES.index)
    acts = {
        STRICT_UTF8: not is_utf8(text),
        NFC: ours.nfc != theirs.nfc,
        PLAMO2_ADDS_TOKENS: ours.added != theirs.added,
    }
    return [
        each
        for each in between(older, newer)
        if any(acts.get(name, name.encode() in text and name in ours.token_to_id) for name in each.names)
    ]


def _of_other_builds(tokenizer: Tokenizer) -> Iterator[Vocabulary]:
    """The vocabulary as each other build reads it, if that makes a difference."""
    own = tokenizer.vocabulary
    for state in reversed(STATES):
        if state == tokenizer.llama_cpp:
            continue
        try:
            vocabulary = tokenizer.vocabulary_in(state)
        except GGUFError:  # that build does not open the file
            continue
        except ValueError:  # the tokenizer has no file
            rules = lacks(state, "rule")
            vocabulary = own._replace(
                strict_utf8=STRICT_UTF8 not in rules, nfc=own.nfc and NFC not in rules, llama_cpp=state
            )
        if vocabulary._replace(llama_cpp=own.llama_cpp, warnings=()) != own._replace(warnings=()):
            yield vocabulary
