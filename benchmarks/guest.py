"""The engine beside others in one process: a thread that runs Python code, and eight threads that encode.

    python benchmarks/guest.py [--vocab NAME] [--rounds 15]

A busy Python thread gives the interpreter's lock up only after 5 ms, so each time that a call asks for it costs as much.
The first table has how long a call takes beside such a thread, over how long it takes alone: medians of calls in turn. The
second has the throughput of eight Python threads over that of one, on one tokenizer and on eight, and of how many calls
one found a lock of the engine taken.

But: processors bound both tables. The busy thread needs one for itself, and eight threads share what there are.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from cases import NAMES, cases
from machine import machine
from texts import machine_texts

from ggufbpe import Tokenizer
from ggufbpe.kernel import native

SIZES = (50, 2_000, 20_000, 200_000, 2_000_000, 8_000_000)  # bytes
THREADS = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocab", choices=sorted(CASES), default="gpt-2", help="default: gpt-2")
    parser.add_argument("--rounds", type=int, default=15, help="calls of each kind; default: 15")
    options = parser.parse_args()
    tokenizer = our_tokenizer(CASES[options.vocab])
    text = next(text for text in machine_texts(max(SIZES)) if text.content).content.encode()
    print(f"{describe()}, {options.vocab}, Python {sys.version.split()[0]}\n")
    beside_a_busy_thread(tokenizer, text, options.rounds)
    throughput_of_threads(tokenizer, text, options.rounds)


def beside_a_busy_thread(tokenizer: Tokenizer, text: bytes, rounds: int) -> None:
    print(f"{'bytes':>10}{'method':>24}{'alone, ms':>12}{'beside, ms':>12}{'ratio':>8}")
    for size in SIZES:
        part = text[:size]
        documents = [part[start : start + 2000] for start in range(0, len(part), 2000)]
        calls: dict[str, Callable[[], Any]] = {
            "count": lambda part=part: tokenizer.count(part),
            "encode_to_numpy": lambda part=part: tokenizer.encode_to_numpy(part),
            "encode": lambda part=part: tokenizer.encode(part),
            "encode_batch_to_numpy": lambda documents=documents: tokenizer.encode_batch_to_numpy(documents),
            "encode_batch": lambda documents=documents: tokenizer.encode_batch(documents),
        }
        for name, call in calls.items():
            call()
            alone: list[float] = []
            beside: list[float] = []
            for _ in range(rounds):
                alone.append(seconds(call))
                with busy_thread():
                    call()
                    beside += [seconds(call) for _ in range(3)]
            middle = statistics.median(alone), statistics.median(beside)
            row = f"{size:10}{name:>24}{middle[0] * 1e3:12.3f}{middle[1] * 1e3:12.3f}{middle[1] / middle[0]:8.2f}"
            print(row, flush=True)


def throughput_of_threads(tokenizer: Tokenizer, text: bytes, rounds: int) -> None:
    print(f"\n{'texts of':>10}{'tokenizers':>12}{'one thread':>12}{'eight':>12}{'ratio':>8}{'waits a call':>14}")
    for size in (200, 20_000, 1_000_000):
        count = min(2000, max(8, len(text) // size))
        texts = [text[size * i : size * (i + 1)] for i in range(count)]
        for several in (1, THREADS):
            tokenizers = [tokenizer, *(Tokenizer(tokenizer.vocabulary) for _ in range(several - 1))]
            for one in tokenizers:
                one.encode_batch_to_numpy(texts)
            single, together, waits = [], [], 0
            for _ in range(max(3, rounds // 3)):
                single.append(seconds(lambda: [tokenizer.encode_to_numpy(part) for part in texts]))
                before = native.lock_waits()  # type: ignore[union-attr]
                together.append(seconds(lambda: encode_on_threads(tokenizers, texts)))
                waits += native.lock_waits() - before  # type: ignore[union-attr]
            speeds = [size * count / statistics.median(times) / 1e6 for times in (single, together)]
            speeds[1] *= THREADS
            each = waits / len(together) / THREADS / count
            print(f"{size:10}{several:12}{speeds[0]:12.0f}{speeds[1]:12.0f}{speeds[1] / speeds[0]:8.2f}{each:14.5f}")


def encode_on_threads(tokenizers: list[Tokenizer], texts: list[bytes]) -> None:
    def work(number: int) -> None:
        own = tokenizers[number % len(tokenizers)]
        for text in texts:
            own.encode_to_numpy(text)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))


@contextmanager
def busy_thread() -> Iterator[None]:
    ended = threading.Event()
    is_set = ended.is_set

    def run() -> None:
        while not is_set():
            sum(range(50))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def seconds(call: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
