"""A text that grows or changes, and its ids, which are always those of `encode` of the whole text.

The text is kept in segments that begin where it can be split whatever else it is (split_points.py). A change encodes
the segments that it touches, and those whose beginnings depend on bytes that it touches; all others stay:

    segments | to encode: old bytes, the change, old bytes | segments
             ^ at least `reach` bytes before the change    ^ at least `reach` bytes after it
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from .._util.arguments import integer
from .._util.utf8 import to_bytes
from .chunking import ids_of_chunks, stable_chunks
from .split_points import SplitPoints
from .text_segments import SegmentChunk, SegmentPlace, Segments, TextSegment

if TYPE_CHECKING:
    from . import Tokenizer
    from .engine import Text

_SMALL = 512  # bytes; two segments of fewer are joined
_LARGE = 4096  # bytes; a segment of twice as many is split if it can be
_OPEN = 384  # bytes; a last segment of so many, and `reach`, is split
_AT_ONCE = 1 << 16  # bytes of a stream


class IdsChange(NamedTuple):
    """How the ids have changed: `old[:kept] + inserted + old[kept + removed:]` are the new ones.

    Ids after the first `kept` may also be unchanged, by chance.
    """

    kept: int
    removed: int
    inserted: list[int]


class Checkpoint:
    """A state of an `IncrementalEncoding`, to restore; `size` is the length of its text, `count` that of its ids."""

    __slots__ = ("_chunks", "_settings", "count", "size")

    def __init__(self, settings: object, chunks: tuple[SegmentChunk, ...], size: int, count: int) -> None:
        self._settings, self._chunks = settings, chunks
        self.size, self.count = size, count

    def __repr__(self) -> str:
        return f"<Checkpoint: {self.size} bytes, {self.count} ids>"


class IncrementalEncoding:
    """A text that changes, and its ids; `Tokenizer.incremental` makes one and describes the arguments.

    >>> growing = tok.incremental("Hello wor")
    >>> growing.append("ld"), growing.ids
    (IdsChange(kept=1, removed=1, inserted=[995]), [15496, 995])

    After every call, `ids` equal `tok.encode(growing.to_bytes())` with the same flags. Positions count the bytes of the
    text's UTF-8. Text is `str` or bytes; a character may be divided between two calls if it comes as bytes, and a
    position may be within one. If `encode` raises for the changed text, so does the call, and nothing is changed.

    An object is for one thread at a time. Copies, by `copy.copy` and `copy.deepcopy`, share what is equal. A pickle has
    the text and the tokenizer, and the text is encoded when it is unpickled.
    """

    def __init__(
        self, tokenizer: Tokenizer, text: Text = "", *, add_special: bool = True, parse_special: bool = True
    ) -> None:
        self._settings = tokenizer, bool(add_special), bool(parse_special)
        self._encode = tokenizer._engine.encode
        self._places = SplitPoints.of(tokenizer, parse_special, continues=True)
        self._before, self._behind = tokenizer.vocabulary.added if add_special else ([], [])
        self._segments = Segments()
        self.append(text)

    # ---- what there is --------------------------------------------------------------------------

    @property
    def ids(self) -> list[int]:
        """The ids of the text, as a new list."""
        ids = self._before.copy()
        for segment in self._segments:
            ids += segment.ids
        return ids + self._behind

    @property
    def count(self) -> int:
        """The number of ids."""
        return self._segments.count + len(self._before) + len(self._behind)

    @property
    def size(self) -> int:
        """The length of the text, in bytes."""
        return self._segments.size

    def to_bytes(self) -> bytes:
        """Return the whole text as bytes: UTF-8, unless other bytes were given."""
        return b"".join([segment.data for segment in self._segments])

    def __len__(self) -> int:
        """Return the number of ids."""
        return self.count

    def __repr__(self) -> str:
        return f"<IncrementalEncoding: {self.size} bytes, {self.count} ids>"

    # ---- changes --------------------------------------------------------------------------------

    def append(self, text: Text) -> IdsChange:
        """Put `text` at the end, and return how the ids have changed. Raises what `encode` raises."""
        size = self._segments.size
        return self._replace(size, size, to_bytes(text))

    def truncate(self, length: int) -> IdsChange:
        """Keep the first `length` bytes, and return how the ids have changed.

        `ValueError` if the text is shorter.
        """
        size = self._segments.size
        length = integer("length", length)
        if not 0 <= length <= size:
            raise ValueError(
                f"length must be from 0 to {size}, the length of the text in bytes, not {length}"
            )
        return self._replace(length, size, b"")

    def replace(self, start: int, end: int, text: Text) -> IdsChange:
        """Put `text` in place of the bytes from `start` up to `end`, and return how the ids have changed.

        `ValueError` unless 0 <= `start` <= `end` <= `size`. Raises what `encode` raises.
        """
        size = self._segments.size
        start, end = integer("start", start), integer("end", end)
        if not 0 <= start <= end <= size:
            raise ValueError(
                f"start and end must be in order and from 0 to {size}, the length of the text in bytes, "
                f"not {start} and {end}"
            )
        return self._replace(start, end, to_bytes(text))

    def checkpoint(self) -> Checkpoint:
        """Return the present state, for `restore`. It takes the memory of what is changed from now on."""
        segments = self._segments
        return Checkpoint(self._settings, tuple(segments.chunks), segments.size, self.count)

    def restore(self, checkpoint: Checkpoint) -> IdsChange:
        """Return to a state that `checkpoint` returned, and say how the ids have changed.

        The state may be of this object or of another with the same tokenizer and flags; otherwise, `ValueError`.
        """
        if not isinstance(checkpoint, Checkpoint):
            raise TypeError(f"not a Checkpoint but {type(checkpoint).__name__}")
        if checkpoint._settings != self._settings:
            raise ValueError(
                "the checkpoint is of another tokenizer, or of other add_special or parse_special"
            )
        old, added = self._segments, len(self._before) + len(self._behind)
        self._segments = Segments(checkpoint._chunks, checkpoint.size, checkpoint.count - added)
        change = _difference(old.chunks, self._segments.chunks)
        return change._replace(kept=change.kept + len(self._before))

    def __reduce__(self) -> tuple[Any, ...]:  # the text alone: its ids are computed again
        return _unpickled, (type(self), self.to_bytes(), *self._settings)

    def __deepcopy__(self, memo: dict[int, Any]) -> IncrementalEncoding:
        return copy(self)  # what is shared never changes

    def __copy__(self) -> IncrementalEncoding:
        tokenizer, add_special, parse_special = self._settings
        made = type(self)(tokenizer, add_special=add_special, parse_special=parse_special)
        made._segments = Segments(self._segments.chunks, self._segments.size, self._segments.count)
        return made

    # ---- how ------------------------------------------------------------------------------------

    def _replace(self, start: int, end: int, data: bytes) -> IdsChange:
        segments, reach = self._segments, self._places.reach
        first = segments.last_before(start - reach)
        old, last = segments.through(first, end + reach)
        text = b"".join([segment.data for segment in old])
        text = b"".join((text[: start - first.position], data, text[end - first.position :]))
        made = self._encoded(text, continues=first.position > 0, is_end=last.position == segments.size)
        kept, removed, inserted = _changed(_ids_of(old), _ids_of(made))
        kept += len(self._before) + first.ids
        if len(made) > 1 or last.position < segments.size:
            first, made = self._with_small_one(first, made)
        segments.replace(first, last, made)
        return IdsChange(kept, removed, inserted)

    def _encoded(self, text: bytes, *, continues: bool, is_end: bool) -> list[TextSegment]:
        """The segments of bytes that begin and end where the text is split, or at the end of the text (`is_end`).

        The last segment at the end of the text is short, since the next change is most often there.
        """
        places, size = self._places, len(text)
        limit = size - places.reach
        made: list[TextSegment] = []
        start = 0

        def split_at(place: int) -> None:
            nonlocal start
            data = text[start:place]
            made.append(
                TextSegment(data, self._encode(data, False, self._settings[2], continues or start > 0))
            )
            start = place

        while size - start > 2 * _LARGE and (place := places.next(text, start + _LARGE)) <= limit:
            split_at(place)
        if size - start > 2 * _LARGE:
            rest = start
            for place in places.special_tokens(text[rest:], 0, limit - rest):
                if rest + place - start >= _SMALL:
                    split_at(rest + place)
        if is_end and size - start > places.reach + _OPEN:
            place = places.last(text[start:], 0, limit - start)
            if place:
                split_at(start + place)
        if start < size:
            split_at(size)
        return made

    def _with_small_one(
        self, first: SegmentPlace, made: list[TextSegment]
    ) -> tuple[SegmentPlace, list[TextSegment]]:
        """Join the first of new segments to the one before it if both are small."""
        before = self._segments.before(first)
        if before is None or not made or len(before.data) >= _SMALL or len(made[0].data) >= _SMALL:
            return first, made
        number, at, position, ids = first
        joined = TextSegment(before.data + made[0].data, before.ids + made[0].ids)
        start = SegmentPlace(number, at - 1, position - len(before.data), ids - len(before.ids))
        return start, [joined, *made[1:]]


def _unpickled(
    kind: type[IncrementalEncoding],
    text: bytes,
    tokenizer: Tokenizer,
    add_special: bool,
    parse_special: bool,
) -> IncrementalEncoding:
    return kind(tokenizer, text, add_special=add_special, parse_special=parse_special)


def encode_stream(
    tokenizer: Tokenizer, pieces: Iterable[Text], *, add_special: bool, parse_special: bool
) -> Iterator[int]:
    """Yield the ids of a text that comes in pieces, each as soon as no later text can change it.

    `Tokenizer.encode_stream` describes the arguments.
    """
    places = SplitPoints.of(tokenizer, parse_special, continues=True)
    before, behind = tokenizer.vocabulary.added if add_special else ([], [])
    yield from before
    chunks = stable_chunks(_small_pieces(pieces), places)
    yield from chain.from_iterable(ids_of_chunks(tokenizer, chunks, parse_special))
    yield from behind


def _small_pieces(pieces: Iterable[Text]) -> Iterator[bytes]:
    for piece in pieces:
        data = to_bytes(piece)
        if len(data) <= _AT_ONCE:
            yield data
        else:
            yield from (data[at : at + _AT_ONCE] for at in range(0, len(data), _AT_ONCE))


def _ids_of(segments: list[TextSegment]) -> list[int]:
    if len(segments) == 1:
        return segments[0].ids
    return list(chain.from_iterable([segment.ids for segment in segments]))


def _changed(old: list[int], new: list[int]) -> IdsChange:
    """How the ids differ, from the first difference to the last."""
    kept = common_id_count(old, new)
    old, new = old[kept:], new[kept:]
    same = common_id_count(old[::-1], new[::-1])
    return IdsChange(kept, len(old) - same, new[: len(new) - same])


def common_id_count(one: list[int], other: list[int]) -> int:
    """How many items at the beginning are equal. Slices are compared, not items in a loop."""
    low, high = 0, min(len(one), len(other))
    if one[:high] == other[:high]:
        return high
    while high - low > 1:  # the first `low` are equal, and the first `high` are not
        middle = (low + high) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle
    return low


def _difference(old: list[SegmentChunk], new: list[SegmentChunk]) -> IdsChange:
    """How the ids of two states differ; what they share is not looked at."""
    kept = 0
    first = _shared(old, new)
    for chunk in old[:first]:
        kept += chunk.count
    old, new = old[first:], new[first:]
    last = _shared(old[::-1], new[::-1])
    old_segments, new_segments = (
        [segment for chunk in chunks[: len(chunks) - last] for segment in chunk.segments]
        for chunks in (old, new)
    )
    first = _shared(old_segments, new_segments)
    for segment in old_segments[:first]:
        kept += len(segment.ids)
    old_segments, new_segments = old_segments[first:], new_segments[first:]
    last = _shared(old_segments[::-1], new_segments[::-1])
    change = _changed(
        _ids_of(old_segments[: len(old_segments) - last]), _ids_of(new_segments[: len(new_segments) - last])
    )
    return change._replace(kept=kept + change.kept)


def _shared(one: list[Any], other: list[Any]) -> int:
    """How many objects at the beginning are the same."""
    return next((at for at, (a, b) in enumerate(zip(one, other)) if a is not b), min(len(one), len(other)))
