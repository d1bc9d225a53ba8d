"""Forecasts where the metadata of a far file ends while it comes in, so that the next range is asked for in time.

    section.py, as it walks over an array -> [this file] -> what is sure to come, and what is likely -> stream.py

Of an array of strings, as many are likely to come as there are, as long as they have been so far, and longer by what
they grew with each doubling of their number: tokens and merges stand in the order in which they were learned.
Behind the tokens come their companions: a type for each, and as the tokenizer model wants them a score for each, or
merges. A merge is a token with a space in it, so the length of the one array tells that of the other.

But: these are guesses. They are rather too low; what is missing is asked for later.
"""

from __future__ import annotations

from functools import cache
from math import log2

from ..gguf.constants import GGUFValueType, TokenizerKey
from ..gguf.reader import GGUFFile
from ..gguf.source import Source
from ..models import tokenizer_model
from .stream import RangeStream

_LIST, _MERGES = TokenizerKey.LIST, TokenizerKey.MERGES
_NUMBERS = (TokenizerKey.TOKEN_TYPE, TokenizerKey.SCORES)  # of 4 bytes
_ALWAYS = (_LIST, TokenizerKey.TOKEN_TYPE)  # what every vocabulary has
_LONGEST_NAME = 64  # bytes of the name of a tokenizer model
_LOOKED_AT = 1 << 12  # bytes that may not have been walked over yet when a forecast is made
_LENGTH = 8  # bytes before each string, of its length
# Shares of what is forecast that are relied on, by what 19 real vocabularies have (benchmarks/far.py).
_OF_STRINGS = 0.8  # beside the strings of the same array, without their lengths
_MOST_GROWTH = 1.0  # bytes
_OF_COMPANION = 0.98  # beside the other array of tokens or merges


class ArrivingFile(GGUFFile):
    """A far file, which is walked while its bytes come in."""

    def __init__(self, path: str | Source, stream: RangeStream) -> None:
        """`path` is what errors call it."""
        self._stream = stream
        self._growing = ""  # the array that is walked
        self._half = self._mark = (0, 0)  # strings of it, and their bytes
        super().__init__(path, stream)

    def coming(self, key: str, count: int, done: int, data: int, position: int, sure: int) -> None:
        """Ask for what is sure to come, and for what is likely, once what is here has been walked over."""
        if done < count:
            self._note(key, done, position - data)
        if self._stream.received - position > _LOOKED_AT:
            return
        likely = sure
        if done < count:
            likely = max(self._by_companion(key, count, done, data), sure)
            if likely == sure:
                letters = (position - data) / done - _LENGTH + self._growth() * log2(count / done)
                likely = position + int((count - done) * (_LENGTH + _OF_STRINGS * letters))
        self._expect(sure, likely + self._after(key, count, likely - data))

    def _note(self, key: str, done: int, size: int) -> None:
        """Keep how long the strings of an array were when half as many of them, or fewer, had come."""
        if key != self._growing:
            self._growing = key
            self._half = self._mark = (0, 0)
        if done >= 2 * self._mark[0]:
            self._half, self._mark = self._mark, (done, size)

    def _growth(self) -> float:
        """By how many bytes strings got longer, in the mean of all, while their number doubled the last time."""
        (before, bytes_before), (done, size) = self._half, self._mark
        if not before:
            return 0.0
        growth = (size / done - bytes_before / before) / log2(done / before)
        return min(max(growth, 0.0), _MOST_GROWTH)

    def _by_companion(self, key: str, count: int, done: int, data: int) -> int:
        """Where tokens or merges end by what the other of the two has, if it has been seen; 0 if not.

        The second half of them is better known by the first.
        """
        other = {_LIST: _MERGES, _MERGES: _LIST}.get(key)
        if other is None or other not in self or done > count // 2:
            return 0
        size, number = self._size(other), max(self.array_length(other), 1)
        return data + int(_OF_COMPANION * count * (size / number + (1 if key == _MERGES else -1)))

    def _after(self, key: str, count: int, size: int) -> int:
        """How many bytes the companions of an array of `size` bytes likely have that have not been seen yet."""
        if key not in (_LIST, _MERGES, *_NUMBERS):
            return 0
        missing = [each for each in self._companions if each not in self and each != key]
        if key in _NUMBERS:
            size = next((self._size(each) for each in (_LIST, _MERGES) if each in self), 0)
        strings = int(_OF_COMPANION * (size + count * (1 if _MERGES in missing else -1))) if size else 0
        return sum(4 * count if each in _NUMBERS else strings for each in missing)

    def _size(self, key: str) -> int:
        entry = self._entries[key]
        return entry.end - entry.data

    @property
    def _companions(self) -> tuple[str, ...]:
        """The arrays that a vocabulary has; of which model it is may not be known yet."""
        entry = self._entries.get(TokenizerKey.MODEL)
        if entry is None or entry.type is not GGUFValueType.STRING or entry.size > _LONGEST_NAME:
            return _ALWAYS
        return _companions_of(self._read(entry.data, entry.size))


@cache
def _companions_of(name: bytes) -> tuple[str, ...]:
    model = tokenizer_model(name.decode("utf-8", "replace"))
    scores = (TokenizerKey.SCORES,) * model.has_scores
    return (*_ALWAYS, *scores, *(_MERGES,) * (model.algorithm == "merges"))
