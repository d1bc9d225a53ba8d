"""Describes the causes of ids from another vocabulary: tokens lost, shifted, swapped, or of another model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..._util.errors import printable
from ..._util.wording import listed
from ...models.pieces import quoted_token
from ...models.vocabulary import Vocabulary
from .cause import Cause


def lost_tokens(found: Mapping[int, str], size: int) -> Cause:
    """Tokens that the ids have and the file lacks; `found` has their texts as far as the texts tell."""
    shown = [f"{token} ({printable(text)})" for token, text in sorted(found.items())]
    what = f"the file has lost tokens: {listed(shown, len(shown), ' and {} more', str)} in the given ids"
    return Cause(
        "vocabulary",
        {
            "what": what,
            "problem": "lost",
            "tokens": {str(token): text for token, text in found.items()},
            "size": size,
        },
        "convert the model again, with all tokens that were added to its vocabulary",
    )


def other_vocabulary(path: str) -> Cause:
    """The ids are those of another model, which is known."""
    return Cause(
        "vocabulary",
        {"what": f"the ids are those of {path}", "problem": "other model", "model": path},
        "use the tokenizer of the model that is to read the ids",
    )


def shifted(by: int, start: int | None) -> Cause:
    """All ids, or those from `start` on, are `by` higher than the model's."""
    which = "all ids" if start is None else f"the ids from {start} on"
    return Cause(
        "vocabulary",
        {"what": f"{which} are shifted by {by:+}", "problem": "shifted", "by": by, "from": start or 0},
        f"use one vocabulary for both: the other one has {abs(by)} {'more' if by > 0 else 'fewer'} tokens before these "
        "(padding or special tokens put first?)",
    )


def exchanged(vocabulary: Vocabulary, pairs: Sequence[tuple[int, int]]) -> Cause:
    """Tokens that have each other's ids."""
    shown = [f"{a} ({quoted_token(vocabulary, a)}) and {b} ({quoted_token(vocabulary, b)})" for a, b in pairs]
    what = f"in the given ids, the tokens {listed(shown, len(shown), shown=str)} have exchanged their ids"
    return Cause(
        "vocabulary",
        {"what": what, "problem": "exchanged", "pairs": [list(pair) for pair in pairs]},
        "one of the two lists of tokens is damaged: convert the model again",
    )


def out_of_range(ids: list[int], size: int) -> Cause:
    """Ids that this vocabulary does not have."""
    problem = "out of range"
    what = f"{len(ids)} of the ids are out of range, the first is {ids[0]}; the vocabulary has ids 0 to {size - 1}"
    return Cause(
        "vocabulary",
        {"what": what, "problem": problem, "count": len(ids), "first": ids[:5], "size": size},
        "the ids are from another model, or tokens were added that this file lacks: give that model with a second -m",
    )


def foreign(excerpt: str) -> Cause:
    """The ids decode to something unrelated to the text."""
    return Cause(
        "vocabulary",
        {
            "what": f"the ids decode to an unrelated text: {excerpt!r}",
            "problem": "other model",
            "decoded": excerpt,
        },
        "the ids are probably from another model: give that model with a second -m to try it",
    )
