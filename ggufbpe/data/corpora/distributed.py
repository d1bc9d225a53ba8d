"""Distributed encoding of a corpus to shards; output is byte-identical to a single-machine run.

    segments -> encoded anywhere -> counts of their batches -> here: which documents each shard has
             -> written anywhere -> what was written, in order -> manifest

Shards are written while later segments are encoded, and segments that no other shard needs are removed. Shards are
written in waves, so that the data between encoding and writing does not grow with the corpus.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from itertools import groupby, islice
from typing import Any, NamedTuple, Protocol

import numpy as np

from .byte_formats import Layout
from .chunk_encoder import Encoded, place_after
from .chunks import CorpusPlace
from .manifest import RunState, Shard, Tail
from .segments import EncodedBatch, Segment, absolute_inputs, divide, encoded_at, slice_documents
from .shard_writer import ShardsWriter, limits
from .storage import SEGMENTS, Folder, Input, folder_at
from .whole_rows import padding_before

_LARGEST, _SMALLEST = 128 << 20, 1 << 20  # bytes of a segment
_FOR_EACH = 4  # segments for each processor, of a small corpus; the last ones have a quarter of their size
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
    place: CorpusPlace  # behind its last document


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

    def encode(self, segments: Sequence[Segment]) -> Generator[list[EncodedBatch], None, None]:
        """The batches of each segment, in order, as soon as they are there; their ids are in files then."""

    def write(self, shards: Sequence[PlannedShard]) -> list[Written]:
        """What became of shards, in order. On another thread than `encode`, and at the same time."""


Tell = Callable[[EncodedBatch], object]


def segment_size(total: int, processors: int) -> int:
    """The number of bytes of a segment, such that all processors of a cluster have some of a corpus."""
    return max(min(-(-total // (_FOR_EACH * processors)), _LARGEST), _SMALLEST)


def segment_sizes(total: int, processors: int) -> Callable[[int], int]:
    """Return a function from the bytes left of a corpus to the size of the next segment, smaller toward the end.

    With segments of one size, most processors would wait for the last ones.
    """
    most = segment_size(total, processors)
    least = max(most // 4, _SMALLEST)
    return lambda left: max(min(left // (2 * processors), most), least)


def encode_on(
    machines: Machines,
    work: EncodingRun,
    folder: Folder,
    state: RunState,
    inputs: list[Input],
    by_line: bool,
    tell: Tell,
    begin: Callable[[], None],
) -> tuple[RunState, Tail]:
    """Go on from `state` to the end. `tell` gets each batch, in order, before what it has is written.

    `begin` is called before each job that writes shards.
    """
    segments = folder_at(work.segments)
    segments.prepare()
    try:
        sizes = segment_sizes(sum(given.size for given in inputs), machines.processors)
        every = divide(absolute_inputs(inputs), by_line, state.place, sizes)
        plan = ShardPlan(work, state, segments)
        return _encode(machines, plan, _Writing(machines, plan, folder, begin), folder, every, tell)
    finally:
        segments.release()
        folder.clean()


def _encode(
    machines: Machines,
    plan: ShardPlan,
    writing: _Writing,
    folder: Folder,
    segments: Iterator[Segment],
    tell: Tell,
) -> tuple[RunState, Tail]:
    records = 0  # of a file whose lines are in several segments, before the next of them
    try:
        wave, following = None, _wave(segments, machines)
        while wave is None or following:
            wave, following = following, _wave(segments, machines)
            with closing(machines.encode(wave)) as encoded:
                for segment, batches in zip(wave, encoded, strict=True):
                    if any(batch.segment != segment.number for batch in batches):
                        raise AssertionError(
                            f"what was encoded is not segment {segment.number}, whose turn it is"
                        )
                    if segment.is_exact:
                        records = segment.start.record
                    else:
                        batches = [_moved(batch, records) for batch in batches]
                    records += sum(batch.records for batch in batches)
                    for batch in batches:
                        tell(batch)
                        writing.add(plan.add(batch))
                    if following or segment is not wave[-1]:
                        writing.begin_if_idle()
            if following:
                writing.wait()
        writing.add([plan.last()])
        tail = writing.finish()
        return plan.state, tail
    except BaseException:
        folder.clean()  # without their segments, the shards that are being written end at once
        raise
    finally:
        writing.close()


def _wave(segments: Iterator[Segment], machines: Machines) -> list[Segment]:
    return list(islice(segments, _WAVE * machines.processors))


class _Writing:
    """Shards are written while others are encoded: a job for those that were planned during the last one."""

    def __init__(
        self, machines: Machines, plan: ShardPlan, folder: Folder, begin: Callable[[], None]
    ) -> None:
        self._machines, self._plan, self._folder, self._begin = machines, plan, folder, begin
        self._thread = ThreadPoolExecutor(1, "ggufbpe-shard-jobs")
        self._waiting: list[PlannedShard] = []
        self._job: tuple[list[PlannedShard], Future[list[Written]]] | None = None

    def add(self, shards: Iterable[PlannedShard]) -> None:
        """Shards that are to be written next."""
        self._waiting += shards

    def begin_if_idle(self) -> None:
        """Begin the next job if none is running. Only between segments, since files of segments are removed."""
        if self._job is None or self._job[1].done():
            self.wait()

    def wait(self) -> Tail | None:
        """Wait for the job, and begin the next one; what is left behind the last shard written."""
        tail = None
        if self._job is not None:
            shards, job = self._job
            written, self._job = job.result(), None
            self._plan.is_written(shards, written)
            self._plan.state.write(self._folder)
            self._plan.remove(_files(shards) - _files(self._waiting))
            tail = written[-1].tail
        if self._waiting:
            self._begin()
            self._job = self._waiting, self._thread.submit(self._machines.write, self._waiting)
            self._waiting = []
        return tail

    def finish(self) -> Tail:
        """Write all that were added."""
        tail = self.wait()
        while self._job is not None:
            tail = self.wait()
        assert tail is not None
        return tail

    def close(self) -> None:
        """Wait for what is being written."""
        self._thread.shutdown()


def _files(shards: Iterable[PlannedShard]) -> set[str]:
    return {part.batch.file for shard in shards for part in shard.parts}


def _moved(batch: EncodedBatch, records: int) -> EncodedBatch:
    """A batch whose records are counted from the beginning of their file, in which `records` are before its segment."""
    place, after = (
        at and at._replace(record=at.record + records) for at in (batch.chunk.place, batch.chunk.after)
    )
    assert place is not None
    return batch._replace(chunk=batch.chunk._replace(place=place, after=after))


# ---- which documents each shard has ---------------------------------------------------------------------


class ShardPlan:
    """Finds where shards end, as `ShardsWriter` does, by the counts of batches: only one with an end is looked into."""

    def __init__(self, work: EncodingRun, state: RunState, segments: Folder) -> None:
        self.state = state
        self._segments = segments
        self._dtype = np.dtype(work.layout.held)
        self._layout = work.layout
        self._window = work.layout.window or 1
        self._wanted, self._most = limits(work.shard_size, work.layout)
        self._begin(PlannedShard(len(state.shards), state.place, state.carry, []))

    def _begin(self, shard: PlannedShard) -> None:
        self._shard = shard
        self._tokens, self._documents = len(shard.carry), 0

    def add(self, batch: EncodedBatch) -> Iterator[PlannedShard]:
        """The shards that end in the next batch."""
        first, tokens, encoded = 0, batch.tokens, None
        if self._layout.padding is not None:
            encoded = self._encoded(batch, with_ids=False)
            padding = padding_before(encoded.lengths, self._tokens % self._window, self._window)
            encoded = encoded._replace(lengths=encoded.lengths + padding)
            tokens = int(encoded.lengths.sum())
        while first < batch.documents and (
            self._tokens + tokens >= self._wanted or self._documents + batch.documents - first >= self._most
        ):
            encoded = encoded or self._encoded(batch, with_ids=False)
            cumulative = np.cumsum(encoded.lengths[first:])
            end = int(np.searchsorted(cumulative, self._wanted - self._tokens))
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
        for plan, (shard, tail, place) in zip(planned, written, strict=True):
            if (shard is None and plan.next_place is not None) or list(plan.next_carry) != (
                tail.ids if plan.next_place is not None else []
            ):
                raise AssertionError(f"part-{plan.number:05} is not what it was planned to be")
            if shard is not None:
                shards = [*self.state.shards, shard]
                self.state = self.state._replace(shards=shards, place=place, carry=tail.ids)

    def remove(self, files: set[str]) -> None:
        """Remove those of `files` that the next shard does not need."""
        for name in files - _files([self._shard]):
            self._segments.remove(name)

    def _last_ids(self, count: int) -> list[int]:
        last: list[int] = []
        for part in reversed(self._shard.parts):
            if len(last) >= count:
                break
            [ids] = slice_documents(self._encoded(part.batch, with_ids=True), part.first, part.stop).ids
            last = ids[max(len(ids) - count + len(last), 0) :].tolist() + last
        missing = count - len(last)
        return list(self._shard.carry[len(self._shard.carry) - missing :]) + last

    def _encoded(self, batch: EncodedBatch, with_ids: bool) -> Encoded:
        with self._segments.open(batch.file) as file:
            return encoded_at(file, batch.at, self._dtype, with_ids)


# ---- on the machines ------------------------------------------------------------------------------------


def write_shard(work: EncodingRun, shard: PlannedShard, attempt: str) -> Written:
    """Write a shard out of the files of its batches."""
    segments = folder_at(work.segments)
    state = RunState(work.header, [], shard.place, shard.carry)
    writer = ShardsWriter(
        folder_at(work.folder, attempt), state, work.shard_size, work.layout, number=shard.number
    )
    try:
        for name, parts in groupby(shard.parts, key=lambda part: part.batch.file):
            with segments.open(name) as file:
                for part in parts:
                    encoded = encoded_at(file, part.batch.at, work.layout.held)
                    writer.add(slice_documents(encoded, part.first, part.stop), part.batch.chunk)
        state, tail = writer.finish(is_last=shard.next_place is None)
    finally:
        writer.close()
    return Written(next(iter(state.shards), None), tail, state.place)
