"""The engine beside others in one process: a thread that runs Python code, and eight threads that encode.

    python benchmarks/guest.py [--vocab NAME] [--rounds 15]

A busy Python thread gives up the interpreter's lock after 5 ms, so asking for it costs that much each time.
The first table has the time of a call beside such a thread over its time alone: medians of alternating calls.
The second has the throughput of eight Python threads over that of one, on one tokenizer and on eight, and how many
calls found a lock of the engine taken.

But: processors bound both tables. The busy thread needs one for itself, and eight threads share those of the machine.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import machine
from cases import NAMES, case
from texts import machine_texts
from timing import seconds

from ggufbpe import Tokenizer
from ggufbpe.native import native

SIZES = (50, 2_000, 20_000, 200_000, 2_000_000, 8_000_000)  # bytes
THREADS = 8


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--vocab", choices=NAMES, default="gpt-2", help="default: gpt-2")
    parser.add_argument("--rounds", type=int, default=15, help="calls of each kind; default: 15")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = Tokenizer.from_gguf(case(options.vocab, Path(folder)).path, engine="native")
    text = machine_texts(max(SIZES))[0].text.encode()
    facts = machine.machine()
    print(f"{facts['cpu']}, {facts['cores']} cores, Python {facts['python']}, {options.vocab}\n")
    beside_a_busy_thread(tokenizer, text, options.rounds)
    throughput_of_threads(tokenizer, text, options.rounds)


def beside_a_busy_thread(tokenizer: Tokenizer, text: bytes, rounds: int) -> None:
    print(f"{'bytes':>10}{'method':>24}{'alone, ms':>12}{'beside, ms':>12}{'ratio':>8}")
    for size in SIZES:
        part = text[:size]
        documents = [part[start : start + 2000] for start in range(0, len(part), 2000)]
        calls: list[tuple[Callable[..., Any], Any]] = [
            *((method, part) for method in (tokenizer.count, tokenizer.encode_to_numpy, tokenizer.encode)),
            *((method, documents) for method in (tokenizer.encode_batch_to_numpy, tokenizer.encode_batch)),
        ]
        for method, argument in calls:
            call = partial(method, argument)
            call()
            alone: list[float] = []
            beside: list[float] = []
            for _ in range(rounds):
                alone.append(seconds(call))
                with busy_thread():
                    call()
                    beside += [seconds(call) for _ in range(3)]
            one, other = statistics.median(alone), statistics.median(beside)
            row = f"{size:10}{method.__name__:>24}{one * 1e3:12.3f}{other * 1e3:12.3f}{other / one:8.2f}"
            print(row, flush=True)


def throughput_of_threads(tokenizer: Tokenizer, text: bytes, rounds: int) -> None:
    print(
        f"\n{'texts of':>10}{'tokenizers':>12}{'one, MB/s':>12}{'eight':>12}{'ratio':>8}{'waits a call':>14}"
    )
    for size in (200, 20_000, 1_000_000):
        count = min(2000, len(text) // size)
        texts = [text[size * i : size * (i + 1)] for i in range(count)]
        for several in (1, THREADS):
            tokenizers = [tokenizer, *(Tokenizer(tokenizer.vocabulary) for _ in range(several - 1))]
            for one in tokenizers:
                one.encode_batch_to_numpy(texts)
            alone: list[float] = []
            together: list[float] = []
            waits = 0
            for _ in range(max(3, rounds // 3)):
                alone.append(seconds(partial(encode_all, tokenizer, texts)))
                before = native.lock_waits()  # type: ignore[union-attr]
                together.append(seconds(partial(encode_on_threads, tokenizers, texts)))
                waits += native.lock_waits() - before  # type: ignore[union-attr]
            speed = size * count / statistics.median(alone) / 1e6
            speed_together = THREADS * size * count / statistics.median(together) / 1e6
            each = waits / len(together) / THREADS / count
            row = f"{size:10}{several:12}{speed:12.0f}{speed_together:12.0f}{speed_together / speed:8.2f}{each:14.5f}"
            print(row, flush=True)


def encode_all(tokenizer: Tokenizer, texts: list[bytes]) -> None:
    for text in texts:
        tokenizer.encode_to_numpy(text)


def encode_on_threads(tokenizers: list[Tokenizer], texts: list[bytes]) -> None:
    with ThreadPoolExecutor(THREADS) as pool:
        jobs = [pool.submit(encode_all, tokenizers[i % len(tokenizers)], texts) for i in range(THREADS)]
        for job in jobs:
            job.result()


@contextmanager
def busy_thread() -> Iterator[None]:
    """A thread that runs Python code all the time."""
    ended = threading.Event()

    def run() -> None:
        while not ended.is_set():
            sum(range(50))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


if __name__ == "__main__":
    main()
