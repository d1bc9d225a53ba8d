"""Everything that should be fast, measured in one run beside its peers, with ids checked first.

    python scripts/reference.py prepare --vocabs --library --command
    pip install '.[bench]'
    python benchmarks/run.py [--vocab NAME …] [--text FILE …] [--part NAME …] [--json results.json] [--quick]

What each row means and how to read it: docs/performance.md. Parts that are not installed or not prepared are left out,
and the output says so. Ends with status 1 if our ids differ from llama.cpp's; a missed goal is not an error.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cases
import encoding
import fresh
import machine
import opening
import peers
import scaling
import tables
import texts
from ids import check_ids
from timing import say

from ggufbpe import GGUFWarning

PARTS = ("encode", "fresh", "short", "open", "process", "threads")
OF_PEERS = {"encode", "fresh", "short"}  # parts with a row for every engine
QUICK = {"megabytes": 0.2, "long_megabytes": 0.5, "rounds": 1}
STACK = 100 << 20  # bytes; llama.cpp needs more than the usual 8 MB for a long word


def main() -> int:
    """Measure and print."""
    options = parse(sys.argv[1:])
    warnings.simplefilter("ignore", GGUFWarning)
    raise_stack_limit()
    with tempfile.TemporaryDirectory() as folder:
        try:
            for results in measure(options, Path(folder)):  # as far as it got
                if options.json:
                    Path(options.json).write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        except (OSError, ValueError) as error:
            raise SystemExit(f"run.py: {error}") from None
    tables.print_all(results)
    wrong = [check for check in results["ids"] if check["engine"] == peers.OURS and not check["equal"]]
    return 1 if wrong else 0


def parse(arguments: list[str]) -> argparse.Namespace:
    """The options; explicit ones override `--quick`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    known = ", ".join(cases.NAMES)
    parser.add_argument("--vocab", nargs="+", metavar="NAME", help=f"of {known}; or GGUF files; default: all")
    parser.add_argument("--text", nargs="+", metavar="[NAME=]FILE", help="texts of your own, UTF-8")
    parts = f"of {', '.join(PARTS)}; default: all"
    parser.add_argument("--part", nargs="+", metavar="NAME", choices=PARTS, default=PARTS, help=parts)
    parser.add_argument("--json", metavar="FILE", help="write all figures there, too")
    parser.add_argument("--quick", action="store_true", help="small texts, one round: to see that it works")
    parser.add_argument("--engine", default="auto", choices=["auto", "native", "reference"], help="ours")
    parser.add_argument("--megabytes", type=float, default=8, help="size of each text")
    parser.add_argument("--long-megabytes", type=float, default=40, help="size of the one long text")
    parser.add_argument("--rounds", type=int, default=5, help="how often everything is measured in turn")
    if "--quick" in arguments:
        parser.set_defaults(**QUICK)
    return parser.parse_args(arguments)


def raise_stack_limit() -> None:
    """llama.cpp's regular expressions recurse for each character of a word."""
    try:
        import resource
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    wanted = STACK if hard == resource.RLIM_INFINITY else min(STACK, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_STACK, (wanted, hard))


def measure(options: argparse.Namespace, folder: Path) -> Iterator[dict[str, Any]]:
    """All figures of all vocabularies and texts, in JSON types: first none, then after each vocabulary."""
    size, long_size = int(options.megabytes * 1e6), int(options.long_megabytes * 1e6)
    long_texts = chosen_texts(options.text, max(size, long_size))
    results: dict[str, Any] = {
        "machine": machine.machine(),
        "versions": machine.versions(),
        "settings": {"rounds": options.rounds, "engine": options.engine, "parts": list(options.part)},
        "texts": [
            {"name": text.name, "source": text.source, "bytes": text.cut(size).size, "long_bytes": text.size}
            for text in long_texts
        ],
        "left_out": {},
    }
    results |= {part: [] for part in ("ids", *PARTS, "rows")}
    left_out = results["left_out"]
    yield results
    openers = installed(peers.openers(options.engine), left_out)
    if not OF_PEERS & set(options.part):  # ids are compared anyway
        openers = {name: opener for name, opener in openers.items() if name in (peers.OURS, peers.LLAMA_CPP)}
    for case in cases.cases(options.vocab or list(cases.NAMES), folder, left_out):
        measure_case(case, long_texts, openers, options, folder, results)
        yield results


def measure_case(
    case: cases.Case,
    long_texts: list[texts.Text],
    openers: dict[str, peers.Opener],
    options: argparse.Namespace,
    folder: Path,
    results: dict[str, Any],
) -> None:
    """All figures of one vocabulary, put into `results`; ids are checked before anything is timed."""
    engine, rounds, left_out = options.engine, options.rounds, results["left_out"]
    size, long_size = int(options.megabytes * 1e6), int(options.long_megabytes * 1e6)
    short_texts = [text.cut(size) for text in long_texts]
    results["settings"]["engine"] = peers.our_engine_name(peers.our_tokenizer(case, engine))
    say(f"{case.name}: ids")
    opened, usable = encoding.open_all(case, openers, left_out)
    checks = {text.name: check_ids(case, text, opened) for text in short_texts}
    results["ids"] += [check for of_text in checks.values() for check in of_text]
    for each in opened.values():
        each.close()
    if "encode" in options.part:
        for text in short_texts:
            say(f"{case.name}: encode {text.name}")
            figures = encoding.passes(case, text, usable, rounds)
            add(results, "encode", (figures, encoding.pass_rows(figures, checks[text.name])))
    if "fresh" in options.part:
        for text in short_texts:
            say(f"{case.name}: fresh processes, {text.name}")
            add(results, "fresh", fresh.fresh(case, text, list(usable), engine, rounds, folder))
    if "short" in options.part:
        say(f"{case.name}: 50 characters")
        add(results, "short", encoding.short(case, usable, engine, rounds))
    if "open" in options.part:
        say(f"{case.name}: opening")
        add(results, "open", opening.opening(case, engine, rounds))
    if "process" in options.part:
        say(f"{case.name}: whole processes")
        add(results, "process", opening.processes(case, 2 * rounds, left_out))
    if "threads" in options.part:
        say(f"{case.name}: two threads")
        pairs = [(text, at_least(long, long_size)) for text, long in zip(short_texts, long_texts)]
        add(results, "threads", scaling.scaling(case, pairs, engine, rounds, left_out))


def add(results: dict[str, Any], part: str, found: tuple[list[Any], list[Any]]) -> None:
    """Put figures and rows where they belong."""
    figures, rows = found
    results[part] += figures
    results["rows"] += rows


def chosen_texts(arguments: list[str] | None, size: int) -> list[texts.Text]:
    """The given texts, or else those of the machine."""
    if arguments:
        return [texts.given_text(argument, size) for argument in arguments]
    return texts.machine_texts(size)


def at_least(text: texts.Text, size: int) -> texts.Text:
    """The text, repeated until it has `size` bytes. Only for threads: a repeated text is in the caches after once."""
    times = -(-size // max(text.size, 1))
    return text._replace(text=text.text * times).cut(size) if times > 1 else text


def installed(openers: dict[str, peers.Opener], left_out: dict[str, str]) -> dict[str, peers.Opener]:
    """The engines whose packages are installed."""
    for name, package in peers.PACKAGES.items():
        if machine.versions()[package] is None:
            left_out[name] = f"the package {package} is not installed"
    return {name: opener for name, opener in openers.items() if name not in left_out}


if __name__ == "__main__":
    sys.exit(main())
