"""The states of llama.cpp whose answers are known, and what differs between them.

A tokenizer gives the ids of one state: `FOLLOWED`, or the one in `Tokenizer.from_gguf(..., llama_cpp=...)`. Loading
asks `lacks` what that state does not have.
"""

# No `from __future__ import annotations`: `typing` would compile each annotation of a NamedTuple at every import.

from collections.abc import Iterator
from functools import cache
from typing import Literal, NamedTuple

STATES = ("0c1e57098", "b11549", "b11739")  # from the oldest to the newest
FOLLOWED = STATES[-1]  # for ids, pieces, special tokens and ends of generation
CHATS = "b11549"  # for chats and the server: no package has the sources of a newer state

Kind = Literal["pre", "model", "special text", "rule"]

# The rules that some states do not have.
STRICT_UTF8 = "strict UTF-8"
NFC = "tokenizer.ggml.normalizer.nfc"
PLAMO2_ADDS_TOKENS = "plamo2 adds tokens"
RFL_PARAMETER = '<rfl:parameter name="'


class StateDifference(NamedTuple):
    """What states have from one on. States before `since` do not have `names`."""

    since: str  # the first of `STATES` that has them
    kind: Kind
    names: tuple[str, ...]
    description: str


DIFFERENCES = (
    StateDifference("b11549", "pre", ("mmbert", "k2-horizon"), "the pre-tokenizers mmbert and k2-horizon"),
    StateDifference("b11549", "model", ("plamo3",), "the tokenizer model plamo3"),
    StateDifference(
        "b11549",
        "special text",
        (
            "<|ifm|im_end|>",
            "<|plamo:fim_prefix|>",
            "<|plamo:fim_suffix|>",
            "<|plamo:fim_middle|>",
            "<|plamo:file_separator|>",
        ),
        "special tokens of K2 Horizon and PLaMo",
    ),
    StateDifference("b11549", "rule", (PLAMO2_ADDS_TOKENS,), "PLaMo-2 adds BOS and EOS if the file says so"),
    StateDifference(
        "b11739",
        "rule",
        (STRICT_UTF8,),
        "overlong forms and values above U+10FFFF are bytes that are not UTF-8",
    ),
    StateDifference("b11739", "rule", (NFC,), f"unigram models compose text if {NFC} is true"),
    StateDifference("b11739", "special text", ("<|eot|>",), "<|eot|> ends a generation"),
    StateDifference("b11739", "rule", (RFL_PARAMETER,), f"</s> is a normal token beside {RFL_PARAMETER}"),
)


def lacks(state: str, kind: Kind) -> frozenset[str]:
    """Return the names of this kind that `state` does not have.

    >>> sorted(lacks("0c1e57098", "pre")), sorted(lacks("b11739", "pre"))
    (['k2-horizon', 'mmbert'], [])
    """
    return _lacking(state).get(kind, frozenset())


def since(kind: Kind, name: str) -> int:
    """Return the place in `STATES` of the first state that has this name; 0 if all states have it.

    >>> since("pre", "llama-bpe"), since("pre", "mmbert")
    (0, 1)
    """
    added = (each.since for each in DIFFERENCES if each.kind == kind and name in each.names)
    return STATES.index(next(added, STATES[0]))


def lacking_names(state: str) -> set[str]:
    """Return the names of any kind that `state` does not have."""
    return set().union(*_lacking(state).values())


@cache
def _lacking(state: str) -> dict[Kind, frozenset[str]]:
    lacking: dict[Kind, frozenset[str]] = {}
    for difference in between(state, FOLLOWED):
        lacking[difference.kind] = lacking.get(difference.kind, frozenset()).union(difference.names)
    return lacking


def between(older: str, newer: str) -> Iterator[StateDifference]:
    """Yield what `newer` has and `older` does not."""
    first, last = STATES.index(older), STATES.index(newer)
    for difference in DIFFERENCES:
        if first < STATES.index(difference.since) <= last:
            yield difference


def checked_state(state: str) -> str:
    """Return `state` if its answers are known. `ValueError` with the known ones if they are not."""
    if state not in STATES:
        raise ValueError(
            f"the answers of llama.cpp {state} are not known; known states are {', '.join(STATES)}, and what "
            "differs between them stands in docs/llama_cpp.md"
        )
    return state
