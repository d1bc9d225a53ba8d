"""Computes where tokens begin and end, in a text or in a chunk of a longer text."""

# No `from __future__ import annotations`: `typing` would compile each annotation of a NamedTuple at every import.

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, overload

if TYPE_CHECKING:
    import numpy.typing as npt

    from . import Tokenizer


class TokenOffsets(Sequence[tuple[int, int]]):
    """The span (start, end) of each token: equal to a list of tuples, but each tuple is made when it is read.

    Making them all takes longer than encoding. `numpy.asarray` takes the numbers as they are, of shape (tokens, 2).
    """

    __slots__ = ("_flat",)

    def __init__(self, numbers: Any) -> None:
        """`numbers` is a buffer of int64: start and end of each token in turn."""
        self._flat = memoryview(numbers).cast("B").cast("q")

    @property
    def starts(self) -> memoryview:
        """Where each token begins."""
        return self._flat[::2]

    @property
    def ends(self) -> memoryview:
        """Where each token ends."""
        return self._flat[1::2]

    def __len__(self) -> int:
        return len(self._flat) // 2

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self.starts, self.ends)

    @overload
    def __getitem__(self, index: int) -> tuple[int, int]: ...
    @overload
    def __getitem__(self, index: slice) -> list[tuple[int, int]]: ...
    def __getitem__(self, index: int | slice) -> tuple[int, int] | list[tuple[int, int]]:
        if isinstance(index, slice):
            return list(zip(self.starts[index], self.ends[index]))
        return self.starts[index], self.ends[index]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TokenOffsets):
            return self._flat == other._flat
        return list(self) == other if isinstance(other, list) else NotImplemented

    def __repr__(self) -> str:
        return repr(list(self))

    def __reduce__(self) -> "tuple[type[TokenOffsets], tuple[bytes]]":
        return TokenOffsets, (bytes(self._flat),)

    def __array__(self, dtype: "npt.DTypeLike | None" = None, copy: bool | None = None) -> "npt.NDArray[Any]":
        import numpy

        return numpy.array(numpy.frombuffer(self._flat, numpy.int64).reshape(-1, 2), dtype)  # always a copy


def chunks_add_up(tokenizer: "Tokenizer") -> bool:
    """Whether the counts of a text's chunks add up to those of the whole: its tokens stand for all of it."""
    vocabulary = tokenizer.vocabulary
    keeps_text = vocabulary.tokenizer_model.keeps_text and not vocabulary.pre_tokenizer.prepend_space
    return tokenizer.engine == "native" and keeps_text


class Spans(NamedTuple):
    """Ids, and where each begins and ends, in bytes."""

    ids: list[int]
    starts: list[int]
    ends: list[int]


def spans(tokenizer: "Tokenizer", data: bytes, parse_special: bool, at: int = 0) -> Spans:
    """The ids of a text to which nothing is added, and where each begins and ends.

    The text begins at `at`; if that is not 0, it continues another one.
    """
    ids, found = tokenizer.encode_with_offsets(
        data, add_special=False, parse_special=parse_special, continues=at > 0
    )
    return Spans(ids, [at + start for start, _ in found], [at + end for _, end in found])
