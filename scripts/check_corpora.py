"""What the tests of corpora have no room for: a hundred kills, a disk that is full, and the trainers' own readers.

    python scripts/check_corpora.py kills [--times 100] [--seed 0] [--ray]
    python scripts/check_corpora.py full-disk [--ray]   # as root, on Linux: it mounts small file systems
    python scripts/check_corpora.py readers        # with torch, megatron-core, datatrove and datasets installed

Exit code 1 with the first difference from what an undisturbed run wrote.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ggufbpe import Tokenizer, encode_corpus
from ggufbpe.data.corpora.shard_formats import FORMS

GPT2 = Path(__file__).resolve().parent.parent / "ggufbpe" / "models" / "gpt2.gguf"
WORDS = ("low", "lower", "newest", "naïve", "者", "12345", "it's", "<|endoftext|>", "\t", "\n")
LONGEST = 60  # seconds that a run may take on a busy machine
RAY = ["--ray", "local", "--workers", "2"]
Files = dict[str, bytes]


class WrongError(Exception):
    """Something is not as it should be."""


def require(is_right: bool, what: str) -> None:
    """`WrongError` unless it is."""
    if not is_right:
        raise WrongError(what)


def make_corpus(folder: Path) -> list[str]:
    """Files of several kinds with texts of all lengths, 4 MB in all; the texts of the JSON lines."""
    rng = random.Random(1)

    def texts(count: int, most: int) -> list[str]:
        return [" ".join(rng.choices(WORDS, k=int(most ** rng.random()) - 1)) for _ in range(count)]

    def lines(some: list[str]) -> bytes:
        return "".join(json.dumps({"text": text}) + "\n" for text in some).encode()

    (folder / "d").mkdir(parents=True)
    found = texts(2000, 2000)
    (folder / "a.jsonl").write_bytes(lines(found))
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(lines(texts(2000, 500)), mtime=0))
    (folder / "c.txt").write_text("".join(texts(800, 2000)), encoding="utf-8")
    for number, text in enumerate(texts(50, 500)):
        (folder / "d" / f"{number}.txt").write_text(text, encoding="utf-8")
    return found


def files_in(folder: Path) -> Files:
    """The files that are there under their own names, with what is in them."""
    return {
        path.name: path.read_bytes() for path in sorted(folder.iterdir()) if not path.name.startswith(".")
    }


def require_whole(out: Path, undisturbed: Files) -> None:
    """All shards that are there have the bytes of an undisturbed run."""
    if out.is_dir():
        for name, data in files_in(out).items():
            if name.startswith("part-"):
                require(data == undisturbed.get(name), f"{out / name}: not the bytes of an undisturbed run")


def command(corpus: Path, out: Path, options: Sequence[str]) -> list[str]:
    """A run of the command, which goes on where another one was stopped."""
    program = [sys.executable, "-m", "ggufbpe", "encode", "-m", str(GPT2), "--shard-size", "100K", "--resume"]
    return [*program, str(corpus), "-o", str(out), *options]


def settings() -> Iterator[list[str]]:
    """The options of runs: each form, and rows of one length."""
    for form in FORMS:
        yield ["--format", form]
    yield ["--format", "npy", "--pack", "100"]


# ---- kills ----------------------------------------------------------------------------------------------


def check_kills(folder: Path, times: int, seed: int, ray: Sequence[str]) -> str:
    """Kill runs at random moments; each is resumed by the next one, until it comes to its end.

    With `ray`, every other run is one on Ray, and killed from when it writes.
    """
    rng, every = random.Random(seed), list(settings())
    make_corpus(folder / "corpus")
    done = ends = whole = 0
    for number in range(len(every)):
        options, out = every[number], folder / "out"
        first = command(folder / "corpus", folder / "first", options)
        start = time.monotonic()
        subprocess.run(first, check=True, capture_output=True)
        took = time.monotonic() - start
        undisturbed = files_in(folder / "first")
        wanted = times * (number + 1) // len(every)
        while done < wanted:
            more = ray if done % 2 == 0 else []
            run = command(folder / "corpus", out, [*options, *more])
            process = subprocess.Popen(run, stdout=subprocess.DEVNULL)
            if more:
                wait_for_segments(process, out)
            time.sleep(rng.uniform(0 if more else 0.2, 1) * took)
            process.kill()
            done += process.wait() == -9
            require_whole(out, undisturbed)
            whole += len(list(out.glob("part-*"))) if out.is_dir() else 0
            if (out / "manifest.json").exists() or done == wanted:
                subprocess.run(command(folder / "corpus", out, options), check=True, capture_output=True)
                require(files_in(out) == undisturbed, f"{options}: resumed, it has other bytes")
                ends += 1
                shutil.rmtree(out)
        shutil.rmtree(folder / "first")
    return f"{done} runs killed; {whole} files were there then, all whole; {ends} folders came out the same"


def wait_for_segments(process: subprocess.Popen[bytes], out: Path) -> None:
    """Until a run on Ray encodes, or ends: Ray takes seconds to start, in which there is nothing to kill."""
    old = set(out.glob(".segments.partial/*"))  # of a run that was killed
    while process.poll() is None and old.issuperset(out.glob(".segments.partial/*")):
        time.sleep(0.01)


# ---- a full disk ----------------------------------------------------------------------------------------


def check_full_disk(folder: Path, ray: Sequence[str]) -> str:
    """Runs on file systems of several sizes, each of which is full at another moment; then they get room."""
    make_corpus(folder / "corpus")
    disk, count = folder / "disk", 0
    disk.mkdir()
    for options in settings():
        encoded = folder / "first"
        subprocess.run(command(folder / "corpus", encoded, options), check=True, capture_output=True)
        undisturbed = files_in(encoded)
        shutil.rmtree(encoded)
        page = os.sysconf("SC_PAGE_SIZE")
        pages = sum(-(-len(data) // page) for data in undisturbed.values())
        for share in (0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99):
            size = max(round(share * pages), 2) * page
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(disk)], check=True)
            try:
                run = command(folder / "corpus", disk / "out", [*options, *ray])
                ran = subprocess.run(run, capture_output=True, text=True, timeout=LONGEST)
                require(
                    ran.returncode == 2, f"{options}, {size} bytes: exit code {ran.returncode}: {ran.stderr}"
                )
                require("No space left" in ran.stderr, f"{options}: {ran.stderr}")
                require_whole(disk / "out", undisturbed)
                subprocess.run(["mount", "-o", "remount,size=1g", str(disk)], check=True)
                subprocess.run(run, check=True, capture_output=True)
                require(files_in(disk / "out") == undisturbed, f"{options}: resumed, it has other bytes")
                count += 1
            finally:
                subprocess.run(["umount", str(disk)], check=True)
    return f"{count} disks were full; all shards on them were whole, and all folders came out the same"


# ---- readers --------------------------------------------------------------------------------------------


def check_readers(folder: Path) -> str:
    """Documents as the libraries of trainers read them, in the processes of torch's `DataLoader`, too."""
    texts = make_corpus(folder / "corpus")
    tok = Tokenizer.from_gguf(GPT2)
    expected = [[*ids, tok.eos_id] for ids in tok.encode_batch(texts, add_special=False, parse_special=False)]
    seen = []
    for read in (read_megatron, read_nanotron, read_npy, read_parquet, read_arrow):
        form, out = read.__name__.removeprefix("read_"), folder / read.__name__
        pack = 64 if form == "npy" else None
        corpus = encode_corpus(
            folder / "corpus" / "a.jsonl", tok, out, format=form, pack=pack, shard_size=200_000
        )
        stems = [str(out / shard.name) for shard in corpus.shards]
        require(len(stems) > 1, "more than one shard")
        rows = expected
        if form in ("npy", "nanotron"):  # which are read in windows, those of nanotron's in each shard alone
            sizes = [shard.tokens for shard in corpus.shards]
            rows = list(windows([token for row in expected for token in row], sizes, 64))
        for what, found in read(out, stems):
            require(found == rows, f"{form}: {what} reads other ids")
            seen.append(f"{form}: {what}")
    return "\n".join(seen)


def windows(ids: list[int], sizes: Sequence[int], length: int) -> Iterator[list[int]]:
    """Rows of one length in each part of so many ids."""
    begin = 0
    for size in sizes:
        for at in range(begin, begin + size - length + 1, length):
            yield ids[at : at + length]
        begin += size


def loaded(dataset: Any) -> list[list[int]]:
    """The rows of a dataset as two workers of torch's `DataLoader` give them."""
    from torch.utils.data import DataLoader

    rows = DataLoader(dataset, batch_size=None, num_workers=2)
    return [(row["input_ids"] if isinstance(row, dict) else row).tolist() for row in rows]


Found = Iterator[tuple[str, list[list[int]]]]


def read_megatron(out: Path, stems: list[str]) -> Found:
    """Megatron's `IndexedDataset`, by a memory map and by reading."""
    from megatron.core.datasets.indexed_dataset import IndexedDataset

    for mmap in (True, False):
        sets = [IndexedDataset(stem, mmap=mmap) for stem in stems]
        rows = [one[number].tolist() for one in sets for number in range(len(one))]
        yield f"IndexedDataset, mmap={mmap}", rows
    yield "IndexedDataset in a DataLoader", [row for stem in stems for row in loaded(IndexedDataset(stem))]


def read_nanotron(out: Path, stems: list[str]) -> Found:
    """datatrove's dataset as nanotron's `Nanoset` opens it, but in order."""
    from datatrove.utils.dataset import DatatroveFolderDataset

    def dataset() -> Any:
        return DatatroveFolderDataset(
            str(out),
            filename_pattern="*.ds",
            seq_len=63,  # and one, for what comes next
            recursive=False,
            token_size=2,
            shuffle=False,
        )

    one = dataset()
    yield "DatatroveFolderDataset", [one[number]["input_ids"].tolist() for number in range(len(one))]
    yield "DatatroveFolderDataset in a DataLoader", loaded(dataset())  # its open file would be shared


def read_npy(out: Path, stems: list[str]) -> Found:
    """Arrays of numpy's in memory maps."""
    import numpy as np
    import torch
    from torch.utils.data import ConcatDataset

    arrays = [np.load(f"{stem}.npy", mmap_mode="c") for stem in stems]
    rows = [row for array in arrays for row in array.tolist()]
    # The rows of each shard lie in it whole, so their windows are those of all ids.
    yield "numpy.load", rows
    yield (
        "numpy.load in a DataLoader",
        loaded(ConcatDataset([[torch.from_numpy(row) for row in a] for a in arrays])),
    )


def read_parquet(out: Path, stems: list[str]) -> Found:
    """HF `datasets`, and torch's workers on it."""
    yield from read_by_datasets("parquet", out)


def read_arrow(out: Path, stems: list[str]) -> Found:
    """The same for arrow."""
    yield from read_by_datasets("arrow", out)


def read_by_datasets(form: str, out: Path) -> Found:
    """HF `datasets` by the name of a form."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    import datasets

    found = datasets.load_dataset(
        form, data_files=str(out / f"*.{form}"), split="train", cache_dir=str(out / "cache")
    )
    yield "datasets", [row["input_ids"] for row in found]
    yield "datasets in a DataLoader", loaded(found.with_format("torch"))


def main() -> int:
    """Run one of the checks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=("kills", "full-disk", "readers"))
    parser.add_argument("--times", type=int, default=100, help="how many runs are killed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ray", action="store_true", help="runs on a cluster of this machine, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            ray = RAY if options.ray else []
            if options.what == "kills":
                print(check_kills(folder, options.times, options.seed, ray))
            elif options.what == "full-disk":
                print(check_full_disk(folder, ray))
            else:
                print(check_readers(folder))
        except WrongError as error:
            print(error)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
