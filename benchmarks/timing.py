"""How time is measured.

    an action -> [this file] -> seconds

The machine may be shared and noisy. So everything compared is measured in turn, round by round, and a ratio is the
median of the rounds' ratios: what disturbs one round disturbs both sides of it.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

LOOP_SECONDS = 0.02  # a short action is repeated for this long
MORE_ROUNDS = 3  # times as many for short actions
# Encoded first where what is made on first use is not to be timed: without the long word, SPM, WPM and UGM would
# look up the first words one by one and build their tables later. First passes count that, and begin after two words.
FIRST_TEXT = f"Hello world {'w' * 300}"


def seconds(action: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    """How long `action` takes, without the cyclic garbage collector."""
    gc.collect()
    gc.disable()
    try:
        start = clock()
        result = action()
        elapsed = clock() - start
    finally:
        gc.enable()
    del result  # freeing it is not timed
    return elapsed


def seconds_of_one(action: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    """The time of an action that is too short to be timed alone: the mean of many in a row."""

    def loop() -> None:
        for _ in range(count):
            action()

    count = 1
    while (elapsed := seconds(loop, clock)) < LOOP_SECONDS:
        count = max(2 * count, int(1.2 * count * LOOP_SECONDS / max(elapsed, 1e-9)))
    return elapsed / count


def median_ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median of the rounds' ratios; rounds of only one side do not count.

    >>> median_ratio([2.0, 9.0, 2.0], [1.0, 3.0])
    2.5
    """
    return statistics.median(our / their for our, their in zip(ours, theirs))


def say(message: str) -> None:
    """Progress, on standard error."""
    print(message, file=sys.stderr, flush=True)
