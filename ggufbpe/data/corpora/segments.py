"""Divides a corpus into segments that machines encode independently: files, or a range of the lines of one.

    inputs -> segments -> any machine -> batches: ids and their counts -> distributed.py

A batch is an encoded chunk. The counts of batches alone decide which documents belong to which shard, so ids go from
the machine that made them to a file of their segment, and from there to the machine that writes their shard.

A compressed file, a table and a text are one segment each, whatever their size.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .chunk_encoder import Bad, ChunkEncoder, Encoded
from .chunks import Chunk, ChunkReader, CorpusPlace
from .corpus_files import absolute_path
from .records import can_be_read_anywhere, has_json_lines
from .storage import Folder, Input

_MOST_FILES = 4096  # in a segment
_HEAD = struct.Struct("<QQ")  # of a batch in a file: bytes of what is known, and of ids


class Segment(NamedTuple):
    """Inputs one after the other from `start` on; with `end`, the lines of one that begin before that byte."""

    number: int
    start: CorpusPlace  # where lines are looked for, or exactly where a record begins
    inputs: list[Input]
    before: int  # bytes of the inputs before these
    is_exact: bool = True
    end: int | None = None


class EncodedBatch(NamedTuple):
    """An encoded chunk, as the plan of shards sees it."""

    segment: int  # its number
    file: str  # that has its ids, and where in it; "" while there is none
    at: int
    chunk: Chunk  # without its data; of a segment that is not exact, records are counted from its beginning
    documents: int  # that end in it
    tokens: int  # of these
    open_tokens: int  # behind them, of one that does not end
    records: int
    bad: list[Bad]


# ---- what segments there are ----------------------------------------------------------------------------


def divide(
    inputs: list[Input], by_line: bool, start: CorpusPlace, size_at: Callable[[int], int]
) -> Iterator[Segment]:
    """Segments in order, from a place on, each of about `size_at(bytes that are left)`."""
    number = 0
    before = sum(given.size for given in inputs[: start.input])
    total = sum(given.size for given in inputs)
    group = _Group(start, [], before)
    for index in range(start.input, len(inputs)):
        place = start if index == start.input else CorpusPlace(index)
        given = inputs[index]
        size = size_at(total - before - place.offset)
        is_cut = _has_plain_lines(given.path, by_line) and given.size - place.offset > size
        if not is_cut and not group.inputs:
            group = _Group(place, [], before)
        if group.inputs and (is_cut or group.is_full(size)):
            yield Segment(number, *group)
            number, group = number + 1, _Group(place, [], before)
        begin = place.offset
        while is_cut and begin < given.size:
            end = _end_of_range(begin, given.size, size_at(total - before - begin))
            yield Segment(number, place._replace(offset=begin), [given], before, begin == place.offset, end)
            number, begin = number + 1, end
        if not is_cut:
            group.inputs.append(given)
        before += given.size
    if group.inputs:
        yield Segment(number, *group)


def _end_of_range(begin: int, end: int, size: int) -> int:
    """Where a segment of a file ends: what is left of the file is not much less than a segment."""
    return end if end - begin <= size + size // 4 else begin + size


class _Group(NamedTuple):
    """Whole inputs that will be a segment."""

    start: CorpusPlace
    inputs: list[Input]
    before: int

    def is_full(self, size: int) -> bool:
        return len(self.inputs) >= _MOST_FILES or sum(given.size for given in self.inputs) >= size


def _has_plain_lines(name: str, by_line: bool) -> bool:
    return can_be_read_anywhere(name) and (by_line or has_json_lines(name))


def absolute_inputs(inputs: Iterable[Input]) -> list[Input]:
    """Inputs by paths that are the same in every folder."""
    return [given._replace(path=absolute_path(given.path)) for given in inputs]


# ---- from a segment to batches ---------------------------------------------------------------------------


def encode_segment(
    segment: Segment, reader: ChunkReader, encoder: ChunkEncoder
) -> Iterator[tuple[EncodedBatch, Encoded]]:
    """The batches of a segment, whose inputs `reader` has."""
    start = segment.start._replace(input=0)
    if not segment.is_exact:
        start = start._replace(record=0)
    for chunk in reader.chunks(start, segment.end):
        records = chunk.records or int(chunk.after is not None)  # others are never looked for by their number
        encoded = encoder.encode(chunk)
        place = chunk.place._replace(input=chunk.place.input + segment.start.input)
        after = chunk.after and chunk.after._replace(input=chunk.after.input + segment.start.input)
        known = chunk._replace(data=[], place=place, after=after, read=segment.before + chunk.read)
        if chunk.kind == "files":
            encoded = encoded._replace(ends=encoded.ends + segment.start.input)
        tokens = int(encoded.lengths.sum())
        every = sum(map(len, encoded.ids))
        counts = (len(encoded.lengths), tokens, every - tokens, records)
        yield EncodedBatch(segment.number, "", 0, known, *counts, encoded.bad), encoded


# ---- files of segments ----------------------------------------------------------------------------------


def write_batches(
    rows: Iterable[tuple[EncodedBatch, Encoded]], folder: Folder, name: str
) -> list[EncodedBatch]:
    """Write batches to a file, each with what is known of it beside its ids; the same, with where they are."""
    unfinished, at = folder.create(name), 0
    written: list[EncodedBatch] = []
    try:
        for batch, encoded in rows:
            written.append(batch._replace(file=name, at=at))
            known = pickle.dumps(encoded._replace(ids=[]), 5)
            head = _HEAD.pack(len(known), sum(ids.nbytes for ids in encoded.ids))
            parts: list[Any] = [head, known, *(ids for ids in encoded.ids if len(ids))]
            for part in parts:
                rest = memoryview(part).cast("B")
                at += len(rest)
                while rest:
                    rest = rest[unfinished.file.write(rest) :]
    except BaseException:
        unfinished.discard()
        raise
    unfinished.finish(is_kept=False)  # whatever stops the machines, such files are made again
    return written


def encoded_at(file: IO[bytes], at: int, dtype: npt.DTypeLike, with_ids: bool = True) -> Encoded:
    """The batch at a place of such a file."""

    file.seek(at)
    known, size = _HEAD.unpack(_read(file, _HEAD.size))
    encoded: Encoded = pickle.loads(_read(file, known))
    if not with_ids:
        return encoded
    return encoded._replace(ids=[np.frombuffer(_read(file, size), dtype)])


def _read(file: IO[bytes], size: int) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise OSError(f"{file.name}: a file of a segment is not whole")
    return data


def slice_documents(encoded: Encoded, first: int, stop: int | None) -> Encoded:
    """The documents from `first` to before `stop`; without `stop` all that is behind them, too."""
    done = int(encoded.records[first - 1]) if first else -1  # records that are of an earlier part
    last = None if stop is None else int(encoded.records[stop - 1])
    begin = int(encoded.lengths[:first].sum())
    ids = encoded.ids
    if first or stop is not None:
        end = None if stop is None else begin + int(encoded.lengths[first:stop].sum())
        ids = [encoded.ids[0][begin:end]]
    return Encoded(
        ids,
        encoded.lengths[first:stop],
        encoded.sizes[first:stop],
        encoded.records[first:stop],
        encoded.ends[first:stop],
        [bad for bad in encoded.bad if bad.record >= done and (last is None or bad.record < last)],
        encoded.open_size if stop is None else 0,
        None if encoded.notes is None else encoded.notes[first:stop],
        None if encoded.padding is None else encoded.padding[first:stop],
    )
