"""Distributes documents to shards, and records each finished shard.

A shard ends with the document that brings its size to the wanted number of bytes. That depends only on the documents
before it, so a resumed run has the shards of an uninterrupted one. With a window, ids are written in rows of one
length; ids left at the end of a shard that do not fill a row begin the next shard.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from .byte_formats import Ids, Layout
from .chunk_encoder import Encoded, place_after
from .chunks import Chunk, CorpusPlace
from .document_notes import DocumentFacts, Tally
from .manifest import UNFINISHED, RunState, Shard, Tail
from .marked_ids import ENDS, IS_WRITTEN
from .shard_formats import FORMS, ShardWriter
from .storage import Folder, LocalFolder
from .whole_rows import padding_ids, with_padding

MOST_ROWS = 1 << 24  # of a shard; their lengths are kept in memory


def limits(shard_size: int, layout: Layout) -> tuple[int, int]:
    """The tokens that end a shard, and the documents: the first document by which it has either ends it."""
    window = layout.window
    tokens = -(-shard_size // np.dtype(layout.dtype).itemsize)
    if window is None:
        return tokens, MOST_ROWS
    return -(-tokens // window) * window, 1 << 62


class ShardsWriter:
    """Writes documents to shards, one shard after the other."""

    def __init__(
        self, folder: Folder, state: RunState, shard_size: int, layout: Layout, number: int | None = None
    ) -> None:
        """Goes on where `state` is. `shard_size` is in bytes of ids.

        `number` is that of the next shard, where `state` does not have those before; nor is it written down then.
        """
        self._form = FORMS[state.header["format"]]
        self._folder, self._layout = folder, layout
        self.state = state._replace(shards=[*state.shards])
        self._room = 0  # bytes that may be added to what was written down of the state
        self._dtype = np.dtype(layout.held)
        self._window = layout.window or 1
        self._wanted, self._most = limits(shard_size, layout)
        self._place = state.place  # behind the last document
        self._is_part = number is not None
        self._number = len(state.shards) if number is None else number
        # What is being put in its place while the next shard is written: the disk takes its time.
        self._finishing: Future[None] | None = None
        self._finisher = ThreadPoolExecutor(1, "ggufbpe-shards")
        self._finished_documents = sum(shard.documents for shard in state.shards)
        self._finished_tokens = sum(shard.tokens for shard in state.shards)
        self._opened = self._opened_bytes = 0  # tokens and bytes of an unfinished document
        self._bad = self._tail_bad = 0  # records of this shard, and those after its last document so far
        self._writer: ShardWriter | None = None
        self._begin([np.array(state.carry, self._dtype)])

    def _begin(self, carry: list[npt.NDArray[Any]]) -> None:
        self._start = self._place
        self._carry = [ids for ids in carry if len(ids)]
        self._carried = self._taken = sum(map(len, self._carry))  # tokens assigned to this shard
        self._written = 0  # of them
        self._marked = 0  # of these, by the assistant
        self._padding = 0  # of these, between documents
        self._rows = self._shard_documents = self._bytes = 0
        self._tally = Tally()

    @property
    def documents(self) -> int:
        """The number of documents so far, including earlier runs."""
        return self._finished_documents + self._shard_documents

    @property
    def tokens(self) -> int:
        """The number of ids written so far."""
        return self._finished_tokens + self._written

    # ---- documents ----------------------------------------------------------------------------------

    def add(self, encoded: Encoded, chunk: Chunk) -> None:
        """Add the documents of a chunk."""
        if self._layout.padding is not None:
            encoded = with_padding(encoded, self._taken - self._written, self._layout)
        cumulative = np.cumsum(encoded.lengths)
        start, ids = 0, Ids(encoded.ids)
        bad = [each.record for each in encoded.bad]
        while start < len(cumulative):
            before = int(cumulative[start - 1]) if start else 0
            end = int(np.searchsorted(cumulative, self._wanted - self._taken + before))
            end = max(start, min(end, start + self._most - self._shard_documents - 1))
            stop = min(end + 1, len(cumulative))
            self._take(ids, encoded, start, stop)
            record = int(encoded.records[stop - 1])
            self._bad += self._tail_bad + sum(1 for place in bad if place < record)
            self._tail_bad, bad = 0, [place for place in bad if place >= record]
            self._place = place_after(chunk, encoded, stop - 1)
            start = stop
            if stop > end:
                self._end_shard()
        self._tail_bad += len(bad)
        self._open(ids.rest(), encoded.open_size)

    def _take(self, ids: Ids, encoded: Encoded, start: int, stop: int) -> None:
        """Take complete documents, of which at most the last ends the shard."""
        lengths = encoded.lengths[start:stop]
        self._taken += int(lengths.sum())
        lengths = lengths.copy()
        lengths[0] += self._opened
        self._opened = 0
        own = lengths if encoded.padding is None else lengths - encoded.padding[start:stop]
        self._padding += int((lengths - own).sum())
        self._tally.add(own, None if encoded.notes is None else encoded.notes[start:stop])
        self._write(ids.take(int(encoded.lengths[start:stop].sum())), lengths)
        self._shard_documents += stop - start
        self._bytes += int(encoded.sizes[start:stop].sum()) + self._opened_bytes
        self._opened_bytes = 0
        if self._layout.window is None:
            self._rows += stop - start

    def _open(self, ids: list[npt.NDArray[Any]], size: int) -> None:
        count = sum(map(len, ids))
        self._opened += count
        self._opened_bytes += size
        self._taken += count
        self._write(ids, np.zeros(0, np.int64))

    def _write(self, ids: list[npt.NDArray[Any]], lengths: npt.NDArray[Any]) -> None:
        """Write ids, in which documents of these lengths end; with a window, those that fill rows, and keep others."""
        if self._layout.window is None:
            ids[:] = [part for part in ids if len(part)]
            self._count(ids)
            if ids or len(lengths):
                self._the_writer().write(ids, lengths)
            self._written = self._taken
            return
        self._carry += [part for part in ids if len(part)]
        rows = (self._taken - self._written) // self._window
        if not rows:
            return
        every = np.concatenate(self._carry)
        size = rows * self._window
        self._count([every[:size]])
        self._the_writer().write([every[:size]], np.full(rows, self._window))
        self._carry = [every[size:]]
        self._written += size
        self._rows += rows

    def _count(self, ids: list[npt.NDArray[Any]]) -> None:
        if self._layout.mask is not None:
            self._marked += sum(int((part >= IS_WRITTEN).sum()) for part in ids)

    def _the_writer(self) -> ShardWriter:
        if self._writer is None:
            self._writer = self._form.open(self._folder, f"part-{self._number:05}", self._layout)
        return self._writer

    # ---- shards -------------------------------------------------------------------------------------

    def _end_shard(self) -> None:
        self._wait()  # if that fails, `close` still discards this shard
        writer, self._writer = self._writer, None
        if writer is None:  # it has no row
            return
        shard = Shard(
            name=f"part-{self._number:05}",
            documents=self._shard_documents,
            rows=self._rows,
            tokens=self._written,
            text_bytes=self._bytes,
            bad_records=self._bad,
            start=self._start,
            carried=self._carried,
            files=[],
            assistant_tokens=None if self._layout.mask is None else self._marked,
            padding_tokens=None if self._layout.padding is None else self._padding,
            **self._tally.facts()._asdict(),
        )
        self._finished_documents += shard.documents
        self._finished_tokens += shard.tokens
        self._bad = 0
        self._number += 1
        self._begin(self._carry)
        self._finishing = self._finisher.submit(self._put, writer, shard, self._place, self._carried_ids())

    def _carried_ids(self) -> list[int]:
        return [int(token) for part in self._carry for token in part]

    def _put(self, writer: ShardWriter, shard: Shard, place: CorpusPlace, carry: list[int]) -> None:
        try:
            shard = shard._replace(files=writer.finish())
        except BaseException:
            writer.discard()
            raise
        self.state.shards.append(shard)
        self.state = self.state._replace(place=place, carry=carry)
        if not self._is_part:
            self._write_down()

    def _write_down(self) -> None:
        """Add the last shard to the state in the folder; all of it is written again when it has doubled.

        Behind a URL, all of it is written each time: object stores cannot append.
        """
        line = self.state.last_shard()
        if isinstance(self._folder, LocalFolder) and len(line) <= self._room:
            self._folder.append(UNFINISHED, line)
            self._room -= len(line)
        else:
            self._room = self.state.write(self._folder)

    def _wait(self) -> None:
        if self._finishing is not None:
            self._finishing.result()
            self._finishing = None

    def finish(self, is_last: bool = True) -> tuple[RunState, Tail]:
        """Finish the last shard; the final state, and what is left over.

        Of the last shard of all, rows that keep documents whole are filled up with padding.
        """
        if is_last and self._layout.padding is not None and self._taken > self._written:
            self._fill_row()
        if self._rows:
            self._end_shard()
        self._wait()
        bad = self._bad + self._tail_bad
        facts = self._tally.facts() if self._shard_documents else DocumentFacts()
        return self.state, Tail(self._shard_documents, self._bytes, bad, self._carried_ids(), facts)

    def _fill_row(self) -> None:
        missing = self._window - (self._taken - self._written)
        if not missing:
            return
        ids = padding_ids(missing, self._layout)
        if self._layout.is_marked:
            ids[-1] |= ENDS
        self._padding += missing
        self._open([ids], 0)

    def close(self) -> None:
        """Wait for the shard that is being finished, and discard an incomplete one."""
        self._finisher.shutdown()
        if self._writer is not None:
            self._writer.discard()
            self._writer = None
