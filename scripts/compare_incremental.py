"""Random changes of growing texts, with all names and models: are their ids those of `encode` of the whole text?

    python scripts/compare_incremental.py [--steps 1000000] [--seed 1] [--reference-every 20]

Texts are appended to, cut, replaced and restored, by words, special tokens and parts of both, single bytes, and halves
of characters (tests/helpers/growing_texts.py). Segments are made so small that short texts have many; every other text
is longer and has them in their real size. Every text is dropped after 200 steps. One step of `--reference-every` is
done with the reference engine. Prints each difference, and how many there are. Exit code 1 if there is any.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from contextlib import nullcontext
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "helpers")]

from growing_texts import ChangingText, all_tokenizers, small_segments  # noqa: E402 - after the path is set

from ggufbpe import Tokenizer  # noqa: E402

STEPS_OF_A_TEXT = 200


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=int, default=1_000_000, help="changes in all (1000000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--reference-every",
        type=int,
        default=20,
        help="one step of so many is done with the reference engine (20)",
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    of_reference = options.steps // options.reference_every
    wrong = 0
    for engine, steps in (("native", options.steps - of_reference), ("reference", of_reference)):
        tokenizers = list(all_tokenizers(engine))
        done = number = 0
        while done < steps:
            name, tokenizer = tokenizers[number % len(tokenizers)]
            count = min(STEPS_OF_A_TEXT, steps - done)
            wrong += run(name, tokenizer, count, f"{options.seed} {number}")
            done, number = done + count, number + 1
            if number % 200 == 0:
                print(f"{engine}: {done} steps, {wrong} differences", flush=True)
        print(
            f"{engine}: {done} steps with {min(number, len(tokenizers))} names and vocabularies", flush=True
        )
    print(f"{options.steps} steps, {wrong} differences")
    return 1 if wrong else 0


def run(name: str, tokenizer: Tokenizer, steps: int, seed: str) -> int:
    """Do the steps of one text; returns the number of differences, and stops at the first."""
    number = int(seed.split()[-1])
    with small_segments() if number % 2 == 0 else nullcontext():
        text = ChangingText(tokenizer, seed, longest=500 if number % 2 == 0 else 5000)
        for step in range(steps):
            wrong = text.step()
            if wrong:
                print(f"{name}, seed {seed!r}, step {step}: {wrong}", flush=True)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
