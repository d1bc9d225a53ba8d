"""How fast a vocabulary opens, in a process and as a whole process, and how much memory that takes.

cases.py -> [this file] -> opening_child.py, launcher.py -> figures and rows
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

import goals
from cases import Case
from peers import LLAMA_CPP, OURS
from reference import NotPreparedError, llama_tokenize_command
from timing import MORE_ROUNDS, median_ratio

HERE = Path(__file__).resolve().parent
CACHED = f"{OURS}, cached tables"


def opening(case: Case, engine: str, rounds: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Seconds from opening to the first ids, in fresh processes in turn: figures and rows.

    Ours with the tables that an earlier process cached, and without.
    """
    engines = {OURS: engine, CACHED: engine}
    if importlib.util.find_spec("llama_cpp"):
        engines[LLAMA_CPP] = LLAMA_CPP
    answers: dict[str, list[dict[str, Any]]] = {name: [] for name in engines}
    with tempfile.TemporaryDirectory() as folder:
        environments = {
            OURS: {**os.environ, "GGUFBPE_CACHE": "off"},
            CACHED: {**os.environ, "GGUFBPE_CACHE_DIR": folder},
        }
        _open(case, engine, environments[CACHED])  # writes the cache file
        for _ in range(MORE_ROUNDS * rounds):
            for name, argument in engines.items():
                answers[name].append(_open(case, argument, environments.get(name)))
    figures = [
        {
            "vocabulary": case.name,
            "engine": name,
            "first_seconds": [answer["first"] for answer in found],
            "again_seconds": [answer["again"] for answer in found],
            "ids": found[0]["ids"],
        }
        for name, found in answers.items()
    ]
    return figures, _rows(case.name, figures)


def _open(case: Case, engine: str, environment: dict[str, str] | None) -> dict[str, Any]:
    command = [sys.executable, str(HERE / "opening_child.py"), engine, str(case.path)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _rows(vocabulary: str, figures: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = []
    ours, cached, *others = figures
    for base, against in ((ours, goals.WITHOUT_CACHE), *((one, one["engine"]) for one in others)):
        key, remark = "first_seconds", "" if cached["ids"] == base["ids"] else "ids differ"
        values = statistics.median(cached[key]), statistics.median(base[key]), "s"
        ratio = median_ratio(cached[key], base[key])
        rows.append(goals.row(vocabulary, None, goals.OPEN_CACHED, against, *values, ratio, remark))
    for theirs in others:
        remark = "" if ours["ids"] == theirs["ids"] else "ids differ"
        for what, key in ((goals.OPEN, "first_seconds"), (goals.OPEN_AGAIN, "again_seconds")):
            values = statistics.median(ours[key]), statistics.median(theirs[key]), "s"
            ratio = median_ratio(ours[key], theirs[key])
            rows.append(goals.row(vocabulary, None, what, theirs["engine"], *values, ratio, remark))
    return rows


# ---- whole processes ------------------------------------------------------------------------------------


def processes(
    case: Case, rounds: int, left_out: dict[str, str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """`ggufbpe tokenize` and `llama-tokenize` on two words, in turn: figures and rows.

    Run once before, so that all files are in the page cache. Ours runs its default engine.
    """
    if not hasattr(os, "wait4"):
        left_out["whole process"] = "this system does not report the peak memory of a child"
        return [], []
    arguments = ["-m", str(case.path), "-p", "Hello world", "--ids"]
    commands = {OURS: [*our_command(), "tokenize", *arguments]}
    try:
        commands["llama-tokenize"] = [str(llama_tokenize_command()), *arguments]
    except NotPreparedError as error:
        left_out["llama-tokenize"] = str(error)
    _launch(commands, 1)
    runs = _launch(commands, rounds)
    for name, found in runs.items():
        if any(run["status"] for run in found):
            raise RuntimeError(f"{name} failed on {case.path}")
    figures = [
        {
            "vocabulary": case.name,
            "command": name,
            "seconds": [run["seconds"] for run in found],
            "peak_megabytes": [run["peak_bytes"] / 1e6 for run in found],
            "output": found[0]["output"],
        }
        for name, found in runs.items()
    ]
    rows = []
    ours, *others = figures
    for theirs in others:
        remark = "" if ours["output"] == theirs["output"] else "output differs"
        for what, key, unit in (
            (goals.PROCESS, "seconds", "s"),
            (goals.PROCESS_MEMORY, "peak_megabytes", "MB"),
        ):
            values = statistics.median(ours[key]), statistics.median(theirs[key]), unit
            ratio = median_ratio(ours[key], theirs[key])
            rows.append(goals.row(case.name, None, what, theirs["command"], *values, ratio, remark))
    return figures, rows


def our_command() -> list[str]:
    """The command `ggufbpe` of this environment."""
    installed = shutil.which("ggufbpe", path=sysconfig.get_path("scripts"))
    return [installed] if installed else [sys.executable, "-m", "ggufbpe"]


def _launch(commands: dict[str, list[str]], rounds: int) -> dict[str, list[dict[str, Any]]]:
    task = {"commands": commands, "rounds": rounds, "environment": {"LC_ALL": "C.UTF-8"}}
    launcher = [sys.executable, "-I", "-S", str(HERE / "launcher.py")]
    ran = subprocess.run(launcher, input=json.dumps(task), stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, list[dict[str, Any]]] = json.loads(ran.stdout)
    return found
