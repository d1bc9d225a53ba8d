"""How long a chat takes from messages to ids, without encoding its prompt, under each of the recorded templates.

    python benchmarks/chats.py [--rounds N]

fixtures/chats -> [this file] -> microseconds: for a chat of 20 messages and a short one, the median over the
templates and the slowest. Each template's time is the median of the rounds, without the analysis of the template
on first use.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import warnings
from pathlib import Path
from typing import Any

from timing import seconds

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "makers"))

from record_chats import VOCABULARY, read_chats

from ggufbpe import ChatError, GGUFWarning, Tokenizer

WORDS = "some words of a turn that is neither long nor short, as most are. "


TURNS = [{"role": ("user", "assistant")[n % 2], "content": f"{n}: {WORDS * 2}"} for n in range(19)]
CHATS = {
    "20 messages": [{"role": "system", "content": "You are terse."}, *TURNS],
    "one message": [{"role": "user", "content": "Hi"}],
}


def beyond_encoding(tok: Tokenizer, template: str, chat: list[dict[str, str]], rounds: int) -> float | None:
    """Microseconds; None if the template refuses the chat."""
    try:
        prompt = tok.chats.prompt({"messages": chat}, template)
    except ChatError:
        return None

    def both() -> Any:
        return tok.encode(tok.chats.prompt({"messages": chat}, template))

    taken = [seconds(both) - seconds(lambda: tok.encode(prompt)) for _ in range(rounds)]
    return statistics.median(taken) * 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GGUFWarning)
        tok = Tokenizer.from_gguf(VOCABULARY)
    templates: dict[str, str] = read_chats("templates")
    for name, chat in CHATS.items():
        taken = {
            template: micros
            for template, source in templates.items()
            if (micros := beyond_encoding(tok, source, chat, arguments.rounds)) is not None
        }
        slowest = max(taken, key=lambda template: taken[template])
        print(
            f"{name}: {statistics.median(taken.values()):.0f} µs beyond encoding (median of {len(taken)} templates), "
            f"at most {taken[slowest]:.0f} µs ({slowest})"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
