"""Encodes corpora for a cluster of Ray without one."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import nullcontext

import pytest

from ggufbpe import Tokenizer
from ggufbpe.data.corpora import distributed
from ggufbpe.data.corpora.chunk_encoder import ChunkEncoder
from ggufbpe.data.corpora.chunks import ChunkReader
from ggufbpe.data.corpora.distributed import EncodingRun, PlannedShard, Written, write_shard
from ggufbpe.data.corpora.documents import Options
from ggufbpe.data.corpora.segments import EncodedBatch, Segment, encode_segment, write_batches
from ggufbpe.data.corpora.storage import folder_at


class ThisMachine:
    """Does what the machines of a cluster do, one after the other and in another order."""

    processors = 1

    def __init__(
        self, work: EncodingRun, tokenizer: Tokenizer, options: Options, workers: int | None
    ) -> None:
        self._work, self._tokenizer, self._options = work, tokenizer, options

    def encode(self, segments: Sequence[Segment]) -> Generator[list[EncodedBatch], None, None]:
        encoder = ChunkEncoder(self._tokenizer, self._options, self._work.layout)
        found = []
        for segment in reversed(segments):
            reader = ChunkReader(self._tokenizer, segment.inputs, self._options)
            batches = encode_segment(segment, reader, encoder)
            found.append(write_batches(batches, folder_at(self._work.segments), f"{segment.number}"))
        yield from reversed(found)

    def write(self, shards: Iterable[PlannedShard]) -> list[Written]:
        return [write_shard(self._work, shard, ".attempt") for shard in shards]


@pytest.fixture
def on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """With `ray`, corpora are encoded by `ThisMachine`, in small segments."""
    on_ray = pytest.importorskip("ggufbpe.data.corpora.ray_machines")
    monkeypatch.setattr(on_ray, "RayMachines", ThisMachine)
    monkeypatch.setattr(on_ray, "connected", lambda address, workers: nullcontext())
    monkeypatch.setattr(distributed, "_SMALLEST", 3_000)
    monkeypatch.setattr(distributed, "_LARGEST", 3_000)
    monkeypatch.setattr(distributed, "_WAVE", 4)
