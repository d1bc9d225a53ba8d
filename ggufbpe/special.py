"""Text to fragments: special tokens, and the plain text between them.

    text -> [this file] -> fragments -> split.py (plain text), ids (special tokens)

llama.cpp goes through all special tokens, the longest first, and cuts each out of every fragment that is
still plain text (src/llama-vocab.cpp: tokenizer_st_partition). That is a search of the whole text for every
token. Here one search finds the places where any token stands; only where several overlap, or white space
is stripped, are the tokens gone through in llama.cpp's order.

But: knows no words and no merges. Bytes that are not UTF-8 are searched as they are, in the form of a text
with one character a byte, and so are the special tokens then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from .once import made_once
from .vocab import CONTROL, LSTRIP, RSTRIP, UNKNOWN, Vocabulary

_SPACES = " \t\n\v\f\r"  # isspace in the C locale
_INSERTION_SORT_UP_TO = 16  # elements; libstdc++'s _S_threshold


class Fragment(NamedTuple):
    """`text[start:end]`: the special token `token`, or plain text where that is None."""

    token: int | None
    start: int
    end: int


class SpecialTokens:
    """Finds the special tokens of one vocabulary in texts."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._searches: dict[tuple[bool, bool], _Search] = {}

    def partition(self, source: str | bytes, parse_special: bool) -> list[Fragment]:
        """The fragments of `source`, in order, none empty. White space that a token strips is in none.

        Without `parse_special`, control and unknown tokens are plain text; user-defined ones never are.
        """
        as_bytes = isinstance(source, bytes)
        text = source.decode("latin-1") if isinstance(source, bytes) else source
        search = self._search(parse_special, as_bytes)
        fragments: list[Fragment] = []

        def add(fragment: Fragment) -> None:
            last = fragments[-1] if fragments else None
            if last is not None and last.token is fragment.token is None and last.end == fragment.start:
                fragments[-1] = Fragment(None, last.start, fragment.end)  # cut only by where a region ended
            elif fragment.start < fragment.end:
                fragments.append(fragment)

        end = 0
        for start, stop, single in search.regions(text):
            add(Fragment(None, end, start))
            if single:
                add(Fragment(search.ids[text[start:stop]], start, stop))
            else:
                for fragment in self._one_after_the_other(text, start, stop, search):
                    add(fragment)
            end = stop
        add(Fragment(None, end, len(text)))
        return fragments

    def _search(self, parse_special: bool, as_bytes: bool) -> _Search:
        """The search for the tokens that count, made on first use."""
        key = parse_special, as_bytes
        if key not in self._searches:
            attributes = self._vocabulary.attributes
            hidden = 0 if parse_special else CONTROL | UNKNOWN
            shown = [i for i in self._vocabulary.special_token_ids if not attributes[i] & hidden]
            texts = [self._vocabulary.tokens[index] for index in shown]
            if as_bytes:
                texts = [text.encode().decode("latin-1") for text in texts]
            strips = any(attributes[index] & (LSTRIP | RSTRIP) for index in shown)
            self._searches[key] = _Search(dict(zip(reversed(texts), reversed(shown))), strips)
        return self._searches[key]

    def _one_after_the_other(self, text: str, start: int, end: int, search: _Search) -> list[Fragment]:
        """llama.cpp's own way, on the part of the text where it matters."""
        fragments = [Fragment(None, start, end)]
        letters = set(text[start:end])
        present = {
            i: t for t, i in search.ids.items() if letters.issuperset(t) and text.find(t, start, end) >= 0
        }
        for token in self._longest_first:
            if token in present:
                fragments = list(self._cut_all(text, fragments, token, present[token]))
        return fragments

    def _cut_all(self, text: str, fragments: list[Fragment], token: int, searched: str) -> Iterator[Fragment]:
        """`fragments` with every `token` in the plain ones cut out, from the left."""
        attribute = self._vocabulary.attributes[token]
        for fragment in fragments:
            if fragment.token is not None:
                yield fragment
                continue
            _, start, end = fragment
            while (at := text.find(searched, start, end)) >= 0:
                left = start + len(text[start:at].rstrip(_SPACES)) if attribute & LSTRIP else at
                if start < left:
                    yield Fragment(None, start, left)
                start = at + len(searched)
                yield Fragment(token, at, start)
                if attribute & RSTRIP:
                    start = end - len(text[start:end].lstrip(_SPACES))
            if start < end:
                yield Fragment(None, start, end)

    @made_once
    def _longest_first(self) -> list[int]:
        """The special tokens in the order in which llama.cpp goes through them."""
        lengths = [(len(self._vocabulary.tokens[i].encode()), i) for i in self._vocabulary.special_token_ids]
        return [index for _, index in sort_longest_first(lengths)]


class _Search:
    """One search for many texts: where in a text any of them stands."""

    def __init__(self, ids: dict[str, int], strips: bool) -> None:
        self.ids = ids
        self._strips = strips
        # By the first two characters of a text (or its only one), the lengths to try, longest first.
        self._lengths: dict[str, list[int]] = {}
        for text in ids:
            self._lengths.setdefault(text[:2], []).append(len(text))
        for start, lengths in self._lengths.items():
            if len(start) == 2 and start[0] in ids:
                lengths.append(1)
            lengths[:] = sorted(set(lengths), reverse=True)
        self._candidates = re.compile(self._pattern()) if ids else None

    def _pattern(self) -> str:
        """Matches where a text may begin: its first character, and the second ahead."""
        seconds: dict[str, list[str]] = {}
        for start in self._lengths:
            seconds.setdefault(start[0], []).append(re.escape(start[1:]))
        alone = "".join(re.escape(first) for first, rest in seconds.items() if "" in rest)
        pairs = [f"{re.escape(a)}(?=[{''.join(rest)}])" for a, rest in seconds.items() if "" not in rest]
        return "|".join(([f"[{alone}]"] if alone else []) + pairs)

    def regions(self, text: str) -> Iterator[tuple[int, int, bool]]:
        """(start, end, whether it is just one token) of each part of `text` that tokens touch, in order."""
        found = self._overlapping(text)
        if self._strips:
            found = self._with_spaces(text, found)
        start = end = -1
        count = 0
        for first, last in found:
            if first >= end:
                if count:
                    yield start, end, count == 1 and not self._strips
                start, end, count = first, last, 0
            end = max(end, last)
            count += 1
        if count:
            yield start, end, count == 1 and not self._strips

    def _overlapping(self, text: str) -> Iterator[tuple[int, int]]:
        """Start and end of the longest text at each place where one begins."""
        if self._candidates is None:
            return
        for candidate in self._candidates.finditer(text):
            at = candidate.start()
            beginning = text[at : at + 2]
            for length in self._lengths.get(beginning if beginning in self._lengths else text[at], ()):
                searched = text[at : at + length]
                if searched in self.ids:
                    yield at, at + len(searched)  # shorter than `length` at the end of the text
                    break

    def _with_spaces(self, text: str, found: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """`found`, each with the white space around it, which a token may strip."""
        low = high = 0  # text[low:high] is the last run of white space that was looked at

        def run_around(position: int) -> tuple[int, int]:
            nonlocal low, high
            if not low <= position <= high:
                low = high = position
                while low > 0 and text[low - 1] in _SPACES:
                    low -= 1
                while high < len(text) and text[high] in _SPACES:
                    high += 1
            return low, high

        for start, end in found:
            yield run_around(start)[0], run_around(end)[1]


def sort_longest_first(items: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """`items`, (length, id) with ids ascending, by falling length in the order of libstdc++'s `std::sort`.

    Equal lengths keep no order there, and which of two overlapping special tokens of one length wins depends
    on it, so the algorithm is followed: quicksort by the median of three down to 16 elements, heapsort where
    that goes too deep, and an insertion sort over all at the end.

    >>> sort_longest_first([(1, 0), (3, 1), (3, 2)])
    [(3, 1), (3, 2), (1, 0)]
    """
    items = list(items)
    ranges = [(0, len(items), 2 * (len(items).bit_length() - 1))]
    while ranges:
        first, last, depth = ranges.pop()
        while last - first > _INSERTION_SORT_UP_TO:
            if depth == 0:
                items[first:last] = _heap_sorted(items[first:last])
                break
            depth -= 1
            cut = _partition(items, first, last)
            ranges.append((cut, last, depth))
            last = cut
    return sorted(items, key=lambda item: -item[0])  # stable, as insertion sort is


def _heap_sorted(heap: list[tuple[int, int]]) -> list[tuple[int, int]]:
    size = len(heap)
    for parent in range((size - 2) // 2, -1, -1):
        _sift(heap, parent, size, heap[parent])
    for end in range(size - 1, 0, -1):
        value, heap[end] = heap[end], heap[0]
        _sift(heap, 0, end, value)
    return heap


def _sift(heap: list[tuple[int, int]], hole: int, size: int, value: tuple[int, int]) -> None:
    """Let the hole sink to the bottom, then let `value` rise from there: equal lengths move in just this way."""
    top = child = hole
    while child < (size - 1) // 2:
        child = 2 * (child + 1)
        if heap[child][0] > heap[child - 1][0]:
            child -= 1
        heap[hole] = heap[child]
        hole = child
    if size % 2 == 0 and child == (size - 2) // 2:
        child = 2 * child + 1
        heap[hole] = heap[child]
        hole = child
    while hole > top and heap[(hole - 1) // 2][0] > value[0]:
        heap[hole] = heap[(hole - 1) // 2]
        hole = (hole - 1) // 2
    heap[hole] = value


def _partition(items: list[tuple[int, int]], first: int, last: int) -> int:
    """Part `items[first:last]` around the median of three; returns where the second part begins."""
    a, b, c = first + 1, first + (last - first) // 2, last - 1

    def before(i: int, j: int) -> bool:
        return items[i][0] > items[j][0]

    if before(a, b):
        median = b if before(b, c) else c if before(a, c) else a
    else:
        median = a if before(a, c) else c if before(b, c) else b
    items[first], items[median] = items[median], items[first]
    low, high = first + 1, last
    while True:
        while before(low, first):
            low += 1
        high -= 1
        while before(first, high):
            high -= 1
        if low >= high:
            return low
        items[low], items[high] = items[high], items[low]
        low += 1
