"""Predicts where the metadata of a remote file ends as it arrives, so that the next range is requested in time.

The next strings of an array are likely as long as those so far. The tokens' companions follow: a type for each, and
depending on the tokenizer model a score for each, or merges. A merge is a token with a space in it, so the length of
either array predicts the other's. The tensor infos come last.

All of this is a guess on the low side; bytes that turn out to be missing are requested later.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache

from ..._util.errors import CorruptMetadataError, TruncatedFileError
from ...gguf.constants import GGUFValueType, TokenizerKey
from ...gguf.reader import GGUFFile
from ...gguf.source import Source
from ...gguf.tensors import LONGEST_INFO, LONGEST_NAME, tensor_infos
from ...models import tokenizer_model
from .range_stream import RangeStream

_LIST, _MERGES = TokenizerKey.LIST, TokenizerKey.MERGES
_NUMBERS = (TokenizerKey.TOKEN_TYPE, TokenizerKey.SCORES)  # of 4 bytes
_ALWAYS = (_LIST, TokenizerKey.TOKEN_TYPE)  # what every vocabulary has
_LONGEST_NAME = 64  # bytes of the name of a tokenizer model
_LOOKED_AT = 1 << 12  # no prediction while more bytes than this wait to be walked
_LENGTH = 8  # bytes before each string, of its length
_INFO = 48  # bytes of a tensor info; most have some more
_MOST_INFOS = 1 << 20  # bytes of all of them that are relied on
# The shares of predictions that are relied on, chosen on 19 real vocabularies.
_OF_STRINGS = 0.8  # from the strings of the same array, without their lengths
_OF_COMPANION = 0.98  # from the other array, of tokens or merges


class ArrivingFile(GGUFFile):
    """A remote file, walked as its bytes arrive."""

    def __init__(self, path: str | Source, stream: RangeStream) -> None:
        """`path` is what errors call it."""
        self._stream = stream
        super().__init__(path, stream)

    def coming(self, key: str, count: int, done: int, data: int, position: int, sure: int) -> None:
        """Request what is certain to follow, and what is likely, once what has arrived has been walked."""
        if self._stream.received - position > _LOOKED_AT:
            return
        likely = sure
        if done < count:
            likely = max(self._by_companion(key, count, done, data), sure)
            if likely == sure:
                letters = (position - data) / done - _LENGTH
                likely = position + int((count - done) * (_LENGTH + _OF_STRINGS * letters))
        infos = min(self.tensor_count * _INFO, _MOST_INFOS)
        self._expect(sure, likely + self._after(key, count, likely - data) + infos)

    def infos_end(self) -> int:
        """Read the tensor infos that follow the keys, and return where they end, or what can be read of them does."""
        end = self.metadata_end
        with suppress(TruncatedFileError, CorruptMetadataError):  # `doctor` says so; ids need none of them
            for done, info in enumerate(tensor_infos(self), 1):
                end = info.end
                if self._stream.received - end <= _LOOKED_AT:
                    left = (self.tensor_count - done) * (end - self.metadata_end) // done
                    self._expect(end, end + min(left, _MOST_INFOS))
            return end
        return min(end + LONGEST_INFO + LONGEST_NAME, self.size)

    def _by_companion(self, key: str, count: int, done: int, data: int) -> int:
        """The end of the tokens or merges, predicted from the other of the two; 0 if that has not been seen.

        The second half is better predicted from the first.
        """
        other = {_LIST: _MERGES, _MERGES: _LIST}.get(key)
        if other is None or other not in self or done > count // 2:
            return 0
        size, number = self._size(other), max(self.array_length(other), 1)
        return data + int(_OF_COMPANION * count * (size / number + (1 if key == _MERGES else -1)))

    def _after(self, key: str, count: int, size: int) -> int:
        """The likely bytes of the companions that are still to come, of an array of `size` bytes."""
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
        """The arrays of the vocabulary, as far as its model is known yet."""
        entry = self._entries.get(TokenizerKey.MODEL)
        if entry is None or entry.type is not GGUFValueType.STRING or entry.size > _LONGEST_NAME:
            return _ALWAYS
        return _companions_of(self._read(entry.data, entry.size))


@cache
def _companions_of(name: bytes) -> tuple[str, ...]:
    model = tokenizer_model(name.decode("utf-8", "replace"))
    scores = (TokenizerKey.SCORES,) * model.has_scores
    return (*_ALWAYS, *scores, *(_MERGES,) * (model.algorithm == "merges"))
