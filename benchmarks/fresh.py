"""The first text of a fresh process: processor time, how much of it was the system's, and how much memory was touched.

A process imports NumPy, opens one engine, and encodes one text once. Rounds within one process do not show what this
costs: they find memory that an earlier round has touched. Time is the processor's, because fresh memory is the
system's work, and because the clock of a shared machine shows what others do. NumPy's linear algebra gets no threads of
its own: they spin for tens of milliseconds after it is imported, which would count for the engine that opens soonest.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import statistics
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import goals
from cases import Case
from peers import OURS, openers
from texts import Text
from timing import median_ratio

COMPARED = (
    OURS,
    "gigatoken",
    "nanotoken",
    "sentencepiece",
    "tokie",
    "pyrwkv-tokenizer",
)  # the best of each kind


def fresh(
    case: Case, text: Text, usable: list[str], engine: str, rounds: int, folder: Path
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Measure each engine of `usable` in `2 * rounds + 1` processes, in turn: figures and rows."""
    path = folder / "fresh.txt"
    path.write_text(text.text, encoding="utf-8", newline="")
    made = {
        "has_scores": case.has_scores
    }  # and the files that peers read, which were made when they were opened before
    made |= {
        name: str(vars(case)[name])
        for name in ("tokenizer_json", "sentencepiece_model")
        if name in vars(case)
    }
    arguments = [engine, case.name, str(case.path), json.dumps(made), str(path)]
    answers: dict[str, list[dict[str, Any]]] = {name: [] for name in COMPARED if name in usable}
    for _ in range(2 * rounds + 1):
        for name, found in answers.items():
            command = [sys.executable, __file__, name, *arguments]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=_one_thread())
            found.append(json.loads(done.stdout))
    figures = [
        {"vocabulary": case.name, "text": text.name, "engine": name, "processes": found}
        for name, found in answers.items()
    ]
    return figures, _rows(case.name, text, answers)


def _one_thread() -> dict[str, str]:
    """Return the environment of a process in which numerical libraries start no threads.

    NumPy's OpenBLAS lets its threads spin for tens of milliseconds after it is imported. Their processor time would
    count for the engine that opens soonest: Llama 3's code seemed to take ours 80 ms, and takes 46.
    """
    return {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def _rows(vocabulary: str, text: Text, answers: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    rows = []
    for what, key in ((goals.FRESH, "encode"), (goals.FRESH_WITH_OPENING, "together")):
        times = {name: [one[key]["seconds"] for one in found] for name, found in answers.items()}
        speeds = {name: text.size / 1e6 / statistics.median(each) for name, each in times.items()}
        for peer in times:
            if peer != OURS:
                note = "; ".join(f"{name}: {_of_memory(answers[name], key)}" for name in (OURS, peer))
                ratio = median_ratio(times[peer], times[OURS])
                rows.append(
                    goals.row(
                        vocabulary, text.name, what, peer, speeds[OURS], speeds[peer], "MB/s", ratio, note
                    )
                )
    return rows


def _of_memory(found: list[dict[str, Any]], key: str) -> str:
    """Say what memory cost: medians over the processes."""
    system, faults, touched = (
        statistics.median(one[key][each] for one in found) for each in ("system", "faults", "megabytes")
    )
    return f"{1e3 * system:.0f} ms in the system, {faults:.0f} faults, {touched:.0f} MB touched"


# ---- in the process of its own ---------------------------------------------------------------------------


def main() -> None:
    """Open, encode, and print what both took."""
    import numpy as np  # noqa: F401 - not part of what is measured

    warnings.simplefilter("ignore")
    name, engine, vocabulary, path, made, text_path = sys.argv[1:]
    case = Case(vocabulary, Path(path), Path(text_path).parent)
    for attribute, value in json.loads(made).items():
        setattr(case, attribute, Path(value) if isinstance(value, str) else value)
    text = Path(text_path).read_bytes().decode()
    ctypes.pythonapi.PyUnicode_AsUTF8(ctypes.py_object(text))  # so that no engine has to make this form of it
    opener = openers(engine)[name]
    start = _usage()
    opened = opener(case)
    opened.encode_to_list("Hello world")
    middle = _usage()
    ids = opened.encode(text)
    end = _usage()
    print(json.dumps({"encode": _between(middle, end), "together": _between(start, end), "ids": len(ids)}))


def _usage() -> tuple[float, float, int, float]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    return used.ru_utime + used.ru_stime, used.ru_stime, used.ru_minflt, resident / 1e6


def _between(before: tuple[float, ...], after: tuple[float, ...]) -> dict[str, float]:
    names = ("seconds", "system", "faults", "megabytes")
    return {name: y - x for name, x, y in zip(names, before, after)}


if __name__ == "__main__":
    main()
