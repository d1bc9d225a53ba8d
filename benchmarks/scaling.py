"""What a second thread gives: on many texts at once, and on one very long one.

    our tokenizer x texts -> [this file] -> figures and rows

One and two threads are measured in turn, now the one first and now the other, each in a fresh tokenizer (first pass)
and then again (later passes). What two threads can give at most is what the machine has: two virtual processors may be
the two halves of one core at one moment and two cores at the next, and others use them as well. So there are three
times as many rounds as elsewhere, and beside the long text stands what the machine gave in the same rounds: two
tokenizers that share nothing, each with one half of the text at the same time.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import goals
import numpy as np
from cases import Case
from peers import OURS, our_tokenizer, takes_threads
from texts import Text
from timing import median_ratio, seconds

DOCUMENT = 2000  # characters of a text of the batch
THREADS = (1, 2)
APART = 0  # two tokenizers that share nothing
LATER_PASSES = 3
MORE_ROUNDS = 3
PLAIN = {"add_special": False, "parse_special": False}


def scaling(
    case: Case, text: Text, long: Text, engine: str, rounds: int, left_out: dict[str, str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A batch made of `text`, and the one text `long`: figures and rows."""
    tokenizer = our_tokenizer(case, engine)
    figures, rows = [], []
    documents = split_into_documents(text.text)
    tasks: list[tuple[str, str, str, Text, object]] = [
        ("encode_batch", goals.BATCH_FIRST, goals.BATCH_LATER, text, documents),
        ("encode_to_numpy", goals.LONG_FIRST, goals.LONG_LATER, long, long.text),
    ]
    for method, first, later, size, argument in tasks:
        if not takes_threads(getattr(tokenizer, method)):
            left_out[f"{first.partition(',')[0]} on two threads"] = f"{OURS}'s {method} has no `threads` here"
            continue
        apart = _halves(long.text) if argument is long.text else None
        times = _measure(lambda: our_tokenizer(case, engine), method, argument, MORE_ROUNDS * rounds, apart)
        for what, key in ((first, "first"), (later, "later")):
            one, two = (times[key, threads] for threads in THREADS)
            note = ""
            if apart:
                note = f"two tokenizers, half each: {median_ratio(one, times[key, APART]):.2f} x"
            speeds = [size.size / 1e6 / statistics.median(values) for values in (two, one)]
            ratio = median_ratio(one, two)
            rows.append(
                goals.row(case.name, text.name, what, "one thread", speeds[0], speeds[1], "MB/s", ratio, note)
            )
            figures += [
                {
                    "vocabulary": case.name,
                    "text": text.name,
                    "bytes": size.size,
                    "what": what,
                    "threads": threads,
                    "seconds": values,
                }
                for threads, values in zip(THREADS, (one, two))
            ]
            if apart:
                figures.append({**figures[-1], "threads": "two tokenizers", "seconds": times[key, APART]})
    return figures, rows


def split_into_documents(text: str) -> list[str]:
    """The text in pieces of about `DOCUMENT` characters that end at the end of a line."""
    documents, piece, length = [], [], 0
    for line in text.splitlines(keepends=True):
        piece.append(line)
        length += len(line)
        if length >= DOCUMENT:
            documents.append("".join(piece))
            piece, length = [], 0
    return [*documents, "".join(piece)] if piece else documents


def _halves(text: str) -> tuple[str, str]:
    """The text in two, at the end of a line."""
    middle = text.find("\n", len(text) // 2) + 1
    return text[:middle], text[middle:]


def _measure(
    fresh: Callable[[], Any], method: str, argument: object, rounds: int, apart: tuple[str, str] | None
) -> dict[tuple[str, int], list[float]]:
    """Seconds of first and later passes by the number of threads. The ids must be the same.

    With `apart`, also of two tokenizers that encode these texts at the same time: `APART`.
    """
    kinds = (*THREADS, APART) if apart else THREADS
    times: dict[tuple[str, int], list[float]] = {(key, n): [] for key in ("first", "later") for n in kinds}
    for number in range(rounds):
        results: list[Any] = []
        for threads in kinds if number % 2 == 0 else reversed(kinds):
            if threads == APART:
                encode = partial(
                    _at_once, [partial(_warm(fresh).encode_to_numpy, half, **PLAIN) for half in apart or ()]
                )
            else:
                encode = partial(getattr(_warm(fresh), method), argument, threads=threads, **PLAIN)
            times["first", threads].append(seconds(encode))
            times["later", threads].append(statistics.median(seconds(encode) for _ in range(LATER_PASSES)))
            if number == 0 and threads != APART:
                results.append(encode())
        if number == 0 and not _equal(*results):
            raise RuntimeError(f"{method} gives other ids on two threads")
    return times


def _warm(fresh: Callable[[], Any]) -> Any:
    tokenizer = fresh()
    tokenizer.encode("Hello world")
    return tokenizer


def _at_once(actions: list[Callable[[], Any]]) -> list[Any]:
    with ThreadPoolExecutor(len(actions)) as threads:
        return list(threads.map(lambda action: action(), actions))


def _equal(one: Any, two: Any) -> bool:
    return len(one) == len(two) and all(np.array_equal(a, b) for a, b in zip(one, two))
