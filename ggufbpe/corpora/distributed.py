"""A corpus to shards by whoever runs functions on other machines; the bytes are those of one machine.

    segments -> encoded anywhere -> counts of their batches -> [this file]: which documents each shard has
             -> written anywhere -> what was written, in order -> manifest

Segments come in waves, so that what lies between encoding and writing does not grow with the corpus. A wave is encoded,
then all shards are written that end in it; the segments of these are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import Any, NamedTuple, Protocol

from ..extras import imported
from .byte_forms import Layout
from .chunks import CorpusPlace
from .encoding import Encoded, place_after
from .manifest import Shard, State, Tail
from .places import SEGMENTS, Folder, Input, folder_at
from .segments import EncodedBatch, Segment, absolute_inputs, encoded_at, part_of, segments_of
from .shards import ShardsWriter, limits

_LARGEST, _SMALLEST = 128 << 20, 1 << 20  # bytes of a segment
_FOR_EACH = 4  # segments for each processor, of a small corpus
_WAVE = 16  # for each processor, of a large one


class ShardPart(NamedTuple):
    """Documents of a batch: from `first` to before `stop`, or to its end."""

    batch: EncodedBatch
    first: int
    stop: int | None


class PlannedShard(NamedTuple):
    """What a shard has: parts of batches, after `carry` of the shard before. And where the next one begins, if any."""

    number: int
    place: CorpusPlace
    carry: Sequence[int]
    parts: list[ShardPart]
    next_place: CorpusPlace | None = None
    next_carry: Sequence[int] = ()


class Written(NamedTuple):
    """What became of a planned shard. The last may have no row, and is None then."""

    shard: Shard | None
    tail: Tail


class EncodingRun(NamedTuple):
    """What all machines know of a run."""

    folder: str  # an absolute path, or a URL
    header: dict[str, Any]
    layout: Layout
    shard_size: int

    @property
    def segments(self) -> str:
        """The folder of segments."""
        return f"{self.folder}/{SEGMENTS}"


class Machines(Protocol):
    """Who does the work."""

    processors: int

    def encode(self, segments: Sequence[Segment]) -> Iterable[EncodedBatch]:
        """The batches of segments in any order; their ids are in files then."""

    def write(self, shards: Sequence[PlannedShard]) -> Iterable[Written]:
        """What became of shards, in order."""


Tell = Callable[[EncodedBatch], object]


def segment_size(total: int, processors: int) -> int:
    """Bytes of a segment, so that all processors of a cluster have some of a corpus."""
    return max(min(total // (_FOR_EACH * processors), _LARGEST), _SMALLEST)


def encode_on(
    machines: Machines,
    work: EncodingRun,
    folder: Folder,
    state: State,
    inputs: list[Input],
    by_line: bool,
    tell: Tell,
) -> tuple[State, Tail]:
    """Go on from `state` to the end. `tell` gets each batch, in order, before what it has is written."""
    segments = folder_at(work.segments)
    segments.prepare()
    try:
        size = segment_size(sum(given.size for given in inputs), machines.processors)
        every = segments_of(absolute_inputs(inputs), by_line, state.place, size)
        return _encode(machines, ShardPlan(work, state, segments), folder, every, tell)
    finally:
        segments.release()
        folder.clean()


def _encode(
    machines: Machines, plan: ShardPlan, folder: Folder, segments: Iterator[Segment], tell: Tell
) -> tuple[State, Tail]:
    records, files = _Records(), set[str]()
    wave = list(islice(segments, _WAVE * machines.processors))
    while True:
        batches = records.counted(wave, machines.encode(wave))
        planned: list[PlannedShard] = []
        for batch in batches:
            tell(batch)
            planned += plan.add(batch)
        wave = list(islice(segments, _WAVE * machines.processors))
        if not wave:
            planned.append(plan.last())
        written = list(machines.write(planned))
        plan.is_written(planned, written)
        plan.state.write(folder)
        if not wave:
            return plan.state, written[-1].tail
        files |= {batch.file for batch in batches}
        plan.remove(files)


class _Records:
    """Counts the lines of files that are in several segments."""

    def __init__(self) -> None:
        self._before = 0

    def counted(self, segments: Sequence[Segment], batches: Iterable[EncodedBatch]) -> list[EncodedBatch]:
        """The batches in order, with records counted from the beginning of their input."""
        of_segment: dict[int, list[EncodedBatch]] = {segment.number: [] for segment in segments}
        for batch in batches:
            of_segment[batch.segment].append(batch)
        found = []
        for segment in segments:
            these = sorted(of_segment[segment.number], key=lambda batch: batch.number)
            if segment.is_exact:
                self._before = segment.start.record
            else:
                these = [_moved(batch, self._before) for batch in these]
            self._before += sum(batch.records for batch in these)
            found += these
        return found


def _moved(batch: EncodedBatch, records: int) -> EncodedBatch:
    place, after = (
        at and at._replace(record=at.record + records) for at in (batch.chunk.place, batch.chunk.after)
    )
    assert place is not None
    return batch._replace(chunk=batch.chunk._replace(place=place, after=after))


# ---- which documents each shard has ---------------------------------------------------------------------


class ShardPlan:
    """Finds where shards end, as `ShardsWriter` does, by the counts of batches: only one with an end is looked into."""

    def __init__(self, work: EncodingRun, state: State, segments: Folder) -> None:
        self.state = state
        self._numpy: Any = imported("numpy", "corpora", "shards")
        self._segments = segments
        self._dtype = self._numpy.dtype(work.layout.dtype)
        self._window = work.layout.window or 1
        self._wanted, self._most = limits(work.shard_size, self._dtype.itemsize, work.layout.window)
        self._begin(PlannedShard(len(state.shards), state.place, state.carry, []))

    def _begin(self, shard: PlannedShard) -> None:
        self._shard = shard
        self._tokens, self._documents = len(shard.carry), 0

    def add(self, batch: EncodedBatch) -> Iterator[PlannedShard]:
        """The shards that end in the next batch."""
        first, tokens, encoded = 0, batch.tokens, None
        while first < batch.documents and (
            self._tokens + tokens >= self._wanted or self._documents + batch.documents - first >= self._most
        ):
            encoded = encoded or self._encoded(batch, with_ids=False)
            cumulative = self._numpy.cumsum(encoded.lengths[first:])
            end = int(self._numpy.searchsorted(cumulative, self._wanted - self._tokens))
            end = min(end, self._most - self._documents - 1)
            self._tokens += int(cumulative[end])
            tokens -= int(cumulative[end])
            self._shard.parts.append(ShardPart(batch, first, first + end + 1))
            first += end + 1
            carry = self._last_ids(self._tokens % self._window)
            place = place_after(batch.chunk, encoded, first - 1)
            yield self._shard._replace(next_place=place, next_carry=carry)
            self._begin(PlannedShard(self._shard.number + 1, place, carry, []))
        self._shard.parts.append(ShardPart(batch, first, None))
        self._tokens += tokens + batch.open_tokens
        self._documents += batch.documents - first

    def last(self) -> PlannedShard:
        """What is left."""
        return self._shard

    def is_written(self, planned: Sequence[PlannedShard], written: Sequence[Written]) -> None:
        """Go on behind these."""
        for plan, (shard, tail) in zip(planned, written, strict=True):
            if (shard is None and plan.next_place is not None) or list(plan.next_carry) != (
                tail.ids if plan.next_place is not None else []
            ):
                raise AssertionError(f"part-{plan.number:05} is not what it was planned to be")
            if shard is not None:
                self.state = self.state._replace(shards=[*self.state.shards, shard])
            if plan.next_place is not None:
                self.state = self.state._replace(place=plan.next_place, carry=plan.next_carry)

    def remove(self, files: set[str]) -> None:
        """Remove those of `files` that are not needed any more."""
        for name in files - {part.batch.file for part in self._shard.parts}:
            self._segments.remove(name)
            files.remove(name)

    def _last_ids(self, count: int) -> list[int]:
        found: list[int] = []
        for part in reversed(self._shard.parts):
            if len(found) >= count:
                break
            [ids] = part_of(self._encoded(part.batch, with_ids=True), part.first, part.stop).ids
            found = ids[max(len(ids) - count + len(found), 0) :].tolist() + found
        missing = count - len(found)
        return list(self._shard.carry[len(self._shard.carry) - missing :]) + found

    def _encoded(self, batch: EncodedBatch, with_ids: bool) -> Encoded:
        with self._segments.open(batch.file) as file:
            return encoded_at(file, batch.at, self._dtype, with_ids)


# ---- on the machines ------------------------------------------------------------------------------------


def write_shard(work: EncodingRun, shard: PlannedShard, attempt: str) -> Written:
    """Write a shard out of the files of its batches."""
    segments = folder_at(work.segments)
    state = State(work.header, [], shard.place, shard.carry)
    writer = ShardsWriter(
        folder_at(work.folder, attempt), state, work.shard_size, work.layout, number=shard.number
    )
    try:
        for name, parts in groupby(shard.parts, key=lambda part: part.batch.file):
            with segments.open(name) as file:
                for part in parts:
                    encoded = encoded_at(file, part.batch.at, work.layout.dtype)
                    writer.add(part_of(encoded, part.first, part.stop), part.batch.chunk)
        state, tail = writer.finish()
    finally:
        writer.close()
    return Written(next(iter(state.shards), None), tail)
