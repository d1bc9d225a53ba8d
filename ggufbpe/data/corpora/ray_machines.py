"""The machines of a Ray cluster: tasks encode segments of a corpus and write shards; their results come in order.

A tokenizer goes to the object store once, by content, which gives it to each node once; each process that encodes
opens it once. A task that is lost with its node is run again by Ray, and writes files with equal bytes.

Importing this module imports Ray.
"""

from __future__ import annotations

import logging
import os
import pickle
import uuid
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from typing import Any

from ..._util.extras import imported
from ..._util.processors import processors
from ...tokenizer import Tokenizer
from .chunk_encoder import ChunkEncoder
from .chunks import ChunkReader
from .distributed import EncodingRun, PlannedShard, Written, write_shard
from .documents import Options
from .encode_stage import opened_once
from .segments import EncodedBatch, Segment, encode_segment, write_batches
from .storage import folder_at

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent to Ray's makers
ray = imported("ray", "ray", "work on Ray")

LOCAL = "local"
_STORE = 256 << 20  # bytes of a local cluster's object store: ids go by files
_AHEAD = 16  # results for each task at a time that may wait for one before them


@contextmanager
def connected(address: str, workers: int | None) -> Iterator[None]:
    """A cluster: the one that this process is connected to already, that of an address, or one of this machine."""
    if ray.is_initialized():
        yield
        return
    options: dict[str, Any] = {"address": address, "log_to_driver": False, "logging_level": logging.ERROR}
    if address == LOCAL:
        options |= {"num_cpus": workers or processors(), "object_store_memory": _STORE}
        options["include_dashboard"] = False
    try:
        ray.init(**options)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise ConnectionError(f"no Ray cluster at {address}: {error}") from None
    try:
        yield
    finally:
        ray.shutdown()


def task_limit(workers: int | None) -> int:
    """How many tasks there are at a time: `workers`, or one for each processor of the cluster."""
    return workers or max(int(ray.cluster_resources().get("CPU", 1)), 1)


def results_of(
    name: str, functions: Iterable[Callable[[], Any]], workers: int | None
) -> Generator[Any, None, None]:
    """What functions return, in order. Each runs in a task of that name, of which at most `workers` run at a time.

    An `OSError`, `ValueError` or `ImportError` of a task is raised here, with the words that it has on one machine.
    """
    task = ray.remote(_result).options(name=name, max_retries=-1, scheduling_strategy="SPREAD")
    most, following = task_limit(workers), iter(functions)
    waiting: deque[Any] = deque()  # for their turn
    running: list[Any] = []
    try:
        while True:
            if running:
                _, running = ray.wait(running, num_returns=len(running), timeout=0)
            free = min(most - len(running), _AHEAD * most - len(waiting))
            begun = [task.remote(function) for function in islice(following, free)]
            waiting += begun
            running += begun
            if not waiting:
                return
            if waiting[0] in running:
                _, running = ray.wait(running)
                continue
            found, error = ray.get(waiting.popleft())
            if error is not None:
                raise error
            yield found
    finally:
        for result in waiting:
            with suppress(Exception):  # of any class, if the connection is lost
                ray.cancel(result)


def _result(function: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """In a task: what a function returns, or the error that it raises, to whose words Ray would add some."""
    try:
        return function(), None
    except (OSError, ValueError, ImportError) as error:
        return None, error


class RayMachines:
    """Encodes segments and writes shards, each in a task."""

    def __init__(
        self, work: EncodingRun, tokenizer: Tokenizer, options: Options, workers: int | None
    ) -> None:
        self._work, self._options, self._workers = work, options, workers
        self._tokenizer = tokenizer.fingerprint, ray.put(pickle.dumps(tokenizer, 5))
        self.processors = task_limit(workers)

    def encode(self, segments: Sequence[Segment]) -> Generator[list[EncodedBatch], None, None]:
        """The batches of each segment, in order; their ids are in files."""
        encoded = partial(_encoded, self._work, self._options, *self._tokenizer)
        return results_of("Encode", [partial(encoded, segment) for segment in segments], self._workers)

    def write(self, shards: Sequence[PlannedShard]) -> list[Written]:
        """Shards out of these files."""
        written = [partial(_written, self._work, shard) for shard in shards]
        return list(results_of("Shard", written, self._workers))


def _encoded(
    work: EncodingRun, options: Options, fingerprint: str, pickled: Any, segment: Segment
) -> list[EncodedBatch]:
    """In a task: write the ids of a segment to a file, and return what is known of its batches."""
    tokenizer = opened_once(fingerprint, lambda: ray.get(pickled))
    reader = ChunkReader(tokenizer, segment.inputs, options)
    encoder = ChunkEncoder(tokenizer, options, work.layout)
    name = uuid.uuid4().hex  # a task that is run again writes another file
    return write_batches(encode_segment(segment, reader, encoder), folder_at(work.segments), name)


def _written(work: EncodingRun, shard: PlannedShard) -> Written:
    """In a task: write a shard."""
    return write_shard(work, shard, f".{uuid.uuid4().hex}")
