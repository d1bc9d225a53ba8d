"""How long an append to a text takes, however long the text is, beside encoding all of it again.

    python benchmarks/incremental.py [--vocab gpt-2 llama-2 bge …] [--longest 10000000] [--json incremental.json]

Appends 100 characters to texts of 10^4, 10^5, … characters, some hundred times, and checks the ids against `encode` of
the whole at the end. Each time is a median of processor time. `restore` is a checkpoint, an append and the way
back. At every length, an append should take about as long as at 10^4, and at most 50 us at 10^6.

With --vllm FILE, the same appends by vLLM's incremental encoding are measured after ours: FILE is
vllm/tokenizers/incremental_encode.py of pull request 47583, which is in no package. It works over a fast tokenizer of
transformers, made of our tokenizer.json, and keeps the texts of the last 16 prompts; shorter ones than 16,384
characters it leaves to the tokenizer.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

from cases import ROOT, Case, cases
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
    parser.add_argument(
        "--vllm", metavar="FILE", type=Path, help="vLLM's incremental_encode.py, to measure beside ours"
    )
    parser.add_argument("--json", help="a file for all figures")
    options = parser.parse_args()
    print(
        f"{'':24} {'characters':>12} {'append':>10} {'restore':>10} {'encode':>12} {'made in':>12} {'vLLM':>12}"
    )
    results: list[dict[str, Any]] = []
    left_out: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        for case in cases(options.vocab, Path(folder), left_out):
            length = SHORTEST
            while length <= options.longest:
                vllm = vllm_encode(case, options.vllm) if options.vllm else None
                figures = measured(our_tokenizer(case), length, vllm=vllm)
                results.append({"vocab": case.name, "characters": length, **figures})
                shown = [
                    f"{figures[name] * 1e6:.1f} us" if name in figures else ""
                    for name in ("append", "restore", "encode", "made", "vllm")
                ]
                print(
                    f"{case.name:24} {length:12} {shown[0]:>10} {shown[1]:>10} {shown[2]:>12} {shown[3]:>12} "
                    f"{shown[4]:>12}",
                    flush=True,
                )
                length *= 10
    for name, reason in left_out.items():
        print(f"{name}: {reason}")
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1), encoding="utf-8")


def vllm_encode(case: Case, path: Path) -> Callable[[str], list[int] | None]:
    """vLLM's encoding of prompts that grow, without special tokens; None for a text that it leaves to others."""
    from transformers import PreTrainedTokenizerFast

    spec = importlib.util.spec_from_file_location("vllm_incremental", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"incremental.py: {path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look it up
    spec.loader.exec_module(module)
    cache = module.IncrementalEncodeCache()
    fast = PreTrainedTokenizerFast(tokenizer_file=str(case.tokenizer_json))
    return partial(cache.encode, fast, add_special_tokens=False)


def measured(
    tokenizer: Any,
    length: int,
    appends: int = APPENDS,
    vllm: Callable[[str], list[int] | None] | None = None,
) -> dict[str, float]:
    """The medians of one length, in seconds. `ValueError` if ids are not those of the whole text."""
    prose = (ROOT / "README.md").read_text(encoding="utf-8")
    text = (prose * (length // len(prose) + 1))[:length]
    pieces = [prose[at : at + APPENDED] for at in range(0, len(prose) - APPENDED, APPENDED)]
    made, growing = timed(lambda: tokenizer.incremental(text))
    appended = [pieces[at % len(pieces)] for at in range(appends)]
    times = [timed(partial(growing.append, piece))[0] for piece in appended]

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
        **({} if vllm is None else appends_by_vllm(vllm, tokenizer, text, appended)),
    }


def appends_by_vllm(
    vllm: Callable[[str], list[int] | None], tokenizer: Any, text: str, appended: list[str]
) -> dict[str, float]:
    """The median of the same appends, in seconds; nothing if the text is too short for it."""
    if vllm(text) is None:
        return {}
    times = []
    for piece in appended:
        text += piece
        seconds, ids = timed(partial(vllm, text))
        times.append(seconds)
    if ids != tokenizer.encode_ordinary(text):  # the tokenizer.json has no control tokens
        raise ValueError(f"vLLM's ids of {len(text)} characters are not ours")
    return {"vllm": median(times)}


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = process_time()
    result = work()
    return process_time() - start, result


if __name__ == "__main__":
    main()
