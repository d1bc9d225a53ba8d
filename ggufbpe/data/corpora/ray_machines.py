"""The machines of a Ray cluster: Ray Data reads and encodes segments of a corpus, and writes segments and shards.

A tokenizer goes to the object store once, by content, which gives it to each node once; each process that encodes
opens it once. A task that is lost with its node is run again by Ray, and writes files with equal bytes.

Importing this module imports Ray.
"""

from __future__ import annotations

import logging
import os
import pickle
import uuid
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

from ..._util.extras import imported
from ..._util.processors import processors
from ...tokenizer import Tokenizer
from .byte_formats import Layout
from .chunk_encoder import ChunkEncoder
from .chunks import ChunkReader
from .distributed import EncodingRun, PlannedShard, Written, write_shard
from .documents import Options
from .encode_stage import opened_once
from .segments import EncodedBatch, Segment, encode_segment, write_batches
from .storage import folder_at

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent to Ray's makers
_WHAT = "work on Ray"
ray = imported("ray", "ray", _WHAT)
data = imported("ray.data", "ray", _WHAT)
pyarrow = imported("pyarrow", "ray", _WHAT)

LOCAL = "local"
_STORE = 256 << 20  # bytes of a local cluster's object store: ids go by files
_BLOCK = 16 << 20  # bytes of rows that a task collects
_EXECUTOR = "ray.data._internal.execution.streaming_executor_state"  # private: another Ray may not have it
_WAIT = 0.05  # seconds; Ray Data looks that often whether a task is done, otherwise a tenth of a second

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
        if address == LOCAL:
            for _ in range(options["num_cpus"]):
                ray.remote(_import_for_tasks).remote()  # not waited for
        yield
    finally:
        ray.shutdown()


def _import_for_tasks() -> None:
    """Each process of a local cluster begins with it, since it takes a second or two. This module is imported, too."""
    import_module("pandas")  # Ray Data's form of what was written


def task_limit(workers: int | None) -> int:
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
    """Ray Data's settings for our jobs, of this process: in order, in small blocks, without its bars."""
    logger = logging.getLogger("ray.data")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray warns of names that it uses itself
        context = data.DataContext.get_current()
        settings = [
            (context, "enable_progress_bars", False),
            (context, "target_max_block_size", _BLOCK),
            (context, "memory_usage_poll_interval_s", None),  # it reads all of a process's map
            (context.execution_options, "preserve_order", True),
            *_executor_settings(),
        ]
        before = [getattr(of, name) for of, name, _ in settings]
        for of, name, value in settings:
            setattr(of, name, value)
        try:
            yield
        finally:
            for (of, name, _), value in zip(settings, before):
                setattr(of, name, value)
            logger.setLevel(level)


def _executor_settings() -> list[tuple[Any, str, float]]:
    """Those that are private, where this Ray has them; it is slower without."""
    name = "WAIT_FOR_TASK_COMPLETION_TIMEOUT_S"
    with suppress(ImportError):
        executor = import_module(_EXECUTOR)
        return [(executor, name, _WAIT)] if hasattr(executor, name) else []
    return []


@contextmanager
def causes_raised() -> Iterator[None]:
    """Errors of tasks, as they are raised on one machine."""
    try:
        yield
    except Exception as error:
        _raise_cause(error)


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
    cause: BaseException | None = error
    while cause is not None:
        if type(cause) is CarriedError:
            raise cause.error from None
        cause = getattr(cause, "cause", None) or cause.__cause__
    raise error


def ray_dataset(name: str, makers: Sequence[Callable[[], Iterable[Table]]], workers: int | None) -> Any:
    """The dataset of `Tasks`, of which not more than `workers` run at a time."""
    return data.read_datasource(Tasks(name, makers), override_num_blocks=len(makers), concurrency=workers)


# ---- a corpus -------------------------------------------------------------------------------------------


class Shared(NamedTuple):
    """What a task needs to encode."""

    fingerprint: str
    tokenizer: Any  # a reference to its pickle in the object store
    options: Options
    layout: Layout


class RayMachines:
    """Encodes and writes as jobs of Ray Data."""

    def __init__(
        self, work: EncodingRun, tokenizer: Tokenizer, options: Options, workers: int | None
    ) -> None:
        self._work, self._workers = work, workers
        self._shared = Shared(
            tokenizer.fingerprint, ray.put(pickle.dumps(tokenizer, 5)), options, work.layout
        )
        self.processors = task_limit(workers)

    def encode(self, segments: Sequence[Segment]) -> Generator[list[EncodedBatch], None, None]:
        """The batches of each segment, in order; their ids are in files."""
        if not segments:
            return
        makers = [partial(_encoded, self._shared, self._work.segments, segment) for segment in segments]
        with causes_raised():
            for table in ray_dataset("Encode", makers, self._workers).iter_batches(
                batch_size=None, batch_format="pyarrow", prefetch_batches=0
            ):
                for batches in table["batches"]:
                    yield pickle.loads(batches.as_buffer())

    def write(self, shards: Sequence[PlannedShard]) -> list[Written]:
        """Shards out of these files."""
        makers = [partial(_planned, shard) for shard in shards]
        sink = Sink("Shard", partial(_write_shards, self._work))
        with causes_raised():
            ray_dataset("Shard", makers, self._workers).write_datasink(sink, concurrency=self._workers)
        written = dict(one for some in sink.results for one in some)
        return [written[shard.number] for shard in shards]


def _encoded(shared: Shared, folder: str, segment: Segment) -> Iterator[Table]:
    """Write the ids of a segment to a file, and tell of its batches. This and what follows runs in tasks.

    Ids are no rows of the dataset: Ray Data would keep all of a task's, and put them into its object store.
    """
    tokenizer = opened_once(shared.fingerprint, lambda: ray.get(shared.tokenizer))
    reader = ChunkReader(tokenizer, segment.inputs, shared.options)
    encoder = ChunkEncoder(tokenizer, shared.options, shared.layout)
    name = uuid.uuid4().hex  # a task that is run again writes another file
    batches = write_batches(encode_segment(segment, reader, encoder), folder_at(folder), name)
    yield pyarrow.table({"batches": _binary(pickle.dumps(batches, 5))})


def _binary(value: Any) -> Any:
    """A column of one value, which is not copied."""
    data_of = pyarrow.py_buffer(value)
    ends = pyarrow.array([0, data_of.size], pyarrow.int64()).buffers()[1]
    return pyarrow.Array.from_buffers(pyarrow.large_binary(), 1, [None, ends, data_of])


def _planned(shard: PlannedShard) -> Iterator[Table]:
    yield pyarrow.table({"shard": _binary(pickle.dumps(shard, 5))})


def _write_shards(work: EncodingRun, blocks: Iterable[Table]) -> list[tuple[int, Written]]:
    written = []
    for block in blocks:
        for one in block["shard"]:
            shard = pickle.loads(one.as_buffer())
            written.append((shard.number, write_shard(work, shard, f".{uuid.uuid4().hex}")))
    return written
