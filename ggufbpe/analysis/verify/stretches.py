"""Finds the stretches of a text that several tokenizers split alike, and those that they split differently.

A text may have millions of tokens, so everything is done on arrays; objects for tokens are only made for the
stretches that are requested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from .align import Placed, Row

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Numbers = npt.NDArray[np.int64]
    Truths = npt.NDArray[np.bool_]


class Stretch(NamedTuple):
    """`text[start:end]`, in bytes, with the tokens of each tokenizer; as short as possible: all split the text there.

    `is_same` if all split it into the same pieces; neighbouring stretches with the same pieces are one. `tokens` has a
    row of tokens for each tokenizer, in the order of the models.
    """

    start: int
    end: int
    is_same: bool
    tokens: list[Row]

    def to_dict(self) -> dict[str, Any]:
        """The stretch as `ggufbpe compare --json` writes it."""
        rows = [[token.to_dict() for token in row] for row in self.tokens]
        return {"start": self.start, "end": self.end, "same": self.is_same, "tokens": rows}


class SplittingModel(NamedTuple):
    """How a model splits texts: to ids and offsets, arrays as from `encode_with_offsets_to_numpy`, and to pieces."""

    offsets: Callable[[bytes], tuple[Any, Any]]
    piece: Callable[[int], bytes]


class Stretches(Sequence[Stretch]):
    """All stretches of a text, in order; each is made when it is requested."""

    def __init__(self, models: Sequence[SplittingModel], text: bytes) -> None:
        import numpy as np

        self._models = models
        self._cuts: list[_Cut] = [_cut(each, text) for each in models]
        is_end = np.ones(len(text) + 1, np.bool_)
        for cut in self._cuts:
            is_end &= cut.is_end(len(text))
        ends = np.flatnonzero(is_end[1:]) + 1
        bounds = [cut.bounds(ends) for cut in self._cuts]  # of each, the token that each stretch begins with
        same = _are_same(self._cuts, bounds, len(ends))
        # neighbours that all split the same way are one stretch
        first = np.flatnonzero(~(np.r_[False, same[:-1]] & same)) if len(ends) else ends
        last = np.r_[first[1:], len(ends)] - 1 if len(ends) else ends
        self._ends, self._same = ends[last], same[first]
        self._starts = np.r_[0, self._ends[:-1]] if len(ends) else ends
        self._bounds = [np.r_[bound[first], bound[-1]] for bound in bounds]

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, index: int) -> Stretch: ...
    @overload
    def __getitem__(self, index: slice) -> list[Stretch]: ...
    def __getitem__(self, index: int | slice) -> Stretch | list[Stretch]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        index = range(len(self))[index]
        rows = [
            _row(model, cut, int(bound[index]), int(bound[index + 1]))
            for model, cut, bound in zip(self._models, self._cuts, self._bounds)
        ]
        return Stretch(int(self._starts[index]), int(self._ends[index]), bool(self._same[index]), rows)

    @property
    def counts(self) -> list[int]:
        """How many tokens each tokenizer makes of the text."""
        return [len(cut.ids) for cut in self._cuts]

    @property
    def differing(self) -> int:
        """How many stretches are not split the same way by all."""
        return int((~self._same).sum())

    def only_differing(self) -> Iterator[Stretch]:
        """The stretches that are not split the same way by all, in order."""
        return (self[number] for number in (~self._same).nonzero()[0].tolist())


class _Cut(NamedTuple):
    """The tokens of a text: their ids, and the bytes of the text that they begin and end with."""

    ids: npt.NDArray[np.int32]
    starts: Numbers
    ends: Numbers
    reached: Numbers  # the last byte of each token and all before it

    def is_end(self, size: int) -> Truths:
        """For each position in a text of `size` bytes, whether a token ends there and none continues across it."""
        import numpy as np

        following = np.r_[self.starts[1:], size][: len(self.ids)]
        is_end = np.zeros(size + 1, np.bool_)
        is_end[self.reached[following >= self.reached]] = True
        is_end[size] = True
        return is_end

    def bounds(self, ends: Numbers) -> Numbers:
        """The index of the first token of each stretch, given their ends; and finally the number of tokens."""
        import numpy as np

        firsts = np.searchsorted(self.reached, ends[:-1], side="right")
        bounds: Numbers = np.r_[0, firsts, len(self.ids)]
        return bounds[: len(ends) + 1]


def _cut(model: SplittingModel, text: bytes) -> _Cut:
    import numpy as np

    ids, offsets = model.offsets(text)
    kind = np.int32 if len(text) < 1 << 31 else np.int64  # half of the memory, where that does
    starts, ends = np.ascontiguousarray(offsets.T, kind)
    return _Cut(ids, starts, ends, np.maximum.accumulate(ends))


def _are_same(cuts: Sequence[_Cut], bounds: Sequence[Numbers], number: int) -> Truths:
    """For each stretch, whether all split it into the same pieces. Tokens that cover no byte do not count."""
    import numpy as np

    same = np.ones(number, np.bool_)
    filled = [cut.starts < cut.ends for cut in cuts]
    places = [np.stack([cut.starts[some], cut.ends[some]]) for cut, some in zip(cuts, filled)]
    firsts = [np.r_[0, np.cumsum(some)][bound] for some, bound in zip(filled, bounds)]
    for own, first in zip(places[1:], firsts[1:]):
        sizes, others = np.diff(firsts[0]), np.diff(first)
        same &= sizes == others
        stretch = np.repeat(np.arange(number), sizes)  # of each token of the first
        stretch, token = stretch[same[stretch]], np.flatnonzero(same[stretch])
        differs = (places[0][:, token] != own[:, token - firsts[0][stretch] + first[stretch]]).any(axis=0)
        same[stretch[differs]] = False
    return same


def _row(model: SplittingModel, cut: _Cut, first: int, last: int) -> Row:
    ids, starts, ends = (each[first:last].tolist() for each in (cut.ids, cut.starts, cut.ends))
    return [Placed(token, model.piece(token), *span) for token, *span in zip(ids, starts, ends)]
