"""How fast text becomes ids, on one thread.

    engines x texts -> [this file] -> figures and rows

The first pass is the first text that a fresh tokenizer sees after two words, so that what it makes for longer texts is
counted. Later passes are the same text again, so that every word is in an engine's caches.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import goals
from cases import Case
from peers import LLAMA_CPP, OURS, Engine, Opener, knows, our_tokenizer
from texts import Text
from timing import MORE_ROUNDS, median_ratio, seconds, seconds_of_one

LATER_PASSES = 3  # in each round
SLOW_SECONDS = 0.5  # an engine that needs more for a pass
SLOW_ROUNDS = 3  # … is measured in at most so many rounds, with one later pass each
SHORT_TEXT = "The quick brown fox jumps over the lazy dog, again"
KERNEL_COPIES = 10_000


def passes(case: Case, text: Text, openers: dict[str, Opener], rounds: int) -> list[dict[str, Any]]:
    """Seconds of first and later passes for each engine, measured in turn; of fast ones in more rounds."""
    first: dict[str, list[float]] = {name: [] for name in openers}
    later: dict[str, list[float]] = {name: [] for name in openers}
    for number in range(MORE_ROUNDS * rounds):
        for name, opener in openers.items():
            slow = bool(first[name]) and min(first[name]) > SLOW_SECONDS
            if slow and number >= min(rounds, SLOW_ROUNDS):
                continue
            engine = opener(case)
            engine.encode("Hello world")
            elapsed = seconds(partial(engine.encode, text.text))
            first[name].append(elapsed)
            count = 1 if elapsed > SLOW_SECONDS else LATER_PASSES
            times = [seconds(partial(engine.encode, text.text)) for _ in range(count)]
            later[name].append(statistics.median(times))
            engine.close()
    megabytes = text.size / 1e6
    return [
        {
            "vocabulary": case.name,
            "text": text.name,
            "engine": name,
            "first_seconds": first[name],
            "later_seconds": later[name],
            "first_mb_per_s": megabytes / statistics.median(first[name]),
            "later_mb_per_s": megabytes / statistics.median(later[name]),
        }
        for name in openers
    ]


def pass_rows(figures: list[dict[str, Any]], checks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Ours against each peer, from the figures of one vocabulary and text."""
    by_engine = {figure["engine"]: figure for figure in figures}
    notes = {check["engine"]: note(check) for check in checks}
    rows = []
    for what, key in ((goals.FIRST, "first"), (goals.LATER, "later")):
        for peer, theirs in by_engine.items():
            if peer == OURS:
                continue
            ours = by_engine[OURS]
            ratio = median_ratio(theirs[f"{key}_seconds"], ours[f"{key}_seconds"])
            speeds = ours[f"{key}_mb_per_s"], theirs[f"{key}_mb_per_s"]
            remark = "; ".join(filter(None, (notes[OURS], notes[peer])))
            rows.append(
                goals.row(ours["vocabulary"], ours["text"], what, peer, *speeds, "MB/s", ratio, remark)
            )
    return rows


def note(check: dict[str, Any]) -> str:
    """A row's note about ids that differ; empty if they are equal."""
    if check["equal"]:
        return ""
    share = 100 * check["missing_tokens"] / max(check["expected_tokens"], 1)
    return f"ids of {check['engine']} differ: {check['missing_tokens']} tokens, {share:.3g} %"


# ---- short texts ----------------------------------------------------------------------------------------


def short(
    case: Case, openers: dict[str, Opener], engine: str, rounds: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Microseconds for 50 characters that were seen before: figures and rows.

    The compiled engine's own time is that of `count` for many copies in one call, per copy: no call, no list.
    """
    opened = {name: opener(case) for name, opener in openers.items()}
    actions: dict[tuple[str, str], Callable[[], Any]] = {}
    for name, each in opened.items():
        actions[name, "list"] = partial(each.encode_to_list, SHORT_TEXT)
        actions[name, "cheapest form"] = partial(each.encode, SHORT_TEXT)
    count_copies = partial(our_tokenizer(case, engine).count, (SHORT_TEXT + "\n") * KERNEL_COPIES)
    times: dict[tuple[str, str], list[float]] = {key: [] for key in actions}
    kernel: list[float] = []
    for key in actions:
        actions[key]()  # so that caches are warm
    count_copies()
    for _ in range(MORE_ROUNDS * rounds):
        for key, action in actions.items():
            times[key].append(1e6 * seconds_of_one(action))
        kernel.append(1e6 * seconds(count_copies) / KERNEL_COPIES)
    for each in opened.values():
        each.close()
    figures = [
        {"vocabulary": case.name, "engine": name, "form": form, "microseconds": values}
        for (name, form), values in times.items()
    ]
    figures.append({"vocabulary": case.name, "engine": OURS, "form": "kernel", "microseconds": kernel})
    return figures, short_rows(case.name, times, kernel)


def short_rows(
    vocabulary: str, times: dict[tuple[str, str], list[float]], kernel: list[float]
) -> list[dict[str, Any]]:
    """Our list against each peer's cheapest form, which for gigatoken is an array, and against our compiled engine."""
    ours = times[OURS, "list"]
    our_median = statistics.median(ours)
    rows = []
    for (peer, form), theirs in times.items():
        compared = "list" if peer == LLAMA_CPP else "cheapest form"
        if peer != OURS and form == compared:
            values = our_median, statistics.median(theirs), "us", median_ratio(ours, theirs)
            rows.append(goals.row(vocabulary, None, goals.SHORT, peer, *values))
    over = statistics.median(our - own for our, own in zip(ours, kernel))
    values = our_median, statistics.median(kernel), "us", over
    return [
        *rows,
        goals.row(vocabulary, None, goals.SHORT_OVERHEAD, "the compiled engine's own time", *values),
    ]


def open_all(
    case: Case, openers: dict[str, Opener], left_out: dict[str, str]
) -> tuple[dict[str, Engine], dict[str, Opener]]:
    """The engines that can be opened, and their openers; why others cannot is noted in `left_out`."""
    opened: dict[str, Engine] = {}
    for name, opener in openers.items():
        if not knows(name, case):
            continue
        try:
            opened[name] = opener(case)
        except Exception as error:
            if name == OURS:
                raise
            left_out[f"{name}, {case.name}"] = f"{type(error).__name__}: {error}"
    return opened, {name: openers[name] for name in opened}
