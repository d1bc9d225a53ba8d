"""A corpus of JSON lines to shards of ids, beside what others do it with: one run, the same texts, ids equal first.

    pip install '.[bench-corpora]'
    python benchmarks/corpora.py [--megabytes 1000] [--threads 2] [--vocab llama-3] [--only NAME …] [--json FILE]

Each is a process of its own, from its start to the last byte written:

- ggufbpe: `encode_corpus` to Megatron's form;
- ray: the same with as many processes on a Ray cluster of this machine, which is started first and has encoded a line;
  how long that took and the rate without it are printed, too, and the processor's time is that of the work alone;
- gigatoken: its `encode_files`, then the ids with EOS written as they lie in memory, and Megatron's index;
- HF: `datasets.load_dataset("json")` and `map(batched=True, num_proc=…)` with tokenizers, which writes arrow files;
- datatrove: `JsonlReader` and `DocumentTokenizer` without shuffling, a task for each thread and its part of the corpus.

On a machine with other work, compare the processor's time, too: it is what does not depend on who else runs.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import math
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cases
import numpy as np
import texts

EOS_TEXT = "<|end_of_text|>"
LONGEST, SHORTEST = 20_000, 200  # characters of a document


def make_corpus(folder: Path, size: int, parts: int) -> list[Path]:
    """JSON lines of about `size` bytes: documents of all lengths out of this machine's texts, in as many files."""
    rng = random.Random(1)
    pieces = []
    for text in texts.machine_texts(40_000_000):
        at = 0
        while at < len(text.text):
            length = int(SHORTEST * (LONGEST / SHORTEST) ** rng.random())
            pieces.append((text.name, text.text[at : at + length]))
            at += length
    rng.shuffle(pieces)
    paths, number = [], 0
    for part in range(parts):
        paths.append(folder / "corpus" / f"{part}.jsonl")
        paths[-1].parent.mkdir(exist_ok=True)
        with paths[-1].open("wb") as file:
            while file.tell() < size / parts:
                name, text = pieces[number % len(pieces)]
                number += 1
                record = {"id": f"document-{number}", "text": text, "source": name, "score": 0.25}
                file.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")
    return paths


# ---- who does it ----------------------------------------------------------------------------------------


def run_ggufbpe(job: dict[str, Any], out: Path) -> dict[str, Any]:
    """Ours, with the share of the processor's time that the engine has."""
    from ggufbpe import Tokenizer, encode_corpus

    in_engine: dict[int, float] = {}
    real = Tokenizer.encode_batch_to_numpy

    def timed(self: Tokenizer, *arguments: Any, **options: Any) -> Any:
        start = time.thread_time()
        try:
            return real(self, *arguments, **options)
        finally:
            thread = threading.get_ident()
            in_engine[thread] = in_engine.get(thread, 0.0) + time.thread_time() - start

    Tokenizer.encode_batch_to_numpy = timed  # type: ignore[method-assign]
    encode_corpus(job["corpus"], job["gguf"], out, workers=job["threads"])
    return {"in_engine": sum(in_engine.values())}


def run_ray(job: dict[str, Any], out: Path) -> dict[str, Any]:
    """Ours on Ray, with the seconds that the cluster took to start."""
    from ggufbpe import encode_corpus
    from ggufbpe.data.corpora.ray_machines import LOCAL, connected

    begun = time.perf_counter()
    with connected(LOCAL, job["threads"]), tempfile.TemporaryDirectory() as folder:
        first = Path(folder) / "first.txt"
        first.write_text("Ray's processes import ggufbpe with the first job.")
        encode_corpus(first, job["gguf"], Path(folder) / "out", workers=job["threads"], ray=LOCAL)
        started, cpu = time.perf_counter() - begun, cpu_of_family()
        begun = time.perf_counter()
        encode_corpus(job["corpus"], job["gguf"], out, workers=job["threads"], ray=LOCAL)
        worked, cpu = time.perf_counter() - begun, cpu_of_family() - cpu
        return {"started": started, "worked": worked, "cpu": cpu}


def cpu_of_family() -> float:
    """Seconds of processor's time of this process and all that it started, and these."""
    used: dict[int, float] = {}
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            used[int(path.parent.name)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
            children.setdefault(int(fields[1]), []).append(int(path.parent.name))
    total, family = 0.0, [os.getpid()]
    while family:
        one = family.pop()
        total += used[one]
        family += children.get(one, [])
    return total


def run_gigatoken(job: dict[str, Any], out: Path) -> dict[str, Any]:
    """gigatoken's own reading of files; what is written is what Megatron's form wants."""
    os.environ["RAYON_NUM_THREADS"] = str(job["threads"])
    import awkward
    import gigatoken
    from gigatoken.gigatoken_rs import JsonlFileSource

    tokenizer = gigatoken.Tokenizer(job["tokenizer_json"])
    ids = tokenizer.encode_files(JsonlFileSource(job["corpus"], "text"))
    lengths = awkward.num(ids).to_numpy() + 1
    flat, ends = awkward.flatten(ids).to_numpy(), np.cumsum(lengths)
    every = np.full(int(ends[-1]), job["eos"], np.int32)
    is_text = np.ones(len(every), bool)
    is_text[ends - 1] = False
    every[is_text] = flat
    out.mkdir()
    with (out / "part-00000.bin").open("wb") as file:
        every.tofile(file)
        os.fsync(file.fileno())
    np.concatenate([lengths, (ends - lengths) * 4]).tofile(out / "part-00000.idx")
    return {}


def run_hf(job: dict[str, Any], out: Path) -> dict[str, Any]:
    """HF datasets with HF tokenizers; its cache of arrow files is the output."""
    os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_CACHE=str(out), TOKENIZERS_PARALLELISM="false")
    import datasets
    from tokenizers import Tokenizer

    tokenizer, eos = Tokenizer.from_file(job["tokenizer_json"]), job["eos"]

    def encode(batch: dict[str, list[str]]) -> dict[str, Any]:
        found = tokenizer.encode_batch_fast(batch["text"], add_special_tokens=False)
        return {"input_ids": [[*one.ids, eos] for one in found]}

    corpus = datasets.load_dataset("json", data_files=job["corpus"], split="train")
    mapped = corpus.map(encode, batched=True, num_proc=job["threads"], remove_columns=corpus.column_names)
    (out / "files.json").write_text(json.dumps([file["filename"] for file in mapped.cache_files]))
    return {}


def run_datatrove(job: dict[str, Any], out: Path) -> dict[str, Any]:
    """datatrove's reader and tokenizer, a process for each part of the corpus."""
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.tokens import DocumentTokenizer

    LocalPipelineExecutor(
        pipeline=[
            JsonlReader(str(Path(job["corpus"][0]).parent)),
            DocumentTokenizer(
                str(out / "shards"), job["tokenizer_json"], eos_token=EOS_TEXT, shuffle_documents=False
            ),
        ],
        tasks=job["threads"],
        workers=job["threads"],
        logging_dir=str(out / "logs"),
    ).run()
    return {}


def flat(pattern: str, out: Path) -> Iterator[np.ndarray[Any, Any]]:
    """Ids of files that have nothing else."""
    for path in sorted(out.glob(pattern)):
        yield np.fromfile(path, np.int32)


def of_arrow(out: Path) -> Iterator[np.ndarray[Any, Any]]:
    """Ids of the arrow files that HF's map wrote."""
    import pyarrow as pa

    for name in json.loads((out / "files.json").read_text()):
        with pa.memory_map(name) as file:
            for batch in pa.ipc.open_stream(file):
                yield batch.column("input_ids").flatten().to_numpy().astype(np.int32)


Runner = Callable[[dict[str, Any], Path], dict[str, Any]]
RUNNERS: dict[str, tuple[Runner, Callable[[Path], Iterator[Any]]]] = {
    "ggufbpe": (run_ggufbpe, lambda out: flat("*.bin", out)),
    "ray": (run_ray, lambda out: flat("*.bin", out)),
    "gigatoken": (run_gigatoken, lambda out: flat("*.bin", out)),
    "HF": (run_hf, of_arrow),
    "datatrove": (run_datatrove, lambda out: flat("shards/*.ds", out)),
}


# ---- measuring ------------------------------------------------------------------------------------------


def child(name: str, job: dict[str, Any]) -> None:
    """One run, in a process of its own; what it took is printed."""
    found = RUNNERS[name][0](job, Path(job["out"]))
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    found.setdefault("cpu", sum(one.ru_utime + one.ru_stime for one in used))
    if name == "datatrove":  # whose processes are started by one that is not waited for
        found["cpu"] = math.nan
    found["memory"] = max(peak_memory(), used[1].ru_maxrss * 1024 if name == "HF" else 0)
    print(json.dumps(found))


def peak_memory() -> int:
    """Bytes of this process. What getrusage says begins with what the one had that started it."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def measured(name: str, job: dict[str, Any]) -> dict[str, Any]:
    """Seconds, processor's time, memory and the hash of all ids of one run. Its output is removed."""
    with tempfile.TemporaryDirectory(dir=Path(job["corpus"][0]).parent.parent) as folder:
        out = Path(folder) / "out"
        job = {**job, "out": str(out)}
        start = time.perf_counter()
        ran = subprocess.run(
            [sys.executable, __file__, "--child", name, json.dumps(job)], capture_output=True, text=True
        )
        took = time.perf_counter() - start
        if ran.returncode:
            raise RuntimeError(f"{name}: {ran.stderr[-2000:]}")
        digest, tokens = hashlib.sha256(), 0
        for ids in RUNNERS[name][1](out):
            digest.update(np.ascontiguousarray(ids))
            tokens += len(ids)
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return {**found, "seconds": took, "tokens": tokens, "ids": digest.hexdigest()}


def prepared(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """The corpus and the vocabulary, as all of them read it."""
    case = cases.case(options.vocab, folder)
    paths = make_corpus(folder, int(options.megabytes * 1e6), options.threads)
    path = Path(case.tokenizer_json)
    document = json.loads(path.read_text())
    eos = case.tokenizer.eos_id
    flags = {"special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    document["added_tokens"].append({"id": eos, "content": EOS_TEXT, **flags})
    path.write_text(json.dumps(document))
    return {
        "gguf": str(case.path),
        "tokenizer_json": str(path),
        "eos": eos,
        "threads": options.threads,
        "corpus": list(map(str, paths)),
        "bytes": sum(path.stat().st_size for path in paths),
    }


def parse() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=1000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--vocab", default="llama-3")
    parser.add_argument(
        "--rounds", type=int, default=3, help="of ggufbpe, ray, gigatoken; the others have one"
    )
    parser.add_argument("--only", nargs="+", choices=RUNNERS, default=list(RUNNERS))
    parser.add_argument("--json", metavar="FILE", help="write all figures there, too")
    return parser.parse_args()


def main() -> int:
    """Measure and print; status 1 where ids differ."""
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], json.loads(sys.argv[3]))
        return 0
    options = parse()
    with tempfile.TemporaryDirectory() as folder:
        job = prepared(options, Path(folder))
        runs: dict[str, list[dict[str, Any]]] = {name: [] for name in options.only}
        for number in range(options.rounds):
            for name in options.only:
                if number == 0 or name in ("ggufbpe", "ray", "gigatoken"):
                    runs[name].append(measured(name, job))
                    print(name, runs[name][-1], file=sys.stderr, flush=True)
    size = job["bytes"] / 1e6
    print(f"{size:.0f} MB, {options.threads} threads, {runs[options.only[0]][0]['tokens']} tokens")
    print(f"{'':10} {'MB/s':>7} {'MB a second of processor':>25} {'peak memory':>12}  ids")
    first = runs[options.only[0]][0]["ids"]
    for name, every in runs.items():
        wall, cpu = (statistics.median(run[key] for run in every) for key in ("seconds", "cpu"))
        same = "equal" if all(run["ids"] == first for run in every) else "DIFFER"
        memory = max(run["memory"] for run in every) / 1e6
        print(f"{name:10} {size / wall:7.1f} {size / cpu:25.1f} {memory:9.0f} MB  {same}")
    for run in runs.get("ray", []):
        print(f"ray: started in {run['started']:.1f} s, then {size / run['worked']:.1f} MB/s")
    for run in runs.get("ggufbpe", []):
        print(f"in the engine: {run['in_engine'] / run['cpu']:.0%} of the processor's time")
    if options.json:
        Path(options.json).write_text(json.dumps({"job": job, "runs": runs}, indent=1) + "\n")
    return 0 if all(run["ids"] == first for every in runs.values() for run in every) else 1


if __name__ == "__main__":
    sys.exit(main())
