"""Splits a text into fragments: special tokens, and the plain text between them.

llama.cpp goes through all special tokens, the longest first, and cuts each out of every fragment that is
still plain text (src/llama-vocab.cpp: tokenizer_st_partition). That searches the whole text for every
token. Here one search with a trie finds the longest token at every place; only where several overlap, or white
space is stripped, does the order of cutting matter. The time is proportional to the length of the text times
that of the longest token, however many tokens there are.

Bytes that are not UTF-8 are searched as they are, as a text with one character per byte; the special tokens are then
written the same way.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator
from typing import NamedTuple

from .._util.lazy import cached_property
from ..models.special_order import sort_longest_first
from ..models.vocabulary import CONTROL, LSTRIP, RSTRIP, SPACES, UNKNOWN, Vocabulary


class TextFragment(NamedTuple):
    """`text[start:end]`: the special token `token`, or plain text if that is None."""

    token: int | None
    start: int
    end: int


class SpecialTokens:
    """Finds the special tokens of one vocabulary in texts."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._searches: dict[tuple[bool, bool], _Search] = {}

    def partition(self, source: str | bytes, parse_special: bool) -> list[TextFragment]:
        """The fragments of `source`, in order, none empty. White space stripped by a token is in none.

        Without `parse_special`, control and unknown tokens are plain text; user-defined ones never are.
        """
        as_bytes = isinstance(source, bytes)
        text = source.decode("latin-1") if isinstance(source, bytes) else source
        search = self._search(parse_special, as_bytes)
        fragments: list[TextFragment] = []

        def add(fragment: TextFragment) -> None:
            last = fragments[-1] if fragments else None
            if last is not None and last.token is fragment.token is None and last.end == fragment.start:
                # the two were separate only because a region ended
                fragments[-1] = TextFragment(None, last.start, fragment.end)
            elif fragment.start < fragment.end:
                fragments.append(fragment)

        end = 0
        for region in search.regions(text):
            add(TextFragment(None, end, region.start))
            for fragment in search.cut(text, region):
                add(fragment)
            end = region.end
        add(TextFragment(None, end, len(text)))
        return fragments

    def places(self, data: bytes, parse_special: bool) -> list[tuple[int, int]]:
        """Start and end of the longest special token at each place where one begins, overlapping or not."""
        found = self._search(parse_special, as_bytes=True).reaches(data.decode("latin-1"))
        return [(start, end) for start, end, _ in found]

    def _search(self, parse_special: bool, as_bytes: bool) -> _Search:
        """The search for the tokens that count, made on first use."""
        key = parse_special, as_bytes
        if key not in self._searches:
            attributes, texts = self._vocabulary.attributes, self._vocabulary.tokens
            hidden = 0 if parse_special else CONTROL | UNKNOWN
            self._searches[key] = _Search(
                _Token(texts[i].encode().decode("latin-1") if as_bytes else texts[i], i, attributes[i])
                for i in self._longest_first
                if texts[i] and not attributes[i] & hidden
            )
        return self._searches[key]

    @cached_property
    def _longest_first(self) -> list[int]:
        """The special tokens in the order in which llama.cpp goes through them."""
        lengths = [(len(self._vocabulary.tokens[i].encode()), i) for i in self._vocabulary.special_token_ids]
        return [index for _, index in sort_longest_first(lengths)]


class _Token:
    """A token to search for."""

    def __init__(self, text: str, index: int, attribute: int) -> None:
        self.text = text
        self.index = index
        self.attribute = attribute
        self.shorter: int | None = None  # the rank of the longest other token that it begins with


class _Node:
    """A node of the trie; `label` follows the character that leads here."""

    __slots__ = ("children", "label", "rank")

    def __init__(self, label: str, rank: int | None) -> None:
        self.label = label
        self.rank = rank  # of the token that ends here
        self.children: dict[str, _Node] = {}


class _Region(NamedTuple):
    """A part of a text whose tokens and stripped white space touch nothing outside it."""

    start: int
    end: int
    matches: list[tuple[int, int]]  # where a token stands, and the rank of the longest one there


class _Search:
    """One search for many tokens, which come in llama.cpp's order: their ranks."""

    def __init__(self, tokens: Iterator[_Token]) -> None:
        self._tokens = list(tokens)
        self._strips = any(token.attribute & (LSTRIP | RSTRIP) for token in self._tokens)
        self._root = _Node("", None)
        for rank in reversed(range(len(self._tokens))):  # the shortest first; of equal ones the first counts
            self._insert(rank)
        self._candidates = re.compile(self._pattern()) if self._tokens else None

    def _insert(self, rank: int) -> None:
        token = self._tokens[rank]
        text, node, at = token.text, self._root, 0
        while at < len(text):
            if node.rank is not None:
                token.shorter = node.rank
            parent, branch = node, text[at]
            at += 1
            child = parent.children.get(branch)
            if child is None:
                parent.children[branch] = _Node(text[at:], rank)
                return
            end = at
            while end - at < len(child.label) and text[end : end + 1] == child.label[end - at]:
                end += 1
            if end - at < len(child.label):  # branches off, or ends, inside the label
                node = parent.children[branch] = _Node(text[at:end], None)
                node.children[child.label[end - at]] = child
                child.label = child.label[end - at + 1 :]
            else:
                node = child
            at = end
        node.rank = rank

    def _pattern(self) -> str:
        """Matches where a text may begin: its first character, and the second ahead."""
        seconds: dict[str, set[str]] = {}
        for token in self._tokens:
            seconds.setdefault(token.text[0], set()).add(re.escape(token.text[1:2]))
        alone = "".join(re.escape(first) for first, rest in seconds.items() if "" in rest)
        pairs = [
            f"{re.escape(a)}(?=[{''.join(sorted(rest))}])" for a, rest in seconds.items() if "" not in rest
        ]
        return "|".join(([f"[{alone}]"] if alone else []) + pairs)

    def regions(self, text: str) -> Iterator[_Region]:
        """The parts of `text` that tokens touch, in order."""
        start = end = -1
        matches: list[tuple[int, int]] = []
        reaches = self._reaches_with_spaces(text) if self._strips else self.reaches(text)
        for first, last, match in reaches:
            if first >= end:
                if matches:
                    yield _Region(start, end, matches)
                start, end, matches = first, last, []
            end = max(end, last)
            matches.append(match)
        if matches:
            yield _Region(start, end, matches)

    def reaches(self, text: str) -> Iterator[tuple[int, int, tuple[int, int]]]:
        """Start and end of the longest token at each place where one begins, and the match for a region."""
        if self._candidates is None:
            return
        for candidate in self._candidates.finditer(text):
            at = candidate.start()
            rank = self._longest_at(text, at)
            if rank is not None:
                yield at, at + len(self._tokens[rank].text), (at, rank)

    def _reaches_with_spaces(self, text: str) -> Iterator[tuple[int, int, tuple[int, int]]]:
        """Yield what `reaches` does, with each span extended over the white space that a token may strip."""
        low = high = 0  # text[low:high] is the last run of white space that was looked at

        def run_around(position: int) -> tuple[int, int]:
            nonlocal low, high
            if not low <= position <= high:
                low = high = position
                while low > 0 and text[low - 1] in SPACES:
                    low -= 1
                while high < len(text) and text[high] in SPACES:
                    high += 1
            return low, high

        for start, end, match in self.reaches(text):
            yield run_around(start)[0], run_around(end)[1], match

    def _longest_at(self, text: str, at: int) -> int | None:
        longest = None
        children = self._root.children
        size = len(text)
        while at < size and (node := children.get(text[at])) is not None:
            at += 1
            if label := node.label:
                if not text.startswith(label, at):
                    break
                at += len(label)
            if node.rank is not None:
                longest = node.rank
            children = node.children
        return longest

    def cut(self, text: str, region: _Region) -> Iterator[TextFragment]:
        """The fragments of a region, some of them empty.

        In the order of ranks, and those of one rank from the left, each match is taken if all of it is free.
        Taken text is tokens of lower rank and white space beside them. So a match whose first and last character are
        free is free altogether: a taken token between them would be shorter than this one, and those come later. If
        only the first character is free, a shorter token may begin there, and is tried in its turn.
        """
        start, end, matches = region
        first, rank = matches[0]
        # other tokens that begin in it are shorter
        if not self._strips and first + len(self._tokens[rank].text) == end:
            yield TextFragment(self._tokens[rank].index, start, end)
            return
        is_taken = bytearray(end - start)
        found: list[tuple[int, int]] = []
        tries = [(rank, at) for at, rank in matches]
        heapq.heapify(tries)
        while tries:
            rank, at = heapq.heappop(tries)
            token = self._tokens[rank]
            low, high = at - start, at - start + len(token.text)
            if is_taken[low]:
                continue
            if is_taken[high - 1]:
                free = is_taken.index(True, low) - low
                shorter = token.shorter
                while shorter is not None and len(self._tokens[shorter].text) > free:
                    shorter = self._tokens[shorter].shorter
                if shorter is not None:
                    heapq.heappush(tries, (shorter, at))
                continue
            found.append((at, rank))
            if token.attribute & LSTRIP:
                while low > 0 and not is_taken[low - 1] and text[start + low - 1] in SPACES:
                    low -= 1
            if token.attribute & RSTRIP:
                while high < len(is_taken) and not is_taken[high] and text[start + high] in SPACES:
                    high += 1
            is_taken[low:high] = b"\1" * (high - low)

        def plain(low: int, high: int) -> TextFragment:
            first, last = is_taken.find(False, low, high), is_taken.rfind(False, low, high)
            return TextFragment(None, start + max(first, low), start + max(last + 1, low))

        done = 0
        for at, rank in sorted(found):
            token = self._tokens[rank]
            yield plain(done, at - start)
            done = at - start + len(token.text)
            yield TextFragment(token.index, at, start + done)
        yield plain(done, len(is_taken))
