"""PLaMo's table of suffixes: what may be taken at a position, and the best path."""

from __future__ import annotations

import pytest

from ggufbpe.models.suffixes import (
    INVALID_SCORE,
    NO_TOKEN,
    NOT_LOOKED_UP,
    UNKNOWN_SCORE,
    Suffixes,
)

TOKENS = {"a": -10, "ab": -25, "b": -10, "abc": -30, "bcd": -5, "<0x41>": NOT_LOOKED_UP, "qrs": INVALID_SCORE}
NAMES = list(TOKENS)
SUFFIXES = Suffixes(NAMES, list(TOKENS.values()))

PATHS = {
    "": [],
    "ab": ["a", "b"],  # -20 is better than -25
    "abc": ["abc"],
    "abcd": ["a", "bcd"],
    "axb": ["a", "bytes of x", "b"],
    "qrs": ["bytes of q", "bytes of r", "bytes of s"],  # the token's score forbids it
    "aba": ["a", "b", "a"],
}


@pytest.mark.parametrize("text", PATHS)
def test_best_path(text: str) -> None:
    shown = [
        f"bytes of {text[start:end]}" if token == NO_TOKEN else NAMES[token]
        for token, start, end in SUFFIXES.best_path(text)
    ]
    assert shown == PATHS[text]


def test_of_equal_sums_the_longest_first_token_wins() -> None:
    suffixes = Suffixes(["a", "ab", "b"], [-10, -20, -10])
    assert suffixes.best_path("ab") == [(1, 0, 2)]
    assert suffixes.best_path("ba") == [(2, 0, 1), (0, 1, 2)]


def test_steps_from_end() -> None:
    by_place = dict(SUFFIXES.steps_from_end("abc"))
    assert by_place[0] == ((3, 3, -30), (2, 1, -25), (1, 0, -10), (1, NO_TOKEN, UNKNOWN_SCORE))
    assert by_place[1] == ((1, 2, -10), (1, NO_TOKEN, UNKNOWN_SCORE))
    assert by_place[2] == ((1, NO_TOKEN, UNKNOWN_SCORE),)


def test_a_token_of_the_unknown_score_ends_the_list() -> None:
    suffixes = Suffixes(["a", "ab"], [-10, UNKNOWN_SCORE])
    assert dict(suffixes.steps_from_end("ab"))[0] == ((2, 1, UNKNOWN_SCORE),)  # not even `a` is tried
