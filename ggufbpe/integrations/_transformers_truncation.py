"""The part of transformers.py that cuts texts to a length, as transformers' fast tokenizers do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from ._protocol import library

T = TypeVar("T")

_Base: Any = library("transformers", "transformers").PythonBackend
_Strategy: Any = library("transformers.tokenization_utils_base", "transformers").TruncationStrategy


class Truncation(_Base):  # type: ignore[misc]
    """The base class of `GGUFTokenizer` with `truncate_sequences`."""

    def truncate_sequences(
        self,
        ids: list[T],
        pair_ids: list[T] | None = None,
        num_tokens_to_remove: int = 0,
        truncation_strategy: Any = "longest_first",
        stride: int = 0,
    ) -> tuple[list[T], list[T] | None, list[T]]:
        """Return both sequences without `num_tokens_to_remove`, and the overflow, which is `stride` longer.

        A pair that is cut from both sides has no overflow. `ValueError` if the strategy leaves nothing of the
        sequence that it cuts, or if there are fewer tokens than are to be removed.
        """
        strategy = _Strategy(truncation_strategy)
        if num_tokens_to_remove <= 0 or strategy == _Strategy.DO_NOT_TRUNCATE:
            return ids, pair_ids, []
        kept, kept_second = _kept(ids, pair_ids, num_tokens_to_remove, strategy)
        overflow: list[T] = []
        if pair_ids is None or strategy != _Strategy.LONGEST_FIRST:
            cut = pair_ids if strategy == _Strategy.ONLY_SECOND and pair_ids is not None else ids
            size = min(len(cut), num_tokens_to_remove + stride)
            overflow = cut[:size] if self.truncation_side == "left" else cut[len(cut) - size :]
        return self._cut(ids, kept), pair_ids and self._cut(pair_ids, kept_second), overflow

    def _cut(self, ids: list[T], size: int) -> list[T]:
        return ids[len(ids) - size :] if self.truncation_side == "left" else ids[:size]


def _kept(first: Sequence[T], second: Sequence[T] | None, removed: int, strategy: Any) -> tuple[int, int]:
    """The numbers of tokens that stay of both sequences.

    Source: tokenizers/src/utils/truncation.rs, truncate_encodings.
    """
    whole, whole_second = len(first), len(second or [])
    most = whole + whole_second - removed
    if most < 0:
        raise ValueError("max_length is less than the number of tokens that the model adds around the text")
    if most == 0:
        return 0, 0
    if strategy == _Strategy.LONGEST_FIRST:
        if second is None:
            return most, 0
        shorter = min(whole, whole_second, most // 2)
        return (most - shorter, shorter) if whole > whole_second else (shorter, most - shorter)
    if strategy == _Strategy.ONLY_SECOND and second is None:
        raise ValueError("truncation='only_second' needs a second text")
    which, size = ("second", whole_second) if strategy == _Strategy.ONLY_SECOND else ("first", whole)
    if size <= removed:
        raise ValueError(
            f"the {which} text has {size} of the tokens, and truncation={strategy.value!r} would remove {removed} to "
            "respect max_length; truncation='longest_first' cuts both texts"
        )
    return (whole, size - removed) if which == "second" else (size - removed, whole_second)
