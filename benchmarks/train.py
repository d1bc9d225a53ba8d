"""Training measured beside HF tokenizers' BpeTrainer and gigabpe, in one run, with the merges checked equal.

    python benchmarks/train.py [--vocab-size 32000] [--megabytes 8 40] [--rounds 3] [--one-thread]
                                [--gigabpe] [--json results.json]

Both learn from the same file with GPT-2's splitting and HF's order of ties, each in its own process, so that the peak
of memory is its own as well. HF gets the text in pieces cut between words, since it uses one thread per piece; both use
all threads unless --one-thread is given. Timing runs from opening the file to the last merge, without imports;
processor time, of all threads, says more on a machine that is shared.

gigabpe, with --gigabpe (`pip install gigabpe`), reads line by line: the text then has no empty lines and none that
begin or end with white space, so that no word crosses from one to the next.

The text is English prose (texts.py), then the code and languages that the machine has.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import texts
from machine import machine, versions
from timing import median_ratio, say

OURS, REFERENCE, HF, GIGABPE = "ggufbpe", "ggufbpe, reference engine", "HF tokenizers", "gigabpe"
PIECE = 1 << 17  # characters


def main() -> int:
    """Measure and print."""
    options = parse()
    if options.megabytes_to:
        Path(options.megabytes_to).write_bytes(prose(round(options.megabytes[0] * 1e6), options.gigabpe))
        return 0
    if options.child:
        print(json.dumps(measure_here(options.child, options.file, options.vocab_size, options.threads)))
        return 0
    engines = [OURS, HF] + [GIGABPE] * options.gigabpe + [REFERENCE] * options.reference
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for size in options.megabytes:
            path = Path(folder, "text")
            # Written by a child: a child's peak of memory starts at its parent's.
            command = [sys.executable, __file__, "--megabytes", str(size), "--megabytes-to", str(path)]
            command += ["--gigabpe"] * options.gigabpe
            subprocess.run(command, check=True)
            rounds: dict[str, list[dict[str, Any]]] = {engine: [] for engine in engines}
            for number in range(options.rounds):
                for engine in engines:
                    say(f"{size:g} MB, round {number + 1} of {options.rounds}: {engine}")
                    rounds[engine].append(measure(engine, path, options))
            rows.append({"bytes": path.stat().st_size, "rounds": rounds})
    results = {
        "machine": machine(),
        "versions": versions(),
        "vocab_size": options.vocab_size,
        "threads": 1 if options.one_thread else None,
        "rows": rows,
    }
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print("\n".join(table(results)))
    return 0 if all(map(is_equal, rows)) else 1


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--vocab-size", type=int, default=32_000)
    parser.add_argument("--megabytes", type=float, nargs="+", default=[8.0, 40.0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one-thread", action="store_true", help="one thread for each")
    parser.add_argument("--reference", action="store_true", help="our reference engine as well")
    parser.add_argument("--gigabpe", action="store_true", help="gigabpe as well")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--megabytes-to", help=argparse.SUPPRESS)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--file", help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def prose(size: int, in_lines: bool) -> bytes:
    """English prose of `size` bytes, filled up with code and other languages; `in_lines` as gigabpe needs it."""
    text = texts.joined(chain(texts.dictionary(), texts.docstrings(), texts.sources(), texts.manuals()), size)
    if in_lines:
        text = "\n".join(filter(None, map(str.strip, text.split("\n")))) + "\n"
    return text.encode()


# ---- one measurement ------------------------------------------------------------------------------------


def measure(engine: str, path: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Seconds, peak memory and merges of one engine, in its own process."""
    command = [sys.executable, __file__, "--child", engine, "--file", str(path)]
    command += ["--vocab-size", str(options.vocab_size)]
    environment = dict(os.environ)
    environment["GGUFBPE_ENGINE"] = "reference" if engine == REFERENCE else "auto"
    if options.one_thread:
        command += ["--threads", "1"]
        environment["RAYON_NUM_THREADS"] = "1"
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def measure_here(engine: str, file: str, vocab_size: int, threads: int | None) -> dict[str, Any]:
    learn = {HF: by_hf, GIGABPE: by_gigabpe}.get(engine, by_us)
    before = time.process_time()
    seconds, merges = learn(Path(file), vocab_size, threads)
    processor = time.process_time() - before
    lines = "\n".join(f"{left} {right}" for left, right in merges)
    return {
        "seconds": seconds,
        "processor": processor,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        / (1e6 if sys.platform == "darwin" else 1e3),
        "merges": len(merges),
        "sha256": hashlib.sha256(lines.encode()).hexdigest(),
    }


def by_us(path: Path, vocab_size: int, threads: int | None) -> tuple[float, list[tuple[str, str]]]:
    from ggufbpe import train

    start = time.perf_counter()
    found = train([path], vocab_size=vocab_size, pre="gpt-2", ties="lowest-ids", threads=threads)
    return time.perf_counter() - start, found.merges


def by_hf(path: Path, vocab_size: int, threads: int | None) -> tuple[float, list[tuple[str, str]]]:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, show_progress=False, initial_alphabet=alphabet)
    start = time.perf_counter()
    tokenizer.train_from_iterator(pieces(path), trainer)
    elapsed = time.perf_counter() - start
    return elapsed, [tuple(merge) for merge in json.loads(tokenizer.to_str())["model"]["merges"]]


def by_gigabpe(path: Path, vocab_size: int, threads: int | None) -> tuple[float, list[tuple[str, str]]]:
    import gigabpe

    start = time.perf_counter()
    _, merges = gigabpe.train_bpe(
        [str(path)], vocab_size=vocab_size, pretokenizer="bytelevel", threads=threads or os.cpu_count()
    )
    elapsed = time.perf_counter() - start
    return elapsed, merges[: vocab_size - 256]  # it counts only the bytes that occur


def pieces(path: Path) -> Iterator[str]:
    """The text, cut after lines that end a word."""
    text = path.read_bytes().decode()
    start = 0
    ends = re.compile(r"[!-~]\n(?=[A-Za-z])")
    while match := ends.search(text, start + PIECE):
        yield text[start : match.end()]
        start = match.end()
    yield text[start:]


# ---- the table ------------------------------------------------------------------------------------------


def is_equal(row: dict[str, Any]) -> bool:
    """Whether all rounds of all engines learned the same merges."""
    return len({each["sha256"] for rounds in row["rounds"].values() for each in rounds}) == 1


def table(results: dict[str, Any]) -> Iterator[str]:
    facts = results["machine"]
    named = ", ".join(f"{name} {results['versions'].get(name)}" for name in ("ggufbpe", "tokenizers"))
    threads = "one thread" if results["threads"] == 1 else "all threads"
    yield f"Machine: {facts['cpu']}, {facts['cores']} cores; Python {facts['python']}; {named}; {threads}."
    yield f"Medians of {len(results['rows'][0]['rounds'][OURS])} rounds; {results['vocab_size']} tokens.\n"
    yield "| text, MB | engine | seconds | of HF's | processor, s | peak, MB | merges | the same |"
    yield "| --- |" + " --- |" * 7
    for row in results["rows"]:
        hf = [each["seconds"] for each in row["rounds"][HF]]
        same = "yes" if is_equal(row) else "NO"
        for engine, rounds in row["rounds"].items():
            seconds = [each["seconds"] for each in rounds]
            processor = statistics.median(each["processor"] for each in rounds)
            peak = statistics.median(each["peak_mb"] for each in rounds)
            yield (
                f"| {row['bytes'] / 1e6:.1f} | {engine} | {statistics.median(seconds):.2f} | "
                f"{median_ratio(seconds, hf):.2f} | {processor:.2f} | {peak:.0f} | {rounds[0]['merges']} | {same} |"
            )


if __name__ == "__main__":
    sys.exit(main())
