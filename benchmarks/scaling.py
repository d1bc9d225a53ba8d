"""What a second thread gives: on many texts at once, and on one very long one.

    our tokenizer x texts -> [this file] -> figures and rows

One and two threads are measured in turn, now the one first and now the other, each in a fresh tokenizer (first pass)
and then again (later passes). What two threads can give at most is what the machine has: on two cores that others use
as well, it is less than twice, and from round to round it differs more than anything else that is measured here. So
there are three times as many rounds.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
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
        times = _measure(lambda: our_tokenizer(case, engine), method, argument, MORE_ROUNDS * rounds)
        for what, key in ((first, "first"), (later, "later")):
            one, two = (times[key, threads] for threads in THREADS)
            speeds = [size.size / 1e6 / statistics.median(values) for values in (two, one)]
            ratio = median_ratio(one, two)
            rows.append(
                goals.row(case.name, text.name, what, "one thread", speeds[0], speeds[1], "MB/s", ratio)
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


def _measure(
    fresh: Callable[[], Any], method: str, argument: object, rounds: int
) -> dict[tuple[str, int], list[float]]:
    """Seconds of first and later passes by the number of threads. The ids must be the same."""
    times: dict[tuple[str, int], list[float]] = {(key, n): [] for key in ("first", "later") for n in THREADS}
    for number in range(rounds):
        results: list[Any] = []
        for threads in THREADS if number % 2 == 0 else reversed(THREADS):
            tokenizer = fresh()
            tokenizer.encode("Hello world")
            encode = partial(getattr(tokenizer, method), argument, threads=threads, **PLAIN)
            times["first", threads].append(seconds(encode))
            times["later", threads].append(statistics.median(seconds(encode) for _ in range(LATER_PASSES)))
            if number == 0:
                results.append(encode())
        if number == 0 and not _equal(*results):
            raise RuntimeError(f"{method} gives other ids on two threads")
    return times


def _equal(one: Any, two: Any) -> bool:
    return len(one) == len(two) and all(np.array_equal(a, b) for a, b in zip(one, two))
