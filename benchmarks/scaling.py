"""What a second thread gains: on many texts at once, and on one very long one.

    our tokenizer x texts -> [this file] -> figures and rows

One and two threads are measured in turn, alternating which goes first, each in a fresh tokenizer (first pass) and then
again (later passes). The machine limits what two threads can gain: two virtual processors may be the two halves of one
core at one moment and two cores at the next, and others use them as well. So there are many rounds, each of which goes
through all texts, so that a bad minute does not hit one row alone; each row gives the range of the middle half of its
rounds, and the long texts have beside them what the machine gave in the same rounds: two tokenizers that share nothing,
each with one half of the text at the same time.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import goals
import numpy as np
from cases import Case
from peers import OURS, our_tokenizer, takes_threads
from texts import Text
from timing import FIRST_TEXT, median_ratio, seconds

# Times as many rounds. On two shared virtual processors, single rounds of one row had ratios from 1.0 to 2.5, and the
# median of 9 of them differs each time.
ROUNDS = 9
DOCUMENT = 2000  # characters of a text of the batch
LATER_PASSES = 3
ONE, TWO, APART = "one thread", "two threads", "two tokenizers, half each"
PLAIN = {"add_special": False, "parse_special": False}

Action = Callable[[], Any]
Makers = dict[str, Callable[[], Action]]  # the measured actions, each time in fresh tokenizers
Times = dict[str, list[float]]  # seconds of each round, by what was measured


class Subject(NamedTuple):
    """One text, the way it is encoded, and how long that took."""

    text: str
    method: str
    size: int  # bytes
    first: str
    later: str
    makers: Makers
    first_times: Times
    later_times: Times


def scaling(
    case: Case, texts: Sequence[tuple[Text, Text]], engine: str, rounds: int, left_out: dict[str, str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """For each (text, long text), a batch made from the first, and the second as it is: figures and rows."""
    tokenizer = our_tokenizer(case, engine)
    subjects = []
    for text, long in texts:
        for subject in _subjects(case, text, long, engine):
            if not takes_threads(getattr(tokenizer, subject.method)):
                what = f"{subject.first.partition(',')[0]} on two threads"
                left_out[what] = f"{OURS}'s {subject.method} has no `threads` here"
                continue
            if not _equal(subject.makers[ONE]()(), subject.makers[TWO]()()):
                raise RuntimeError(f"{subject.method} gives other ids on two threads")
            subjects.append(subject)
    for number in range(ROUNDS * rounds):
        for subject in subjects:
            _measure(subject, backwards=number % 2 == 1)
    figures, rows = [], []
    for subject in subjects:
        for what, times in ((subject.first, subject.first_times), (subject.later, subject.later_times)):
            ratio = median_ratio(times[ONE], times[TWO])
            two, one = (subject.size / 1e6 / statistics.median(times[kind]) for kind in (TWO, ONE))
            rows.append(goals.row(case.name, subject.text, what, ONE, two, one, "MB/s", ratio, _note(times)))
            about = {"vocabulary": case.name, "text": subject.text, "bytes": subject.size, "what": what}
            figures += [{**about, "kind": kind, "seconds": values} for kind, values in times.items()]
    return figures, rows


def _subjects(case: Case, text: Text, long: Text, engine: str) -> list[Subject]:
    documents, halves = split_into_documents(text.text), _halves(long.text)

    def fresh() -> Any:
        made = our_tokenizer(case, engine)
        made.encode(FIRST_TEXT)
        return made

    def batch(threads: int) -> Action:
        return partial(fresh().encode_batch, documents, threads=threads, **PLAIN)

    def one_text(threads: int) -> Action:
        return partial(fresh().encode_to_numpy, long.text, threads=threads, **PLAIN)

    def apart() -> Action:
        return partial(_at_once, [partial(fresh().encode_to_numpy, half, **PLAIN) for half in halves])

    def subject(method: str, size: int, first: str, later: str, makers: Makers) -> Subject:
        times: tuple[Times, Times] = {kind: [] for kind in makers}, {kind: [] for kind in makers}
        return Subject(text.name, method, size, first, later, makers, *times)

    batches: Makers = {ONE: partial(batch, 1), TWO: partial(batch, 2)}
    one_texts: Makers = {ONE: partial(one_text, 1), TWO: partial(one_text, 2), APART: apart}
    return [
        subject("encode_batch", text.size, goals.BATCH_FIRST, goals.BATCH_LATER, batches),
        subject("encode_to_numpy", long.size, goals.LONG_FIRST, goals.LONG_LATER, one_texts),
    ]


def split_into_documents(text: str) -> list[str]:
    """The text in pieces of about `DOCUMENT` characters that end at line ends."""
    documents, piece, length = [], [], 0
    for line in text.splitlines(keepends=True):
        piece.append(line)
        length += len(line)
        if length >= DOCUMENT:
            documents.append("".join(piece))
            piece, length = [], 0
    return [*documents, "".join(piece)] if piece else documents


def _halves(text: str) -> tuple[str, str]:
    """The text in two halves, split at a line end."""
    middle = text.find("\n", len(text) // 2) + 1
    return text[:middle], text[middle:]


def _measure(subject: Subject, *, backwards: bool) -> None:
    """One round: a first pass and later ones of each kind."""
    for kind in reversed(subject.makers) if backwards else subject.makers:
        encode = subject.makers[kind]()
        subject.first_times[kind].append(seconds(encode))
        subject.later_times[kind].append(statistics.median(seconds(encode) for _ in range(LATER_PASSES)))


def _at_once(actions: list[Action]) -> list[Any]:
    with ThreadPoolExecutor(len(actions)) as threads:
        return list(threads.map(lambda action: action(), actions))


def _note(times: Times) -> str:
    """The spread of the rounds, and what the machine gave."""
    low, _, high = statistics.quantiles((one / two for one, two in zip(times[ONE], times[TWO])), n=4)
    note = f"middle half {low:.2f} to {high:.2f}"
    return f"{note}; {APART}: {median_ratio(times[ONE], times[APART]):.2f} x" if APART in times else note


def _equal(one: Any, two: Any) -> bool:
    """Of arrays, or of lists of lists."""
    return np.array_equal(one, two) if isinstance(one, np.ndarray) else bool(one == two)
