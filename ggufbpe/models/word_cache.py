"""A cache of the ids of words, for the reference engine."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

_CACHED_WORDS = 1 << 18
_CACHED_LENGTH = 128  # characters


class EncodesWords(Protocol):
    """Encodes words that are not cached."""

    def ids(self, word: str) -> tuple[int, ...]:
        """The ids of `word`."""
        ...


E_co = TypeVar("E_co", bound=EncodesWords, covariant=True)


class WordCache(dict[str, tuple[int, ...]], Generic[E_co]):
    """The ids of words, encoded on first use. A full cache is emptied."""

    def __init__(self, encoder: E_co, most_words: int | None = None) -> None:
        super().__init__()
        self.encoder = encoder
        self._most_words = _CACHED_WORDS if most_words is None else most_words

    def __missing__(self, word: str) -> tuple[int, ...]:
        ids = self.encoder.ids(word)
        if len(word) <= _CACHED_LENGTH:
            if len(self) >= self._most_words:
                self.clear()
            self[word] = ids
        return ids
