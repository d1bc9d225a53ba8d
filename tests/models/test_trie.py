"""The longest token at a position."""

from __future__ import annotations

import pytest

from ggufbpe.models.trie import Trie

TRIE = Trie([(b"a", 1), (b"ab", 2), (b"abcd", 3), (b"x", 4), (b"x", 5), (b"", 6)])

LOOKED_UP = [  # a text, a position, the longest token with its end, all tokens, how far some token agrees
    (b"abcx", 0, (2, 2), [(1, 1), (2, 2)], 3),
    (b"abcd", 0, (3, 4), [(1, 1), (2, 2), (3, 4)], 4),
    (b"zab", 1, (2, 3), [(1, 2), (2, 3)], 3),
    (b"x", 0, (5, 1), [(5, 1)], 1),
    (b"bc", 0, None, [], 0),
    (b"a", 1, None, [], 1),
]


@pytest.mark.parametrize(("text", "start", "longest", "tried", "reach"), LOOKED_UP)
def test_longest_and_tried(
    text: bytes, start: int, longest: tuple[int, int] | None, tried: list[tuple[int, int]], reach: int
) -> None:
    assert TRIE.longest(text, start) == longest
    assert TRIE.tried(text, start) == (tried, reach)


def test_symbols_may_be_code_points() -> None:
    trie = Trie([([0x10FFFF], 1), ([0x10FFFF, 0], 2)])
    assert trie.longest([0x10FFFF, 0, 0], 0) == (2, 2)


def test_a_trie_without_tokens_is_false() -> None:
    assert [bool(trie) for trie in (TRIE, Trie([]), Trie())] == [True, False, False]
