"""Cuts a text to the longest part that has at most so many tokens when encoded by itself.

    counts at certain places, from both ends -> a bound for each part -> the few parts near it, counted one by one

A certain place is one where no text further away changes an id (split_points.py). What stands between the beginning and
such a place, or between a place and the end, has one count whatever is cut out elsewhere, so the sum of both is a lower
bound on the count of each part that keeps them. The longest part is the first that fits, from the longest downwards,
where the bound does not forbid it.
"""

from __future__ import annotations

import io
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal, get_args

from .._util.unicode_classes import class_of
from .._util.utf8 import to_bytes
from ..chat.prompt_tokenizer import Side
from .chunking import chunks_of_stream
from .engine import numpy

if TYPE_CHECKING:
    from . import Tokenizer

CutAt = Literal["character", "word"]
CUT_AT: tuple[CutAt, ...] = get_args(CutAt)

_COARSE, _FINE = 1 << 11, 1 << 5  # bytes between the places that are counted
_MOST_BETWEEN = 1 << 15  # bytes between two of them
_TRIED = 512  # parts that are counted one by one
_WORK = 1 << 20  # bytes to count at most beyond that, for a text without certain places
_UNSPACED = range(0x2E80, 0xA4D0)  # characters of scripts that put no white space between words


def longest_part(
    tokenizer: Tokenizer, text: str, limit: int, side: Side, marker: str, at: CutAt, parse_special: bool
) -> str:
    """Return the longest part of `text`, which has more than `limit` ids, that has at most `limit` with `marker`.

    Undecodable bytes are surrogates in `text`. `ValueError` if even `marker` has more than `limit` ids.
    """
    mark = to_bytes(marker)
    least = tokenizer._engine.count(mark, False, parse_special, 1, False)
    if least > limit:
        raise ValueError(f"the marker alone has {least} tokens, and the limit is {limit}")
    ends = _without_middle(tokenizer, text, limit, side, parse_special)
    data = ends.encode("utf-8", "surrogateescape")
    head, tail = _Parts(tokenizer, data, mark, limit, parse_special, _Cuts(ends, data, side, at)).longest()
    return text[:head] + marker + text[len(text) - tail :]


def _without_middle(tokenizer: Tokenizer, text: str, limit: int, side: Side, parse_special: bool) -> str:
    """The ends of a long text in which the part to keep is certain to be; the text itself if none are."""
    places = tokenizer._split_points_for(parse_special)
    size = 8 * limit + (1 << 12)
    while 3 * size < len(text):
        first, last = text[:size], text[-size:]
        if side != "left":
            found = _counts_before(tokenizer, first.encode("utf-8", "surrogateescape"), limit, parse_special)
        else:
            data = last.encode("utf-8", "surrogateescape")
            found = _counts_behind(tokenizer, data, limit, parse_special, places.around)
        if max(found.values()) > limit:
            return first if side == "right" else last if side == "left" else first + last
        size *= 2
    return text


def _counts_before(tokenizer: Tokenizer, data: bytes, limit: int, parse_special: bool) -> dict[int, int]:
    """Certain places, and how many ids are before each, from the beginning until that is more than `limit`."""
    found, at, count = {0: 0}, 0, 0
    # Only such places are certain that `around` bytes decide, not special tokens within a word.
    how: Any = {"continues": True, "between_words": True}
    for chunk in chunks_of_stream(io.BytesIO(data), [tokenizer], parse_special, _COARSE, **how):
        count += tokenizer._engine.count(chunk, False, parse_special, 1, at > 0)
        at += len(chunk)
        if at < len(data):
            found[at] = count
        if count > limit:
            break
    return found


def _counts_behind(
    tokenizer: Tokenizer, data: bytes, limit: int, parse_special: bool, first: int = 1
) -> dict[int, int]:
    """Certain places from `first` on, and how many ids are behind each, until that is more than `limit`."""
    places = tokenizer._split_points_for(parse_special)
    found, end, count, step = {len(data): 0}, len(data), 0, _COARSE
    while count <= limit and end - step >= first:
        at = places.next(data, end - step)
        if at >= end:
            step *= 2
            continue
        count += tokenizer._engine.count(data[at:end], False, parse_special, 1, True)
        found[at] = count
        end, step = at, _COARSE
    return found


class _Cuts:
    """Which parts of a text may be kept: `size` characters at the beginning, at the end, or half of it at both."""

    def __init__(self, text: str, data: bytes, side: Side, at: CutAt) -> None:
        self._text, self._side, self._at_word = text, side, at == "word"
        self._starts = _character_starts(text, data)
        self.length = len(text)
        # The word that was looked at last: where it begins, and from where on that is known; and the other way round.
        self._before = self._behind = (0, 0)

    def ends(self, size: int) -> tuple[int, int]:
        """The characters of the kept beginning and of the kept end, of at most `size` in all."""
        head = size if self._side == "right" else 0 if self._side == "left" else (size + 1) // 2
        tail = size - head
        if self._at_word:
            head, tail = self._word_start(head), self.length - self._word_end(self.length - tail)
        return head, tail

    def _word_start(self, position: int) -> int:
        """The last place up to `position` that is not within a word."""
        start, known = self._before
        place = position
        while place > 0 and self._is_in_word(place):
            if start < place <= known:  # of the same word, whose beginning was looked for before
                place = start
                break
            place -= 1
        self._before = place, max(position, known) if place == start else position
        return place

    def _word_end(self, position: int) -> int:
        """The first place from `position` on that is not within a word."""
        known, end = self._behind
        place = position
        while place < self.length and self._is_in_word(place):
            if known <= place < end:
                place = end
                break
            place += 1
        self._behind = min(position, known) if place == end else position, place
        return place

    def in_bytes(self, ends: tuple[int, int]) -> tuple[int, int]:
        """Where the kept beginning ends and the kept end begins, in bytes."""
        return self._starts[ends[0]], self._starts[self.length - ends[1]]

    def next_size(self, ends: tuple[int, int]) -> int:
        """The largest size whose part is smaller."""
        head, tail = ends
        return (max(2 * head - 1, 2 * tail) if self._side == "middle" else head + tail) - 1

    def _is_in_word(self, position: int) -> bool:
        around = self._text[max(position - 1, 0) : position + 1]
        return len(around) == 2 and all(map(_is_of_word, around))


class _Parts:
    """The parts of a text that `cuts` allows, and their counts."""

    def __init__(
        self, tokenizer: Tokenizer, data: bytes, mark: bytes, limit: int, parse_special: bool, cuts: _Cuts
    ) -> None:
        self._engine_count = tokenizer._engine.count
        self._parse_special = parse_special
        self._data, self._mark, self._limit, self._cuts = data, mark, limit, cuts
        self._places = tokenizer._split_points_for(parse_special)
        self._before = _counts_before(tokenizer, data, limit, parse_special)
        self._behind = _counts_behind(tokenizer, data, limit, parse_special)
        self._sort()

    def _count(self, data: bytes, continues: bool) -> int:
        return self._engine_count(data, False, self._parse_special, 1, continues)

    def longest(self) -> tuple[int, int]:
        """The characters to keep at the beginning and at the end."""
        head, tail = self._cuts.in_bytes(self._cuts.ends(self._largest()))
        if head > 0:
            self._count_before(head)
        if tail < len(self._data):
            self._count_behind(tail)
        self._sort()
        largest = size = self._largest()
        is_bounded = largest < self._cuts.length - 1 or largest <= _TRIED
        for _ in range(_TRIED if is_bounded else 0):
            if size < 0:
                break
            ends = self._cuts.ends(size)
            count, work = self._counted(ends)
            if count <= self._limit:
                return ends
            if work > _WORK // _TRIED:
                break
            size = self._cuts.next_size(ends)
        return self._searched(largest)

    def _largest(self) -> int:
        """The largest size that the bound does not forbid; it grows with the size."""
        low, high = 0, self._cuts.length - 1
        while low < high:
            middle = (low + high + 1) // 2
            before, behind = self._certain(self._cuts.in_bytes(self._cuts.ends(middle)))
            if self._before[before] + self._behind[behind] > self._limit:
                high = middle - 1
            else:
                low = middle
        return low

    def _searched(self, largest: int) -> tuple[int, int]:
        """The longest part as far as a search by halves finds it, and the longer ones near it that fit."""
        low, high = 0, min(2 * self._limit + 1, largest)
        while high < largest and self._fits(high):
            low, high = high, min(2 * high, largest)
        if self._fits(high):
            low = high
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._fits(middle) else (low, middle - 1)
        work = self._counted(self._cuts.ends(low))[1]
        size = min(low + max(min(_TRIED, _WORK // (work + 1)), 16), largest)
        while size > low:
            ends = self._cuts.ends(size)
            if self._counted(ends)[0] <= self._limit:
                return ends
            size = self._cuts.next_size(ends)
        return self._cuts.ends(low)

    def _fits(self, size: int) -> bool:
        return self._counted(self._cuts.ends(size))[0] <= self._limit

    def _counted(self, ends: tuple[int, int]) -> tuple[int, int]:
        """The count of a part with the marker, and of how many bytes it is for."""
        head, tail = self._cuts.in_bytes(ends)
        before, behind = self._certain((head, tail))
        between = self._data[before:head] + self._mark + self._data[tail:behind]
        count = self._count(between, before > 0)
        return self._before[before] + count + self._behind[behind], len(between)

    def _certain(self, bounds: tuple[int, int]) -> tuple[int, int]:
        """The last place that is certain in what is kept at the beginning, and the first in the end."""
        around = self._places.around
        before = bisect_right(self._places_before, max(bounds[0] - around, 0)) - 1
        behind = bisect_left(self._places_behind, min(bounds[1] + around, len(self._data)))
        return self._places_before[before], self._places_behind[behind]

    # ---- counts at certain places -------------------------------------------------------------------

    def _count_before(self, position: int) -> None:
        """Count at more places near a position."""
        at = max(each for each in self._before if each <= max(position - _COARSE // 2, 0))
        if position - at > _MOST_BETWEEN:
            return
        count, last = self._before[at], min(position + _COARSE // 2, len(self._data))
        while (after := self._places.next(self._data, at + _FINE)) < last:
            count += self._count(self._data[at:after], at > 0)
            self._before[after] = count
            at = after

    def _count_behind(self, position: int) -> None:
        """Count at more places near a position."""
        end = min(each for each in self._behind if each >= min(position + _COARSE // 2, len(self._data)))
        if end - position > _MOST_BETWEEN:
            return
        found, at = [], max(position - _COARSE // 2, 1)
        while (at := self._places.next(self._data, at)) < end:
            found.append(at)
            at += _FINE
        count = self._behind[end]
        for at in reversed(found):
            count += self._count(self._data[at:end], True)
            self._behind[at] = count
            end = at

    def _sort(self) -> None:
        self._places_before, self._places_behind = sorted(self._before), sorted(self._behind)


def _character_starts(text: str, data: bytes) -> Sequence[int]:
    """Where each character begins in the bytes, and where the last one ends.

    >>> list(_character_starts("aé!", "aé!".encode()))
    [0, 1, 3, 4]
    """
    if len(text) == len(data):
        return range(len(data) + 1)
    numpy_ = numpy()
    found = numpy_.flatnonzero(numpy_.frombuffer(data, numpy_.uint8) & 0xC0 != 0x80).tolist()
    if len(found) == len(text):
        return [*found, len(data)]
    lengths = (len(char.encode("utf-8", "surrogateescape")) for char in text)  # some bytes are not UTF-8
    return list(accumulate(lengths, initial=0))


def _is_of_word(char: str) -> bool:
    return ord(char) not in _UNSPACED and class_of(ord(char)) in "LMN"
