"""Measures how far two sequences of ids agree, which ranks partial explanations.

Only the ids are compared; align.py aligns tokens by their place in a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from ...models.vocabulary import CONTROL

if TYPE_CHECKING:
    from ...tokenizer import Tokenizer

_BLOCK = 1 << 14  # ids; the time grows with the square, a tenth of a second for a block


def agreeing_share(ours: Sequence[int], theirs: Sequence[int]) -> float:
    """The length of the longest common subsequence divided by that of the longer one; 1.0 for two empty ones.

    Beyond 16384 differing ids it is a lower bound: both are then cut into the same number of blocks, which are compared
    pairwise.

    >>> agreeing_share([1, 2, 3, 4], [1, 3, 4, 5])
    0.75
    """
    longest = max(len(ours), len(theirs))
    return common(ours, theirs) / longest if longest else 1.0


def common(ours: Sequence[int], theirs: Sequence[int]) -> int:
    """The length of the longest common subsequence, or a lower bound of it for long sequences."""
    start = first_difference(ours, theirs)
    ours, theirs = ours[start:], theirs[start:]
    end = first_difference(ours[::-1], theirs[::-1])
    ours, theirs = ours[: len(ours) - end], theirs[: len(theirs) - end]
    blocks = max(len(ours), len(theirs)) // _BLOCK + 1
    cuts = [(len(ours) * i // blocks, len(theirs) * i // blocks) for i in range(blocks + 1)]
    return start + end + sum(_longest(ours[a:c], theirs[b:d]) for (a, b), (c, d) in pairwise(cuts))


def first_difference(ours: Sequence[int], theirs: Sequence[int]) -> int:
    """How many ids (or bytes) at the beginning are the same."""
    shorter = min(len(ours), len(theirs))
    return next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), shorter)


def _longest(ours: Sequence[int], theirs: Sequence[int]) -> int:
    """The length of the longest common subsequence, bit-parallel (Hyyrö 2004): a bit for each of `ours`.

    A zero bit in `state` is a step of the table's row; adding lets each step move on to the next match.
    """
    places: dict[int, int] = {}
    for at, token in enumerate(ours):
        places[token] = places.get(token, 0) | 1 << at
    everything = (1 << len(ours)) - 1
    state = everything
    for token in theirs:
        matches = state & places.get(token, 0)
        state = (state + matches | state - matches) & everything
    return len(ours) - state.bit_count()


AS_COMMAND, AS_LIBRARY = "llama-tokenize", "llama_tokenize"

# Of a model that adds EOS and no BOS.
SAID_OF = {
    AS_COMMAND: "as llama-tokenize prints them: without EOS, which it leaves out if the model does not add BOS",
    AS_LIBRARY: "as llama_tokenize gives them with add_special: with EOS, which the command llama-tokenize leaves out",
}


def added_as(tokenizer: Tokenizer, text: bytes, ids: list[int], parse_special: bool) -> str:
    """Which of the two meanings of "add special tokens" the given ids follow; "" if both are the same.

    The command passes "the model adds BOS" for it (tools/tokenize/tokenize.cpp), so a model that adds EOS and no
    BOS gets nothing from the command `AS_COMMAND`, and EOS from the function `AS_LIBRARY`.
    """
    if tokenizer.add_bos or not tokenizer.add_eos:
        return ""
    with_eos, without = (
        tokenizer.encode(text, add_special=added, parse_special=parse_special) for added in (True, False)
    )
    if ids in (with_eos, without):
        return AS_LIBRARY if ids == with_eos else AS_COMMAND
    vocabulary = tokenizer.vocabulary
    ends = {*ids[:1], *ids[-1:]} - {tokenizer.eos_id}
    if any(0 <= end < len(vocabulary.tokens) and vocabulary.attributes[end] & CONTROL for end in ends):
        return ""  # something else is added, by another tokenizer
    return AS_LIBRARY if ids[-1:] == [tokenizer.eos_id] else AS_COMMAND
