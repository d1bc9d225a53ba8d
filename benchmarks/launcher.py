"""Runs commands and reports the time and peak memory of each.

    opening.py -> python -I -S launcher.py (JSON on standard input) -> JSON on standard output

In its own, small process: the peak that the system reports for a child is never below that of its parent, so a process
that holds texts and tokenizers cannot measure one. This needs os.wait4 (not on Windows).
Standard input is {"commands": {NAME: [ARGUMENT, …]}, "rounds": N, "environment": {…}}; the commands run in turn.
"""

from __future__ import annotations

import json
import os
import sys
import time


def run(command: list[str], environment: dict[str, str]) -> dict[str, object]:
    """Seconds, peak memory in bytes, and the output."""
    reading, writing = os.pipe()
    start = time.perf_counter()
    child = os.posix_spawn(
        command[0],
        command,
        environment,
        file_actions=[
            (os.POSIX_SPAWN_DUP2, writing, 1),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_CLOSE, reading),
        ],
    )
    os.close(writing)
    output = b""
    while part := os.read(reading, 65536):
        output += part
    os.close(reading)
    _, status, usage = os.wait4(child, 0)
    elapsed = time.perf_counter() - start
    unit = 1 if sys.platform == "darwin" else 1024
    peak = usage.ru_maxrss * unit
    return {
        "seconds": elapsed,
        "peak_bytes": peak,
        "status": status,
        "output": output.decode("utf-8", "replace"),
    }


def main() -> None:
    """Run the commands on standard input."""
    task = json.load(sys.stdin)
    found: dict[str, list[object]] = {name: [] for name in task["commands"]}
    for _ in range(task["rounds"]):
        for name, command in task["commands"].items():
            found[name].append(run(command, {**os.environ, **task["environment"]}))
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
