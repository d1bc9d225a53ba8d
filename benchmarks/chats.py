"""How long a chat takes from messages to ids, without encoding its prompt, under each of the recorded templates.

    python benchmarks/chats.py [--rounds N]

fixtures/chats -> [this file] -> microseconds beyond encoding, for a chat of 20 messages and a short one: the median
over the templates and the slowest; and how many such chats go from messages to ids in a second, on one core, in a row.
Each template's times are those of the fastest round of many chats in a row, without the analysis of the template on
first use. It is the time of the CPU, so other programs on the machine matter less.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import warnings
from pathlib import Path
from time import process_time
from typing import Any

from timing import seconds_of_one

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "makers"))

from record_chats import VOCABULARY, read_chats

from ggufbpe import ChatError, GGUFWarning, Tokenizer

WORDS = "some words of a turn that is neither long nor short, as most are. "


TURNS = [{"role": ("user", "assistant")[n % 2], "content": f"{n}: {WORDS * 2}"} for n in range(19)]
CHATS = {
    "20 messages": [{"role": "system", "content": "You are terse."}, *TURNS],
    "one message": [{"role": "user", "content": "Hi"}],
}


def times(
    tok: Tokenizer, template: str, chat: list[dict[str, str]], rounds: int
) -> tuple[float, float] | None:
    """Microseconds beyond encoding, and of all in a row; None if the template refuses the chat."""
    try:
        prompt = tok.chats.prompt({"messages": chat}, template)
    except ChatError:
        return None

    def both() -> Any:
        return tok.encode(tok.chats.prompt({"messages": chat}, template))

    def encoding() -> Any:
        return tok.encode(prompt)

    whole = min(seconds_of_one(both, process_time) for _ in range(rounds))
    return 1e6 * (whole - min(seconds_of_one(encoding, process_time) for _ in range(rounds))), 1e6 * whole


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GGUFWarning)
        tok = Tokenizer.from_gguf(VOCABULARY)
    templates: dict[str, str] = read_chats("templates")
    for name, chat in CHATS.items():
        taken = {
            template: micros
            for template, source in templates.items()
            if (micros := times(tok, source, chat, arguments.rounds)) is not None
        }
        beyond = {template: micros for template, (micros, _) in taken.items()}
        slowest = max(beyond, key=lambda template: beyond[template])
        a_second = sorted(1e6 / micros for _, micros in taken.values())
        print(
            f"{name}: {statistics.median(beyond.values()):.0f} µs beyond encoding (median of {len(taken)} templates), "
            f"at most {beyond[slowest]:.0f} µs ({slowest}); {statistics.median(a_second):,.0f} chats a second "
            f"({a_second[0]:,.0f} to {a_second[-1]:,.0f}; {sum(rate >= 10_000 for rate in a_second)} templates "
            "10,000 or more)"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
