"""How long an append to a text takes, however long the text is, beside encoding all of it again.

    python benchmarks/incremental.py [--vocab gpt-2 llama-2 bge …] [--longest 10000000] [--json incremental.json]

Appends 100 characters to texts of 10^4, 10^5, … characters, some hundred times, and checks the ids against `encode` of
the whole at the end. Each time is a median of processor time. `restore` is a checkpoint, an append and the way
back. At every length, an append should take about as long as at 10^4, and at most 50 us at 10^6.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

from cases import ROOT, cases
from peers import our_tokenizer

SHORTEST = 10_000
APPENDS = 300
APPENDED = 100  # characters


def main() -> None:
    """Print a row for each vocabulary and length as it is measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--vocab", nargs="+", default=["gpt-2"], help="as in benchmarks/run.py, or paths of files"
    )
    parser.add_argument(
        "--longest", type=int, default=10**7, help="characters of the longest text (10000000)"
    )
    parser.add_argument("--json", help="a file for all figures")
    options = parser.parse_args()
    print(f"{'':24} {'characters':>12} {'append':>10} {'restore':>10} {'encode':>12} {'made in':>12}")
    results: list[dict[str, Any]] = []
    left_out: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        for case in cases(options.vocab, Path(folder), left_out):
            length = SHORTEST
            while length <= options.longest:
                figures = measured(our_tokenizer(case), length)
                results.append({"vocab": case.name, "characters": length, **figures})
                shown = [f"{figures[name] * 1e6:.1f} us" for name in ("append", "restore", "encode", "made")]
                print(
                    f"{case.name:24} {length:12} {shown[0]:>10} {shown[1]:>10} {shown[2]:>12} {shown[3]:>12}",
                    flush=True,
                )
                length *= 10
    for name, reason in left_out.items():
        print(f"{name}: {reason}")
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1), encoding="utf-8")


def measured(tokenizer: Any, length: int, appends: int = APPENDS) -> dict[str, float]:
    """The medians of one length, in seconds. `ValueError` if ids are not those of the whole text."""
    prose = (ROOT / "README.md").read_text(encoding="utf-8")
    text = (prose * (length // len(prose) + 1))[:length]
    pieces = [prose[at : at + APPENDED] for at in range(0, len(prose) - APPENDED, APPENDED)]
    made, growing = timed(lambda: tokenizer.incremental(text))
    times = [timed(partial(growing.append, pieces[at % len(pieces)]))[0] for at in range(appends)]

    def there_and_back() -> None:
        state = growing.checkpoint()
        growing.append(pieces[0])
        growing.restore(state)

    ways_back = [timed(there_and_back)[0] for _ in range(appends)]
    whole = growing.to_bytes()
    encodes = [timed(lambda: tokenizer.encode(whole)) for _ in range(3)]
    if growing.ids != encodes[0][1]:
        raise ValueError(f"the ids of {length} characters are not those of the whole text")
    return {
        "append": median(times),
        "restore": median(ways_back),
        "encode": median([seconds for seconds, _ in encodes]),
        "made": made,
    }


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = process_time()
    result = work()
    return process_time() - start, result


if __name__ == "__main__":
    main()
