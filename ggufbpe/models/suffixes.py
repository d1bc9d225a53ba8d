"""The suffixes of PLaMo's tokens as an Aho-Corasick automaton, and the best path through a text by them (Viterbi).

Source: src/llama-vocab.cpp, llm_tokenizer_plamo2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

UNKNOWN_SCORE, INVALID_SCORE = -10_000_000, -20_000_000
NOT_LOOKED_UP, NO_TOKEN = -(1 << 31), -1  # in the place of a score, and of an id
_NODE = 1 << 21  # more than there are code points
_ROOT = 0


class Suffixes:
    """All suffixes of tokens as a trie from the last character to the first: a node is a suffix.

    The node at a place of a text is the longest suffix that begins there; `shorter` leads from it to the next shorter
    one that begins there, and so on down to the empty one.
    """

    def __init__(self, tokens: Sequence[str], scores: Sequence[int]) -> None:
        """`scores` as from `whole_scores`."""
        self._next: dict[int, int] = {}  # node * _NODE + the preceding character: node
        self._shorter = [_ROOT]
        self._ends = [True]  # by node: nothing shorter is looked at
        self._tokens = [NO_TOKEN]  # by node
        self._lengths = [0]  # by node, in characters
        self._scores = scores
        self._steps: dict[int, tuple[tuple[int, int, int], ...]] = {}
        growing = [
            (tokens[token], token, _ROOT) for token, score in enumerate(scores) if score != NOT_LOOKED_UP
        ]
        length = 0
        while growing:  # one character more each time, so that all shorter ones exist
            length += 1
            longer = []
            for text, token, before in growing:
                node = self._made(before, ord(text[-length]), length)
                if len(text) > length:
                    longer.append((text, token, node))
                else:
                    self._tokens[node] = token
                    self._ends[node] = scores[token] == UNKNOWN_SCORE
            growing = longer

    def _made(self, node: int, char: int, length: int) -> int:
        key = node * _NODE + char
        next_node = self._next.get(key)
        if next_node is None:
            shorter = _ROOT
            while node != _ROOT and shorter == _ROOT:
                node = self._shorter[node]
                shorter = self._next.get(node * _NODE + char, _ROOT)
            next_node = self._next[key] = len(self._shorter)
            self._shorter.append(shorter)
            self._ends.append(False)
            self._tokens.append(NO_TOKEN)
            self._lengths.append(length)
        return next_node

    def steps(self, node: int) -> tuple[tuple[int, int, int], ...]:
        """(characters, token, score) of what may be taken at a node, longest first; `NO_TOKEN` for the bytes."""
        steps = self._steps.get(node)
        if steps is None:
            made, at = [], node
            while at != _ROOT:
                token = self._tokens[at]
                if token != NO_TOKEN and self._scores[token] > INVALID_SCORE:
                    made.append((self._lengths[at], token, self._scores[token]))
                if self._ends[at]:
                    break
                at = self._shorter[at]
            else:
                made.append((1, NO_TOKEN, UNKNOWN_SCORE))
            steps = self._steps[node] = tuple(made)
        return steps

    def steps_from_end(self, text: str) -> Iterator[tuple[int, tuple[tuple[int, int, int], ...]]]:
        """Each place of a text, the last first, with its `steps`."""
        following, shorter, ends, node = self._next.get, self._shorter, self._ends, _ROOT
        for at in range(len(text) - 1, -1, -1):
            char = ord(text[at])
            next_node = following(node * _NODE + char)
            while next_node is None and not ends[node]:
                node = shorter[node]
                next_node = following(node * _NODE + char)
            node = _ROOT if next_node is None else next_node
            yield at, self._steps.get(node) or self.steps(node)

    def best_path(self, text: str) -> list[tuple[int, int, int]]:
        """(id, start, end) of the tokens with the highest sum, `NO_TOKEN` for characters that become bytes.

        Of equal sums the one with the longest first token counts, at every place.
        """
        size = len(text)
        costs = [0] * (size + 1)
        taken: list[tuple[int, int]] = [(0, 0)] * size
        for at, steps in self.steps_from_end(text):
            least = 1 << 60
            for length, token, score in steps:
                cost = costs[at + length] - score
                if cost < least:
                    least, taken[at] = cost, (token, at + length)
            costs[at] = least
        path, start = [], 0
        while start < size:
            token, end = taken[start]
            path.append((token, start, end))
            start = end
        return path
