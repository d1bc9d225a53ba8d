"""The goals, as data, and whether they were reached.

    figures -> [this file] -> rows of the table

A floor must be reached, an aim is what we want. Speeds are ratios ours/theirs with a least value; times and memory
are ratios with a greatest value.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Goal(NamedTuple):
    """One floor and one aim; None if there is none."""

    floor: float | None
    aim: float | None
    at_least: bool = True  # False: at most


FIRST, LATER = "encode, first pass", "encode, later passes"
FRESH, FRESH_WITH_OPENING = "first text of a fresh process", "… and opening"
SHORT, SHORT_OVERHEAD = "encode 50 characters to a list", "… over the compiled engine's own time"
OPEN, OPEN_AGAIN = "open to first ids", "… again in the same process"
OPEN_CACHED, WITHOUT_CACHE = "… with the cache file", "without the cache file"
PROCESS, PROCESS_MEMORY = "whole process, time", "whole process, peak memory"
BATCH_FIRST, BATCH_LATER = "batch, first pass", "batch, later passes"
LONG_FIRST, LONG_LATER = "one long text, first pass", "one long text, later passes"

# By what is measured, and what it is compared with.
GOALS: dict[tuple[str, str], Goal] = {
    (FIRST, "gigatoken"): Goal(1, 2),
    (FIRST, "tiktoken"): Goal(4, None),
    (LATER, "gigatoken"): Goal(0.5, 1),
    (FRESH, "gigatoken"): Goal(1.2, 1.5),
    (FRESH_WITH_OPENING, "gigatoken"): Goal(1.2, 1.5),
    (LATER, "tiktoken"): Goal(8, None),
    (SHORT, "llama.cpp"): Goal(1, None, at_least=False),
    (SHORT, "gigatoken"): Goal(None, 1, at_least=False),
    (SHORT_OVERHEAD, "the compiled engine's own time"): Goal(
        2, None, at_least=False
    ),  # microseconds, not a ratio
    (OPEN, "llama.cpp"): Goal(0.3, 0.1, at_least=False),
    (OPEN_AGAIN, "llama.cpp"): Goal(0.3, 0.1, at_least=False),
    (OPEN_CACHED, WITHOUT_CACHE): Goal(None, None, at_least=False),
    (OPEN_CACHED, "llama.cpp"): Goal(0.3, 0.05, at_least=False),
    (PROCESS, "llama-tokenize"): Goal(0.7, 0.4, at_least=False),
    (PROCESS_MEMORY, "llama-tokenize"): Goal(1, 0.6, at_least=False),
    (BATCH_FIRST, "one thread"): Goal(1.7, 1.95),
    (BATCH_LATER, "one thread"): Goal(1.7, 1.95),
    (LONG_FIRST, "one thread"): Goal(1.7, 1.95),
    (LONG_LATER, "one thread"): Goal(1.7, 1.95),
}
# Of other models than byte pair encoding, by the vocabulary, too.
OWN_GOALS: dict[tuple[str, str, str], Goal] = {
    ("llama-2", FIRST, "gigatoken"): Goal(1, 3),
    ("llama-2", LATER, "gigatoken"): Goal(1, None),
    ("bge", FIRST, "nanotoken"): Goal(1, 2),
    ("bge", LATER, "nanotoken"): Goal(1, None),
    **{
        (unigram, which, peer): Goal(1.5, 5)
        for unigram in ("nomic", "t5")
        for which in (FIRST, LATER)
        for peer in ("sentencepiece", "tokie", "HF tokenizers 1.0")
    },
    ("rwkv-world", FIRST, "pyrwkv-tokenizer"): Goal(2, 5),
    ("rwkv-world", LATER, "pyrwkv-tokenizer"): Goal(2, 5),
}


def row(
    vocabulary: str,
    text: str | None,
    what: str,
    against: str,
    ours: float,
    theirs: float,
    unit: str,
    value: float,
    note: str = "",
) -> dict[str, Any]:
    """One comparison and its verdict. `value` is the figure that the goal bounds: nearly always the ratio ours/theirs.

    >>> row("v", "prose", FIRST, "gigatoken", 80.0, 100.0, "MB/s", 0.8)["floor_met"]
    False
    >>> row("v", None, OPEN, "llama.cpp", 0.02, 0.1, "s", 0.2)["floor_met"]
    True
    """
    goal = OWN_GOALS.get((vocabulary, what, against)) or GOALS.get((what, against), Goal(None, None))

    def met(bound: float | None) -> bool | None:
        if bound is None:
            return None
        return value >= bound if goal.at_least else value <= bound

    return {
        "vocabulary": vocabulary,
        "text": text,
        "what": what,
        "against": against,
        "ours": ours,
        "theirs": theirs,
        "unit": unit,
        "value": value,
        "at_least": goal.at_least,
        "floor": goal.floor,
        "floor_met": met(goal.floor),
        "aim": goal.aim,
        "aim_met": met(goal.aim),
        "note": note,
    }
