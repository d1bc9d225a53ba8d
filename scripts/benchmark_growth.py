"""How time grows with the length of a run of one character, for every way of splitting.

    python scripts/benchmark_growth.py [--characters 10000000] [--names llama-bpe gpt-4o …]

llama.cpp's command crashes on many of these texts (peers and reports: from 26,000 characters); the rules still define
the answer. Splitting and encoding a run of n characters must take time linear in n (n log n within one word): a row
shows seconds for a tenth of the characters and for all of them, and their ratio, which is 10 where growth is linear.
Over the package's GPT-2 vocabulary, so the words are merged for real.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from ggufbpe import Tokenizer
from ggufbpe.registry import PRE_TOKENIZERS

RUNS = {"a": "a", "A": "A", "space": " ", "digit": "1", "!": "!", "line break": "\n", "é": "é", "中": "中"}


def main() -> None:
    """Print a row for each name and character."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--characters", type=int, default=10_000_000)
    parser.add_argument("--names", nargs="*", help="pre-tokenizers; by default one of each family")
    options = parser.parse_args()
    base = Tokenizer.from_gguf(Path(__file__).parent.parent / "ggufbpe" / "data" / "gpt2.gguf").vocabulary
    families = {entry.family: name for name, entry in reversed(PRE_TOKENIZERS.items())}
    print(f"{'pre-tokenizer':24} {'character':11} {'tenth s':>9} {'all s':>9} {'ratio':>6}  tokens")
    for name in options.names or families.values():
        tokenizer = Tokenizer(base._replace(pre=name, pre_tokenizer=PRE_TOKENIZERS[name]))
        for label, character in RUNS.items():
            times = []
            for count in (options.characters // 10, options.characters):
                text = character * count
                start = time.perf_counter()
                ids = tokenizer.count(text, add_special=False)
                times.append(time.perf_counter() - start)
            print(
                f"{name:24} {label:11} {times[0]:9.2f} {times[1]:9.2f} {times[1] / times[0]:6.1f}  {ids}",
                flush=True,
            )


if __name__ == "__main__":
    main()
