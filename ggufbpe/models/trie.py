"""A trie of a vocabulary's tokens, which finds the longest token at a position of a text.

Source: src/llama-vocab.cpp, naive_trie.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_NODE = 1 << 21  # more than there are code points


class Trie:
    """Tokens as sequences of symbols: bytes, or the code points of a text.

    >>> trie = Trie([(b"a", 1), (b"abc", 2)])
    >>> trie.longest(b"abab", 0), trie.longest(b"xabc", 1), trie.longest(b"b", 0)
    ((1, 1), (2, 4), None)
    """

    def __init__(self, tokens: Iterable[tuple[Sequence[int], int]] = ()) -> None:
        """Of equal tokens the last counts; empty ones are never found."""
        self._next: dict[int, int] = {}  # node * _NODE + symbol: node
        self._token: list[int | None] = [None]
        for symbols, token in tokens:
            node = 0
            for symbol in symbols:
                key = node * _NODE + symbol
                node = self._next.setdefault(key, len(self._token))
                if node == len(self._token):
                    self._token.append(None)
            self._token[node] = token

    def __bool__(self) -> bool:
        return bool(self._next)

    def longest(self, text: Sequence[int], start: int) -> tuple[int, int] | None:
        """The longest token at `start`, and where it ends; None if there is none."""
        matches, _ = self.tried(text, start)
        return matches[-1] if matches else None

    def tried(self, text: Sequence[int], start: int) -> tuple[list[tuple[int, int]], int]:
        """All tokens at `start`, the shortest first, with their ends; and how far some token agrees with the text.

        >>> Trie([(b"a", 1), (b"abc", 2), (b"abxy", 3)]).tried(b"abxz", 0)
        ([(1, 1)], 3)
        """
        matches: list[tuple[int, int]] = []
        node = 0
        for end in range(start, len(text)):
            following = self._next.get(node * _NODE + text[end])
            if following is None:
                return matches, end
            node = following
            token = self._token[node]
            if token is not None:
                matches.append((token, end + 1))
        return matches, len(text)
