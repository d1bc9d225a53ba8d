"""The machines of a Ray cluster: Ray Data reads and encodes segments of a corpus, and writes them and shards.

    segments, shards -> [this file] -> a task for each on some node -> what became of it

A tokenizer goes to the object store once, by content, which gives it to each node once; each process that encodes
opens it once. A task that is lost with its node is run again by Ray, and writes the same files.

This file is imported where Ray is wanted, and imports Ray.
"""

from __future__ import annotations

import logging
import os
import pickle
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, NoReturn

from ..extras import imported
from ..tokenizer import Tokenizer, processors
from .distributed import EncodingRun, PlannedShard, Written, write_shard
from .encoding import ChunkEncoder, Options, chunk_reader
from .places import folder_at
from .segments import EncodedBatch, Segment, encode_segment, id_bytes, pickled, write_batches
from .stage import opened_once

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent to Ray's makers
_WHAT = "work on Ray"
ray = imported("ray", "ray", _WHAT)
data = imported("ray.data", "ray", _WHAT)
pyarrow = imported("pyarrow", "ray", _WHAT)

LOCAL = "local"
_STORE = 256 << 20  # bytes of a local cluster's object store: ids go by files
_BLOCK = 16 << 20  # bytes that a task collects before they are written

Table = Any  # pyarrow's


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


def processors_of(workers: int | None) -> int:
    """How many tasks there are at a time: `workers`, or one for each processor of the cluster."""
    return workers or max(int(ray.cluster_resources().get("CPU", 1)), 1)


# ---- Ray Data -------------------------------------------------------------------------------------------


class Tasks(data.Datasource):  # type: ignore[misc,name-defined]
    """A dataset that functions make, each in a task of its own."""

    def __init__(self, name: str, makers: Sequence[Callable[[], Iterable[Table]]]) -> None:
        super().__init__()
        self._name, self._makers = name, makers

    def get_name(self) -> str:
        """What the tasks are called in Ray's own views."""
        return self._name

    def estimate_inmemory_data_size(self) -> None:
        """Not known."""

    def get_read_tasks(self, *_: object, **__: object) -> list[Any]:
        """A task for each function, whatever parallelism is asked for."""
        metadata = imported("ray.data.block", "ray", _WHAT).BlockMetadata(None, None, None, None)
        return [data.ReadTask(partial(_made, make), metadata) for make in self._makers]


def _made(make: Callable[[], Iterable[Table]]) -> Iterator[Table]:
    with _carried():
        yield from make()


class Sink(data.Datasink):  # type: ignore[misc,name-defined]
    """Gives the blocks of a task to a function, whose result is found in `results` at the end."""

    def __init__(self, name: str, write: Callable[[Iterable[Table]], Any]) -> None:
        self._name, self._write = name, write
        self.results: list[Any] = []

    def get_name(self) -> str:
        """What the tasks are called in Ray's own views."""
        return self._name

    def write(self, blocks: Iterable[Table], ctx: object) -> Any:
        """In a task."""
        with _carried():
            return self._write(blocks)

    def on_write_complete(self, write_result: Any) -> None:
        """In the process that began it."""
        self.results = list(write_result.write_returns)


@contextmanager
def quiet_context() -> Iterator[None]:
    """Ray Data's settings for our jobs: in order, in small blocks, without its bars. Errors are those of the tasks."""
    logger = logging.getLogger("ray.data")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray warns of names that it uses itself
        context = data.DataContext.get_current()
        settings = [
            (context, "enable_progress_bars", False),
            (context, "target_max_block_size", _BLOCK),
            (context.execution_options, "preserve_order", True),
        ]
        before = [getattr(of, name) for of, name, _ in settings]
        for of, name, value in settings:
            setattr(of, name, value)
        try:
            yield
        except Exception as error:
            _raise_cause(error)
        finally:
            for (of, name, _), value in zip(settings, before):
                setattr(of, name, value)
            logger.setLevel(level)


class CarriedError(Exception):
    """What was raised in a task, out of reach of Ray, which adds to the words of errors."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error

    def __reduce__(self) -> tuple[Any, ...]:
        return CarriedError, (self.error,)


@contextmanager
def _carried() -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, ImportError) as error:
        raise CarriedError(error) from None


def _raise_cause(error: BaseException) -> NoReturn:
    """What was raised in a task, as it is raised on one machine."""
    found: BaseException | None = error
    while found is not None:
        if type(found) is CarriedError:
            raise found.error from None
        found = getattr(found, "cause", None) or found.__cause__
    raise error


def dataset_of(name: str, makers: Sequence[Callable[[], Iterable[Table]]], workers: int | None) -> Any:
    """The dataset of `Tasks`, of which not more than `workers` run at a time."""
    return data.read_datasource(Tasks(name, makers), override_num_blocks=len(makers), concurrency=workers)


# ---- a corpus -------------------------------------------------------------------------------------------


class Shared(NamedTuple):
    """What a task needs to encode."""

    fingerprint: str
    tokenizer: Any  # a reference to its pickle in the object store
    options: Options
    dtype: str


class RayMachines:
    """Encodes and writes as jobs of Ray Data."""

    def __init__(
        self, work: EncodingRun, tokenizer: Tokenizer, options: Options, workers: int | None
    ) -> None:
        self._work, self._workers = work, workers
        self._shared = Shared(
            tokenizer.fingerprint, ray.put(pickle.dumps(tokenizer, 5)), options, work.layout.dtype
        )
        self.processors = processors_of(workers)

    def encode(self, segments: Sequence[Segment]) -> Iterator[EncodedBatch]:
        """The batches of segments; their ids are in files."""
        makers = [partial(_encoded, self._shared, segment) for segment in segments]
        for found in self._run("Encode", makers, partial(_write_batches, self._work)):
            yield from found

    def write(self, shards: Sequence[PlannedShard]) -> list[Written]:
        """Shards out of these files."""
        makers = [partial(_planned, shard) for shard in shards]
        found = dict(
            one for some in self._run("Shard", makers, partial(_write_shards, self._work)) for one in some
        )
        return [found[shard.number] for shard in shards]

    def _run(self, name: str, makers: Sequence[Any], write: Callable[[Iterable[Table]], Any]) -> list[Any]:
        if not makers:
            return []
        sink = Sink(name, write)
        with quiet_context():
            dataset_of(name, makers, self._workers).write_datasink(sink, concurrency=self._workers)
        return sink.results


def _encoded(shared: Shared, segment: Segment) -> Iterator[Table]:
    """The batches of a segment, a row each. This and what follows runs in tasks."""
    tokenizer = opened_once(shared.fingerprint, lambda: ray.get(shared.tokenizer))
    reader = chunk_reader(tokenizer, segment.inputs, shared.options)
    encoder = ChunkEncoder(tokenizer, shared.options.document, shared.dtype)
    for batch, encoded in encode_segment(segment, reader, encoder):
        columns = [pickle.dumps(batch, 5), pickled(encoded), id_bytes(encoded)]
        names = ["batch", "known", "ids"]
        yield pyarrow.table(dict(zip(names, map(_binary, columns))))


def _binary(value: Any) -> Any:
    """A column of one value, which is not copied."""
    data_of = pyarrow.py_buffer(value)
    ends = pyarrow.array([0, data_of.size], pyarrow.int64()).buffers()[1]
    return pyarrow.Array.from_buffers(pyarrow.large_binary(), 1, [None, ends, data_of])


def _write_batches(work: EncodingRun, blocks: Iterable[Table]) -> list[EncodedBatch]:
    rows = (
        (pickle.loads(batch.as_buffer()), known.as_buffer(), ids.as_buffer())
        for block in blocks
        if block.num_rows  # else it has no columns: a segment in which no line begins
        for batch, known, ids in zip(block["batch"], block["known"], block["ids"])
    )
    name = uuid.uuid4().hex  # a task that is run again writes another file
    return write_batches(rows, folder_at(work.segments), name)


def _planned(shard: PlannedShard) -> Iterator[Table]:
    yield pyarrow.table({"shard": _binary(pickle.dumps(shard, 5))})


def _write_shards(work: EncodingRun, blocks: Iterable[Table]) -> list[tuple[int, Written]]:
    found = []
    for block in blocks:
        for one in block["shard"]:
            shard = pickle.loads(one.as_buffer())
            found.append((shard.number, write_shard(work, shard, f".{uuid.uuid4().hex}")))
    return found
