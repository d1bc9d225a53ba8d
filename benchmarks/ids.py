"""Whether all engines give the same ids, and how much they differ if not.

    engines -> [this file] -> checks, made before anything is timed

llama.cpp is right by definition; if it is not installed, we are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from cases import Case
from peers import LLAMA_CPP, OURS, Engine
from texts import Text


def check_ids(case: Case, text: Text, engines: dict[str, Engine]) -> list[dict[str, Any]]:
    """For each engine, how many expected tokens it does not give, by their place in the text."""
    standard = LLAMA_CPP if LLAMA_CPP in engines else OURS
    expected = as_array(engines[standard].encode(text.text))
    checks = []
    for name, engine in engines.items():
        found = expected if name == standard else as_array(engine.encode(text.text))
        missing = 0 if np.array_equal(found, expected) else missing_tokens(case, expected, found)
        checks.append(
            {
                "vocabulary": case.name,
                "text": text.name,
                "engine": name,
                "standard": standard,
                "tokens": len(found),
                "expected_tokens": len(expected),
                "equal": bool(np.array_equal(found, expected)),
                "missing_tokens": missing,
            }
        )
    return checks


def as_array(ids: Any) -> np.ndarray[Any, Any]:
    """Ids in any form as int64."""
    return np.asarray(ids).astype(np.int64)


def missing_tokens(case: Case, expected: np.ndarray[Any, Any], found: np.ndarray[Any, Any]) -> int:
    """The number of expected tokens that are not at the same bytes in `found`."""
    lengths = np.array(case.piece_lengths, dtype=np.int64)
    ends = [np.cumsum(lengths[ids]) * len(lengths) + ids for ids in (expected, found)]
    return int((~np.isin(ends[0], ends[1])).sum())
