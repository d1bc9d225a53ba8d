"""Random texts and chats that must fit: does brute force find the same?

    python scripts/compare_budgets.py [--cases 100000] [--seed 1] [--first 0]

Of ten cases, four cut a text (`truncate` gives the longest part that fits), four divide one (`split` covers it in
order, and each part fits), and two drop messages of a chat (`fit_chat` drops the fewest): see
tests/helpers/budget_cases.py. Models of every kind take turns, with the compiled engine. Prints each difference, and
how many there are. Exit code 1 if there is any.
"""

from __future__ import annotations

import argparse
import random
import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "helpers")]

import pytest  # noqa: E402 - after the path is set
from budget_cases import TEMPLATES, check_fit_chat, check_split, check_truncate  # noqa: E402
from budget_texts import KINDS, tokenizer_of_kind  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cases", type=int, default=100_000, help="cases in all (100000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--first", type=int, default=0, help="begin with this case, to go on or to share the work"
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    kinds = [kind for kind in KINDS if kind != "reference"]
    wrong = 0
    for number in range(options.first, options.first + options.cases):
        dice = random.Random(f"{options.seed} {number}")
        kind, share = kinds[number // 10 % len(kinds)], number % 10
        try:
            if share < 4:
                check_truncate(tokenizer_of_kind(kind), dice)
            elif share < 8:
                check_split(tokenizer_of_kind(kind), dice)
            else:
                check_fit_chat(TEMPLATES[number % len(TEMPLATES)], dice)
        except (AssertionError, pytest.fail.Exception) as error:
            wrong += 1
            print(f"seed {options.seed}, case {number}, {kind}: {error}", flush=True)
        if (number + 1) % 5000 == 0:
            print(f"up to case {number + 1}: {wrong} differences", flush=True)
    print(f"{options.cases} cases, {wrong} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
