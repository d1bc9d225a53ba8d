"""How time grows with the length of runs of one character, and of others, for every splitting and every model.

    python benchmarks/growth.py [--families llama-bpe gpt-4o …] [--longest 100000000] [--json growth.json]
    python benchmarks/growth.py --models llama-2 bge nomic rwkv-world fixtures/vocabs/plamo2.gguf

llama.cpp crashes on many of these texts (from 26,000 characters on); the rules still define the answer. Counting the
tokens of n characters must take time linear in n, n log n within one word: from 10^4 characters to the longest, a
character may cost at most 1.5 times what it costs in any shorter text. Each time is the best of some rounds over all
sizes, each in a fresh tokenizer, since noise only adds; it is processor time, since long texts meet other processes
more often than short ones.

Over the package's GPT-2 vocabulary, so that words are really merged; families that do not byte-encode use
fixtures/raw-utf8.gguf. By default up to 10^8 characters, with the reference engine up to 10^6.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from itertools import chain
from pathlib import Path
from time import process_time
from typing import Any

from cases import GPT2, ROOT, Case, cases
from peers import our_engine_name, our_tokenizer
from reference import with_pre
from timing import FIRST_TEXT, seconds

from ggufbpe import GGUFWarning
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS

RAW = ROOT / "fixtures" / "raw-utf8.gguf"
SHORTEST = 10_000
LONGEST = {"native": 10**8, "reference": 10**6}
BOUND = 1.5
ROUNDS, ROUNDS_OF_LONG, LONG = 5, 2, 10**6

TEXTS: dict[str, Callable[[int], str | bytes]] = {
    "letter": lambda count: "a" * count,
    "space": lambda count: " " * count,
    "digit": lambda count: "1" * count,
    "alternating": lambda count: "a " * (count // 2),
    "emoji": lambda count: "\U0001f600" * count,
    "combining marks": lambda count: "e\u0301" * (count // 2),
    "words of unknown characters": lambda count: "x\u4e2d\u6587 " * (count // 4),
    "random bytes": lambda count: random.Random(1).randbytes(count),
}


def main() -> None:
    """Print a row for each family and text as it is measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--families", nargs="+", help="names of pre-tokenizers; by default one of each family"
    )
    parser.add_argument(
        "--models", nargs="+", help="other vocabularies: names as in benchmarks/run.py, or paths of GGUFs"
    )
    parser.add_argument("--texts", nargs="+", choices=TEXTS, default=list(TEXTS), help="by default all")
    parser.add_argument("--longest", type=int, help="characters of the longest text")
    parser.add_argument("--engine", default="auto", choices=["auto", "native", "reference"])
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    options = parser.parse_args()
    warnings.simplefilter("ignore", GGUFWarning)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        families = options.families or ([] if options.models else one_of_each_family())
        for case in chain(
            (case_of(name, Path(folder)) for name in families),
            cases(options.models or [], Path(folder), {}),
        ):
            engine = our_engine_name(our_tokenizer(case, options.engine))
            longest = options.longest or LONGEST.get(engine, LONGEST["native"])
            if not rows:
                print(_heading(engine, sizes_to(longest)))
            for kind in options.texts:
                rows.append(measure(case, kind, sizes_to(longest), options.engine))
                print(_line(rows[-1]), flush=True)
    exceeding = sum(not row["met"] for row in rows)
    print(f"\n{len(rows) - exceeding} of {len(rows)} stay within {BOUND} x.")
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def one_of_each_family() -> list[str]:
    """The first name of each way of splitting."""
    return list({entry.family: name for name, entry in reversed(PRE_TOKENIZERS.items())}.values())


def case_of(name: str, folder: Path) -> Case:
    """A vocabulary with the pre-tokenizer of that name."""
    entry = PRE_TOKENIZERS[name]
    base = GPT2 if entry.byte_encode else RAW
    model = "whitespace" if entry.family == "whitespace" else None
    return Case(name, with_pre(base, name, folder / f"{name}.gguf", model=model), folder)


def sizes_to(longest: int) -> list[int]:
    """Powers of ten up to the longest.

    >>> sizes_to(1_000_000)
    [10000, 100000, 1000000]
    """
    sizes = [min(SHORTEST, longest)]
    while sizes[-1] * 10 <= longest:
        sizes.append(sizes[-1] * 10)
    return sizes


def measure(case: Case, kind: str, sizes: list[int], engine: str) -> dict[str, Any]:
    """Nanoseconds per character for each size, and the greatest growth from a size to a longer one."""
    texts = [TEXTS[kind](size) for size in sizes]
    best = [float("inf")] * len(sizes)
    for number in range(ROUNDS):
        for place, text in enumerate(texts):
            if number >= ROUNDS_OF_LONG and sizes[place] > LONG:
                continue
            tokenizer = our_tokenizer(case, engine)
            tokenizer.count(FIRST_TEXT)  # make everything that is made on first use
            best[place] = min(
                best[place], seconds(partial(tokenizer.count, text, add_special=False), process_time)
            )
    figures = [1e9 * time / size for time, size in zip(best, sizes)]
    growth = greatest_growth(figures)
    return {
        "family": PRE_TOKENIZERS[case.name].family if case.name in PRE_TOKENIZERS else case.tokenizer.model,
        "name": case.name,
        "text": kind,
        "sizes": sizes,
        "nanoseconds_per_character": figures,
        "growth": growth,
        "met": growth <= BOUND,
    }


def greatest_growth(values: list[float]) -> float:
    """The greatest ratio of a value to any earlier one.

    >>> greatest_growth([4.0, 2.0, 3.0])
    1.5
    """
    return max((later / min(values[:place]) for place, later in enumerate(values) if place), default=1.0)


def _heading(engine: str, sizes: list[int]) -> str:
    columns = " | ".join(f"10^{len(str(size)) - 1}" for size in sizes)
    head = f"| pre-tokenizer | text | {columns} | growth | within {BOUND} x |"
    ruler = "| --- |" + " --- |" * (len(sizes) + 3)
    return f"Engine: {engine}. Nanoseconds a character, by the number of characters.\n\n{head}\n{ruler}"


def _line(row: dict[str, Any]) -> str:
    columns = " | ".join(f"{value:.1f}" for value in row["nanoseconds_per_character"])
    return f"| {row['name']} | {row['text']} | {columns} | {row['growth']:.2f} | {'yes' if row['met'] else 'NO'} |"


if __name__ == "__main__":
    main()
