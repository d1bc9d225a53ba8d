"""The lattice of a unigram model: every way to segment a text into tokens, and the best of them (Viterbi).

All sums are doubles, added in llama.cpp's order, so that ties are broken alike.

Source: src/llama-vocab.cpp, llm_tokenizer_ugm_session::tokenize.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .trie import Trie

_LEAST = -sys.float_info.max
# Bytes of a character, by the upper half of its first byte: unicode_len_utf8 in src/unicode.cpp.
_CODE_UNITS = (*(1,) * 12, 2, 2, 3, 4)


class Lattice(NamedTuple):
    """All ways to cut a text into tokens."""

    tokens: Trie
    scores: Sequence[float]  # by id
    is_user_defined: Sequence[int]  # by id, not 0: the score is 0
    unknown: int
    unknown_score: float

    def best_path(self, text: bytes) -> list[tuple[int, int, int]]:
        """(id, start, end) of the tokens with the highest sum of scores; consecutive unknown ones are one.

        Tokens begin where characters do. A character that is not a token by itself may also be the unknown token. Of
        equal sums the one whose last token begins first wins.
        """
        size = len(text)
        sums = [0.0, *(_LEAST,) * size]
        starts, ids = [0] * (size + 1), [self.unknown] * (size + 1)
        for token, at, end, score in self.ways(text):
            if sums[at] + score > sums[end]:
                sums[end], starts[end], ids[end] = sums[at] + score, at, token
        path: list[tuple[int, int, int]] = []
        end = size
        while end:
            token, start = ids[end], starts[end]
            if path and path[-1][0] == token == self.unknown:
                path[-1] = token, start, path[-1][2]
            else:
                path.append((token, start, end))
            end = start
        return path[::-1]

    def ways(self, text: bytes) -> Iterator[tuple[int, int, int, float]]:
        """(id, start, end, score) of every edge, in the order in which `best_path` tries them: by their start."""
        at = 0
        while at < len(text):
            after = min(at + _CODE_UNITS[text[at] >> 4], len(text))
            is_found = False
            for token, end in self.tokens.tried(text, at)[0]:
                is_found = is_found or end == after
                yield token, at, end, 0.0 if self.is_user_defined[token] else self.scores[token]
            if not is_found:
                yield self.unknown, at, after, self.unknown_score
            at = after
