"""The interface between `Tokenizer` and what computes ids.

    Tokenizer -> Engine -> NativeEngine (C++) or the reference engine (plain Python)

Both engines give the same ids, offsets, and pre-tokens for every input. Whatever differs between them (threads, places
where a text can be split, whether offsets are tuples or a buffer) is hidden behind the methods below, so no caller asks
which engine runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, Protocol

from .._util.lazy import IMPORT_LOCK

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .boundaries import SplitRequest

    Ids = npt.NDArray[np.int32]  # of shape (number of tokens,)
    Offsets = npt.NDArray[np.int64]  # of shape (number of tokens, 2)

Text = str | bytes | bytearray | memoryview


@cache  # even a repeated import statement takes as long as encoding a short text
def numpy() -> Any:
    """Return the module numpy, imported on first use: importing it takes longer than opening a vocabulary."""
    with IMPORT_LOCK:
        import numpy
    return numpy


class Engine(Protocol):
    """Encodes texts with one vocabulary.

    All methods raise `TypeError` for a text that is neither `str` nor bytes, and `ValueError` for a `str` with a lone
    surrogate. `add_special`, `parse_special` and `continues` mean what they mean in `Tokenizer.encode`. `threads` is
    the largest number of threads to use; an engine may use fewer.
    """

    @property
    def name(self) -> Literal["native", "reference"]:
        """The name by which `Tokenizer.from_gguf(engine=...)` chooses this engine."""

    def encode(self, text: Text, add_special: bool, parse_special: bool, continues: bool, /) -> list[int]:
        """Return the ids of `text`."""

    def encode_to_numpy(
        self, text: Text, add_special: bool, parse_special: bool, continues: bool, threads: int
    ) -> Ids:
        """Return the ids of `text` as an int32 array."""

    def encode_with_offsets(
        self, text: Text, add_special: bool, parse_special: bool, continues: bool
    ) -> tuple[list[int], Sequence[tuple[int, int]]]:
        """Return the ids of `text` and the span (start, end) of each in the bytes of its UTF-8."""

    def encode_with_offsets_to_numpy(
        self, text: Text, add_special: bool, parse_special: bool, continues: bool
    ) -> tuple[Ids, Offsets]:
        """Return the ids of `text` and their spans in bytes as arrays."""

    def encode_batch(
        self, texts: Iterable[Text], add_special: bool, parse_special: bool, threads: int
    ) -> list[list[int]]:
        """Return the ids of each text."""

    def encode_batch_to_numpy(
        self, texts: Iterable[Text], add_special: bool, parse_special: bool, threads: int
    ) -> list[Ids]:
        """Return the ids of each text as int32 arrays."""

    def encode_plain(self, text: str) -> Iterable[int]:
        """Return the ids of `text` taken as plain text, with nothing added. Needs no special tokens."""

    def count(
        self, text: Text, add_special: bool, parse_special: bool, threads: int, continues: bool, /
    ) -> int:
        """Return the number of ids of `text`."""

    def pre_tokenize(self, text: Text) -> list[str]:
        """Return the words into which the pre-tokenizer splits `text`, all of it taken as plain text."""

    def count_pre_tokens(self, text: Text) -> int:
        """Return the number of words that `pre_tokenize` returns."""

    def find_split_point(self, data: bytes, start: int, continues: bool) -> int:
        """Return the first position from `start` on, other than 0, where `data` can be split without changing an id.

        Special tokens are not considered. `continues` says whether the second part will be encoded with it, which
        models without a pre-tokenizer need. Returns `len(data)` where the engine knows no such position.
        """

    def split(self, text: str | bytes, request: SplitRequest) -> list[tuple[int, int]]:
        """Return the spans that `Tokenizer.split` describes."""

    def special_token_spans(self, data: bytes, parse_special: bool) -> list[tuple[int, int]]:
        """Return the span of the longest special token at each byte where one begins, overlapping or not."""

    def release_memory(self) -> None:
        """Free the memory of encoded words."""
