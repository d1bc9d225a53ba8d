"""Past one machine: the same bytes and merges from clusters, also where nodes die, and from runs that were stopped.

How a corpus is cut and put together again is held to one machine without Ray first; then Ray does it.
"""

from __future__ import annotations

import json
import os
import pickle
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from commands import Run, assert_error, posix_only, run
from conftest import GPT2, ROOT
from corpus_cases import TEXTS, expected, files_in, json_lines, large, prose, small_chunks, tok
from this_machine import ThisMachine, on_this_machine

import ggufbpe
from ggufbpe import EncodeStage, Tokenizer, encode_corpus, train
from ggufbpe.data.corpora import distributed, segments
from ggufbpe.data.corpora.chunks import FIRST
from ggufbpe.data.corpora.distributed import PlannedShard, Written, segment_sizes
from ggufbpe.data.corpora.records import CorpusError
from ggufbpe.data.corpora.segments import EncodedBatch, Segment
from ggufbpe.data.corpora.storage import SEGMENTS, ChangedError, Input

__all__ = ["large", "on_this_machine", "run", "small_chunks", "tok"]  # fixtures

pytestmark = [posix_only, pytest.mark.cluster]


class StopError(Exception):
    """What stops a run here."""


# ---- without Ray ----------------------------------------------------------------------------------------


CASES: list[tuple[str, dict[str, Any]]] = [
    ("shards of many segments", {"shard_size": 100_000}),
    ("shards as they are elsewhere", {"shard_size": 20_000}),
    ("many shards in a segment", {"shard_size": 2_000}),
    ("one shard", {}),
    ("rows", {"format": "npy", "pack": 50, "shard_size": 20_000}),
    ("rows of many documents and segments", {"format": "parquet", "pack": 7_000, "shard_size": 20_000}),
    ("where documents begin", {"format": "npy", "pack": 50, "position_ids": True, "shard_size": 20_000}),
    ("rows that no document fills", {"pack": 10_000_000}),
    ("each line", {"by_line": True, "bos": True, "shard_size": 9_000}),
    ("documents of no ids", {"eos": False, "format": "arrow", "shard_size": 20_000}),
]


@pytest.mark.usefixtures("on_this_machine", "small_chunks")
@pytest.mark.parametrize("options", [case for _, case in CASES], ids=[name for name, _ in CASES])
def test_what_is_cut_in_segments_has_the_same_bytes(
    options: dict[str, Any], large: Path, tmp_path: Path, tok: Tokenizer
) -> None:
    encode_corpus(large, tok, tmp_path / "one", **options)
    encode_corpus(large, tok, tmp_path / "many", ray="", **options)
    assert files_in(tmp_path / "many") == files_in(tmp_path / "one")


@pytest.mark.usefixtures("on_this_machine", "small_chunks")
@pytest.mark.parametrize("size", [11, 100, 1_000])
def test_lines_belong_to_the_segment_that_they_begin_in(
    size: int, tmp_path: Path, tok: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Short and long ones, empty ones, bad ones, without an end."""
    monkeypatch.setattr(distributed, "_SMALLEST", size)
    monkeypatch.setattr(distributed, "_LARGEST", size)
    lines = [
        b"bad",
        b"",
        *json_lines([*TEXTS, "long " * 60, "", "a"]).splitlines(),
        b"[]",
        b'{"text": "end"}',
    ]
    told: dict[str | None, list[str]] = {None: [], "": []}
    for content in (b"\n".join(lines), b"\r\n".join(lines) + b"\n"):
        (tmp_path / "a.jsonl").write_bytes(content)
        for ray, found in told.items():
            encode_corpus(
                tmp_path / "a.jsonl",
                tok,
                tmp_path / f"out{ray}",
                shard_size=60,
                force=True,
                ray=ray,
                on_error="skip",
                report=lambda where, error, found=found: found.append(f"{where} {error}"),
            )
            (tmp_path / f"out{ray}").rename(tmp_path / ("many" if ray is not None else "one"))
        assert files_in(tmp_path / "many") == files_in(tmp_path / "one")
        shutil.rmtree(tmp_path / "many"), shutil.rmtree(tmp_path / "one")
    assert told[""] == told[None] != []


@pytest.mark.usefixtures("on_this_machine")
def test_shards_stay_until_a_forced_run_writes_some(corpus: Path, tmp_path: Path, tok: Tokenizer) -> None:
    out = tmp_path / "out"
    encode_corpus(corpus, tok, out)
    before = files_in(out)
    (tmp_path / "bad.jsonl").write_bytes(json_lines(TEXTS) + BAD)
    with pytest.raises(CorpusError, match="line "):
        encode_corpus(tmp_path / "bad.jsonl", tok, out, ray="", force=True)
    assert files_in(out) == before
    (tmp_path / "bad.jsonl").write_bytes(json_lines(TEXTS))
    encode_corpus(tmp_path / "bad.jsonl", tok, out, ray="", force=True)
    encode_corpus(tmp_path / "bad.jsonl", tok, tmp_path / "whole")
    assert files_in(out) == files_in(tmp_path / "whole")


@pytest.mark.usefixtures("on_this_machine", "small_chunks")
@pytest.mark.parametrize("options", [{}, {"pack": 3_000}])
def test_a_run_that_was_stopped_goes_on_there_or_on_one_machine(
    options: dict[str, Any], large: Path, tmp_path: Path, tok: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"shard_size": 30_000, **options}
    encode_corpus(large, tok, tmp_path / "whole", **options)
    real, calls = ThisMachine.write, iter(range(10**9))

    def write(self: ThisMachine, shards: list[PlannedShard]) -> list[Written]:
        if shards and next(calls) % 3 == 2:
            real(self, shards[:1])
            raise StopError
        return real(self, shards)

    monkeypatch.setattr(ThisMachine, "write", write)
    stops = 0
    for ray in ("", "", "", None):
        try:
            encode_corpus(large, tok, tmp_path / "out", resume=True, ray=ray, **options)
        except StopError:
            stops += 1
            (tmp_path / "out" / SEGMENTS).mkdir()  # as a kill leaves it
    assert stops == 3
    assert files_in(tmp_path / "out") == files_in(tmp_path / "whole")


@pytest.mark.usefixtures("on_this_machine", "small_chunks")
@pytest.mark.parametrize("options", [{}, {"pack": 3_000}, {"pack": 10_000_000}])
@pytest.mark.parametrize("rays", [("", ""), ("", None), (None, "")])
def test_a_run_that_was_stopped_behind_its_last_shard_has_no_more_to_write(
    rays: tuple[str | None, str | None],
    options: dict[str, Any],
    large: Path,
    tmp_path: Path,
    tok: Tokenizer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As by a kill before there is a manifest."""

    def stop(*_: object) -> None:
        raise StopError

    first, second = rays
    options = {"shard_size": 30_000, **options}
    encode_corpus(large, tok, tmp_path / "whole", **options)
    with monkeypatch.context() as patch:
        patch.setattr(ggufbpe.data.corpora.manifest, "finish", stop)
        with pytest.raises(StopError):
            encode_corpus(large, tok, tmp_path / "out", ray=first, **options)
    encode_corpus(large, tok, tmp_path / "out", resume=True, ray=second, **options)
    assert files_in(tmp_path / "out") == files_in(tmp_path / "whole")


@pytest.mark.usefixtures("on_this_machine")
def test_segments_in_another_order_are_refused(
    large: Path, tmp_path: Path, tok: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rather than documents in another order."""
    real = ThisMachine.encode

    def encode(self: ThisMachine, segments: Sequence[Segment]) -> Generator[list[EncodedBatch], None, None]:
        yield from reversed(list(real(self, segments)))

    monkeypatch.setattr(ThisMachine, "encode", encode)
    with pytest.raises(AssertionError, match="segment"):
        encode_corpus(large, tok, tmp_path / "out", ray="")


@pytest.mark.usefixtures("on_this_machine")
def test_a_run_that_ends_does_not_wait_for_long_shards(
    large: Path, tmp_path: Path, tok: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after Ctrl-C: those that are being written find no segments any more."""
    real, begun, ended = ThisMachine.write, threading.Event(), list[str]()

    def write(self: ThisMachine, shards: list[PlannedShard]) -> list[Written]:
        begun.set()
        end = time.monotonic() + 20
        try:
            while time.monotonic() < end:
                real(self, shards)
        except OSError as error:
            ended.append(type(error).__name__)
            raise
        raise AssertionError("nothing ended it")

    def stop(progress: object) -> None:
        if begun.is_set():
            raise StopError

    monkeypatch.setattr(ThisMachine, "write", write)
    with pytest.raises(StopError):
        encode_corpus(large, tok, tmp_path / "out", shard_size=30_000, ray="", progress=stop)
    assert ended == ["FileNotFoundError"]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("total", "processors"), [(10**6, 2), (10**9, 2), (10**11, 1), (10**11, 100)])
def test_the_last_segments_are_small(total: int, processors: int) -> None:
    inputs = [Input(name, total // 2, "") for name in ("a.jsonl", "b.jsonl")]
    sizes = segment_sizes(total, processors)
    found = [
        each.end - each.start.offset if each.end else sum(given.size for given in each.inputs)
        for each in segments.divide(inputs, False, FIRST, sizes)
    ]
    assert sum(found) == total
    assert max(found) <= 1.25 * (128 << 20)
    assert max(found[-processors:]) <= max(max(found) / 2, 1 << 20)
    assert len(found) <= total // (128 << 20) + 16 * processors


@pytest.mark.usefixtures("on_this_machine")
def test_an_empty_corpus_has_no_shards(tmp_path: Path, tok: Tokenizer) -> None:
    (tmp_path / "empty").mkdir()
    for ray in (None, ""):
        encode_corpus(tmp_path / "empty", tok, tmp_path / f"out{ray}", ray=ray)
    assert files_in(tmp_path / "out") == files_in(tmp_path / "outNone")


def test_a_shard_ends_with_the_most_rows_that_it_may_have(
    on_this_machine: None, tmp_path: Path, tok: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ggufbpe.data.corpora.shard_writer, "MOST_ROWS", 100)
    (tmp_path / "a.jsonl").write_bytes(json_lines(["", "a"] * 1_000))
    for ray in (None, ""):
        found = encode_corpus(tmp_path / "a.jsonl", tok, tmp_path / f"out{ray}", ray=ray)
        assert len(found.shards) == 20
    assert files_in(tmp_path / "out") == files_in(tmp_path / "outNone")


def test_an_input_that_changes_meanwhile_ends_the_run(
    on_this_machine: None, tmp_path: Path, tok: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(json_lines())
    real = segments.divide

    def changed(*arguments: Any) -> Iterator[Segment]:
        path.write_bytes(json_lines() * 2)
        return real(*arguments)

    monkeypatch.setattr(distributed, "divide", changed)
    with pytest.raises(ChangedError, match="has changed since"):
        encode_corpus(path, tok, tmp_path / "out", ray="")


def test_urls_are_read_and_written(
    on_this_machine: None, large: Path, tmp_path: Path, tok: Tokenizer
) -> None:
    encode_corpus(f"file://{large}", tok, tmp_path / "one", shard_size=20_000)
    encode_corpus(f"file://{large}", tok, f"file://{tmp_path}/many", shard_size=20_000, ray="")
    assert files_in(tmp_path / "many") == files_in(tmp_path / "one")


# ---- a cluster of two nodes on this machine -------------------------------------------------------------


NODE = {"num_cpus": 1, "object_store_memory": 100 << 20}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Two nodes of one processor each, by Ray's own cluster utility, to which this process is connected.

    Ray keeps the address of the current cluster below its default temporary folder, whatever `temp_dir` says, and does
    not make that folder. RAY_TMPDIR moves both, so the tests need no trace of an earlier Ray and leave none.
    """
    with pytest.MonkeyPatch.context() as patch, short_temporary_folder() as folder:
        settings = {
            "RAY_AUTH_MODE": "disabled",
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_DEDUP_LOGS": "0",
            "RAY_TMPDIR": folder,
            "RAY_worker_niceness": "0",  # with Ray's 15, tasks wait for minutes on a busy machine
        }
        for name, value in settings.items():
            patch.setenv(name, value)
        ray = pytest.importorskip("ray")
        from ray.cluster_utils import Cluster

        cluster = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
        try:
            cluster.add_node(**NODE)
            ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
            yield cluster
        finally:
            ray.shutdown()
            cluster.shutdown()


@contextmanager
def short_temporary_folder() -> Iterator[str]:
    """A temporary folder whose path leaves room for Ray's sockets: a socket's path has at most 107 bytes."""
    base = tempfile.gettempdir()
    folder = tempfile.mkdtemp(prefix="ray-", dir=base if len(base) < 25 else "/tmp")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lines of several segments."""
    rng = random.Random(5)
    path = tmp_path_factory.mktemp("corpus") / "corpus.jsonl"
    path.write_bytes(json_lines([prose(rng, rng.randrange(300)) for _ in range(4_000)]))
    return path


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("workers", "options"),
    [(None, {}), (1, {"format": "parquet", "pack": 100}), (2, {"format": "npy", "by_line": True})],
)
def test_ray_gives_the_bytes_of_one_machine(
    workers: int | None, options: dict[str, Any], large: Path, corpus: Path, tmp_path: Path, tok: Tokenizer
) -> None:
    options = {"shard_size": 50_000, **options}
    encode_corpus([large, corpus], tok, tmp_path / "one", **options)
    encode_corpus([large, corpus], tok, tmp_path / "many", ray="auto", workers=workers, **options)
    assert files_in(tmp_path / "many") == files_in(tmp_path / "one")


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("workers", [1, None])
def test_results_come_in_order_from_no_more_tasks_than_workers(workers: int | None, tmp_path: Path) -> None:
    from ggufbpe.data.corpora.ray_machines import results_of

    most = workers or 2

    def at_once(number: int) -> tuple[int, int]:
        mark = tmp_path / str(number)
        mark.touch()
        found = 0
        end = time.monotonic() + 120 * (number < most)  # the first ones wait for each other
        while found < most and time.monotonic() < end:
            time.sleep(0.01)
            found = len(list(tmp_path.iterdir()))
        time.sleep(0.3 if number % 2 == 0 else 0.1)
        found = max(found, len(list(tmp_path.iterdir())))
        mark.unlink()
        return number, found

    results = list(results_of("Test", [partial(at_once, number) for number in range(8)], workers))
    assert [number for number, _ in results] == list(range(8))
    assert max(found for _, found in results) == most


@pytest.mark.usefixtures("cluster")
def test_tasks_begin_while_results_that_waited_are_handed_out(tmp_path: Path) -> None:
    import ray

    from ggufbpe.data.corpora.ray_machines import results_of

    def is_there(name: str) -> bool:
        end = time.monotonic() + 60
        while not (tmp_path / name).exists() and time.monotonic() < end:
            time.sleep(0.01)
        return (tmp_path / name).exists()

    def marked(number: int) -> int:
        (tmp_path / str(number)).touch()
        assert number not in awaited or is_there(awaited[number])
        return number

    awaited = {0: "3", 3: "go"}

    results = results_of("Test", [partial(marked, number) for number in range(8)], 2)
    assert next(results) == 0  # 1 and 2 wait for their turn, 3 and 4 run
    (tmp_path / "go").touch()
    ray.wait(results.gi_frame.f_locals["running"], num_returns=2)
    assert next(results) == 1
    assert is_there("6")
    assert list(results) == [2, 3, 4, 5, 6, 7]


@pytest.mark.usefixtures("cluster")
def test_what_failed_is_told_where_tasks_cannot_be_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    """As without a connection to Ray: the rest is cancelled nevertheless."""
    from ggufbpe.data.corpora import ray_machines

    def fail() -> None:
        raise ValueError("the first error")

    def cancel(result: object) -> None:
        cancelled.append(result)
        raise TypeError("not connected")

    cancelled: list[object] = []
    monkeypatch.setattr(ray_machines.ray, "cancel", cancel)
    with pytest.raises(ValueError, match="the first error"):
        list(ray_machines.results_of("Test", [fail] * 3, 3))
    assert len(cancelled) == 2


@pytest.mark.usefixtures("cluster")
def test_a_segment_may_have_no_document(
    tmp_path: Path, tok: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no line begins."""
    monkeypatch.setattr(distributed, "_SMALLEST", 1_000)
    (tmp_path / "a.jsonl").write_bytes(json_lines(["a", "long " * 2_000, "b"]))
    encode_corpus(tmp_path / "a.jsonl", tok, tmp_path / "one")
    encode_corpus(tmp_path / "a.jsonl", tok, tmp_path / "many", ray="auto")
    assert files_in(tmp_path / "many") == files_in(tmp_path / "one")


@pytest.mark.usefixtures("cluster")
def test_nodes_need_no_file_of_the_model(corpus: Path, tmp_path: Path, tok: Tokenizer) -> None:
    shutil.copy(GPT2, tmp_path / "gpt2.gguf")
    model = Tokenizer.from_gguf(tmp_path / "gpt2.gguf")
    (tmp_path / "gpt2.gguf").unlink()
    found = encode_corpus(corpus, model, tmp_path / "many", ray="auto")
    assert found.manifest == encode_corpus(corpus, tok, tmp_path / "one").manifest


def test_a_process_opens_a_tokenizer_once(tok: Tokenizer) -> None:
    content = pickle.dumps(EncodeStage(tok))
    first, second = (vars(pickle.loads(content)) for _ in range(2))
    assert first["_tokenizer"] is second["_tokenizer"] is not tok


BAD = b'{"no": "text"}\n'


@pytest.mark.usefixtures("cluster")
def test_bad_records_are_told_as_on_one_machine(
    run: Run, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the number of their line, which no task knows alone, and with the same exit status."""
    monkeypatch.chdir(tmp_path)
    Path("bad.jsonl").write_bytes(corpus.read_bytes() + BAD)
    for more in ((), ("--on-error", "skip")):
        command = ["encode", "-m", GPT2, "bad.jsonl", *more, "--force", "-o"]
        one, many = run(*command, "one"), run(*command, "many", "--ray", "auto")
        assert "line 4001" in one.err
        assert (many.code, many.err) == (one.code, one.err)
    assert files_in(tmp_path / "many") == files_in(tmp_path / "one")


@pytest.mark.usefixtures("cluster")
def test_a_bad_record_ends_the_run_while_others_are_encoded(
    corpus: Path, tmp_path: Path, tok: Tokenizer
) -> None:
    (tmp_path / "bad.jsonl").write_bytes(BAD + corpus.read_bytes() * 20)
    with pytest.raises(CorpusError, match="line 1: "):
        encode_corpus(tmp_path / "bad.jsonl", tok, tmp_path / "out", ray="auto")
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("cluster")
def test_what_fails_in_a_task_fails_as_here(
    run: Run, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the words of one machine, in which Ray has no part."""
    path = tmp_path / "a.jsonl"
    shutil.copy(corpus, path)
    real = segments.divide

    def vanished(*arguments: Any) -> Iterator[Segment]:
        path.unlink()
        return real(*arguments)

    monkeypatch.setattr(distributed, "divide", vanished)
    result = run("encode", "-m", GPT2, path, "-o", tmp_path / "out", "--ray", "auto")
    assert_error(result)
    assert result.err == f"ggufbpe: error: {path}: No such file or directory\n"


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONWARNINGS": "ignore"}


def command(*arguments: object, **options: Any) -> str:
    """What another process prints."""
    ran = subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, env=environment(), **options
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


@pytest.mark.usefixtures("cluster")
def test_the_command_starts_a_cluster_of_its_own(corpus: Path, tmp_path: Path, tok: Tokenizer) -> None:
    encode_corpus(corpus, tok, tmp_path / "one", shard_size=50_000)
    flags = ("--shard-size", 50_000, "--ray", "local", "--workers", 2)
    said = command("-m", "ggufbpe", "encode", "-m", GPT2, corpus, "-o", tmp_path / "many", *flags)
    assert said.startswith("4000 documents,")
    assert files_in(tmp_path / "many") == files_in(tmp_path / "one")


# ---- training -------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"ties": "first-seen", "field": "text", "threads": 1},
        {"pre": "words", "units": "chars", "end_of_word": "_", "ties": "first-seen"},
        {"seed_vocab": GPT2, "vocab_size": 50_400, "special": ["<s>"]},
    ],
)
def test_training_on_ray_gives_the_merges_of_one_machine(
    options: dict[str, Any], large: Path, corpus: Path
) -> None:
    options = {"vocab_size": 400, "word_counts": {"zebra": 9}, **options}
    tables = [] if "field" in options else [large / "c.txt", large / "b.jsonl.gz"]
    texts = ["a text that is here", *tables, corpus]
    one, many = train(texts, **options), train(texts, ray="auto", **options)
    assert (many.trace, many.tokens, many.word_count) == (one.trace, one.tokens, one.word_count)
    assert one.trace


def test_the_command_trains_on_the_cluster_of_an_address(cluster: Any, corpus: Path, tmp_path: Path) -> None:
    arguments = ("-m", "ggufbpe", "train", corpus, "--vocab-size", 300, "--trace", "-q")
    assert command(*arguments, "--ray", cluster.address) == command(*arguments)


@pytest.mark.usefixtures("cluster")
def test_a_line_that_is_no_text_is_told_as_on_one_machine(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_bytes(corpus.read_bytes() + BAD)
    told = []
    for ray in (None, "auto"):
        with pytest.raises(CorpusError) as caught:
            train([tmp_path / "bad.jsonl"], vocab_size=300, ray=ray)
        told.append(str(caught.value))
    assert "line 4001" in told[0]
    assert told[0] == told[1]


# ---- steps of others ------------------------------------------------------------------------------------


def of_parquet(path: Path) -> list[list[int]]:
    return [row["input_ids"] for row in sorted(pq.read_table(path).to_pylist(), key=lambda row: row["id"])]


def of_json_lines(path: Path) -> list[list[int]]:
    [file] = path.iterdir()
    return [json.loads(line)["metadata"]["input_ids"] for line in file.read_text().splitlines()]


EXAMPLES = re.findall(
    r"```python\n(.*?)```",
    (ROOT / "docs" / "corpora.md").read_text().partition("## In what others run")[2],
    re.S,
)
READERS = {"ray.data": of_parquet, "datasets": of_parquet, "datatrove": of_json_lines}


def test_each_library_has_an_example() -> None:
    assert len(EXAMPLES) == len(READERS)


@pytest.mark.parametrize("library", READERS)
def test_the_example_of_a_library_gives_the_ids_of_shards(
    library: str, cluster: Any, tmp_path: Path, tok: Tokenizer
) -> None:
    [example] = [one for one in EXAMPLES if library in one]
    shutil.copy(GPT2, tmp_path / "model.gguf")
    (tmp_path / "corpus").mkdir()
    texts = [text for text in TEXTS if text]  # datatrove leaves out empty documents
    (tmp_path / "corpus" / "a.jsonl").write_bytes(json_lines(texts))
    before = "import os; os.environ['RAY_ADDRESS'] = " + repr(cluster.address)
    ran = subprocess.run(
        [sys.executable, "-c", f"{before}\n{example}"], cwd=tmp_path, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert READERS[library](tmp_path / "ids") == expected(tok, texts)


# ---- a node that dies -----------------------------------------------------------------------------------


def runs(node: Any, task: str) -> bool:
    """Whether a process of a node is at a task of that name; Ray puts it in the title of the process."""
    raylet = node.all_processes["raylet"][0].process.pid
    for path in Path(f"/proc/{raylet}/task").glob("*/children"):
        for child in path.read_text().split():
            with suppress(FileNotFoundError):
                if task.encode() in Path(f"/proc/{child}/cmdline").read_bytes():
                    return True
    return False


@pytest.mark.parametrize("task", ["Encode", "Shard"])
def test_a_node_that_dies_in_the_middle_changes_nothing(
    task: str, cluster: Any, corpus: Path, tmp_path: Path, tok: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two nodes one is killed while it encodes, or while it writes a shard."""
    monkeypatch.setattr(distributed, "_LARGEST", 1 << 20)
    many = [corpus] * 10
    encode_corpus(many, tok, tmp_path / "one", shard_size=1_000_000)
    [node] = cluster.worker_nodes or [cluster.add_node(**NODE)]
    killed = []

    def kill() -> None:
        end = time.monotonic() + 120
        while time.monotonic() < end and not killed:
            if runs(node, task):
                killed.append(len(list((tmp_path / "many").glob("part-*.bin"))))
                cluster.remove_node(node, allow_graceful=False)

    killer = threading.Thread(target=kill)
    killer.start()
    found = encode_corpus(many, tok, tmp_path / "many", shard_size=1_000_000, ray="auto")
    killer.join()
    assert killed
    assert killed[0] < len(found.shards)
    assert files_in(tmp_path / "many") == files_in(tmp_path / "one")
