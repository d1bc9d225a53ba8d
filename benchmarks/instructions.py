"""Instructions per byte of text, for the first pass and for later ones: for machines whose clock is too noisy.

    python benchmarks/instructions.py [--vocab llama-3] [--text FILE] [--megabytes 2] [--tool perf|valgrind]
    python benchmarks/instructions.py --profile callgrind.out && callgrind_annotate callgrind.out

Three processes encode the text not at all, once, and four times; the differences are the first pass and three later
ones. The count is the processor's own (`perf stat`) if the system gives it, else that of valgrind's callgrind, which
takes some fifty times as long and presents a processor without AVX-512.

But: instructions are not time. A lookup that misses the cache is one instruction.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

LATER = 3


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--vocab", nargs="+", default=["llama-3"], metavar="NAME", help="as in run.py")
    parser.add_argument("--text", nargs="+", metavar="[NAME=]FILE", help="texts of your own")
    parser.add_argument("--megabytes", type=float, default=2, help="take so much of each text")
    parser.add_argument("--engine", default="auto", choices=["auto", "native", "reference"])
    parser.add_argument("--tool", choices=["perf", "valgrind"], help="by default the first that works")
    parser.add_argument("--profile", metavar="FILE", help="keep callgrind's profile of all passes there")
    options = parser.parse_args()
    if options.profile:
        options.tool = "valgrind"
    tool = options.tool or available_tool()
    from cases import cases
    from run import chosen_texts

    left_out: dict[str, str] = {}
    print(f"Instructions a byte, counted by {tool}.\n\n| vocabulary | text | first pass | later passes |")
    print("| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for case in cases(options.vocab, Path(folder), left_out):
            for text in chosen_texts(options.text, int(options.megabytes * 1e6)):
                path = Path(folder) / "text"
                path.write_text(text.text, encoding="utf-8")
                first, later = per_byte(tool, options.engine, case.path, path, options.profile or os.devnull)
                print(f"| {case.name} | {text.name} | {first:.1f} | {later:.1f} |", flush=True)
    for name, reason in left_out.items():
        print(f"Left out: {name} ({reason}).")


def per_byte(tool: str, engine: str, vocabulary: Path, text: Path, profile: str) -> tuple[float, float]:
    """Instructions per byte of the text in the first pass, and in each later one."""
    nothing, first, all_ = (
        count(tool, [engine, str(vocabulary), str(text), str(passes)], profile)
        for passes in (0, 1, 1 + LATER)
    )
    size = text.stat().st_size
    return (first - nothing) / size, (all_ - first) / LATER / size


def count(tool: str, arguments: list[str], profile: str) -> int:
    """The instructions of a whole process that encodes; raises `RuntimeError` if they are not reported."""
    child = [sys.executable, str(Path(__file__).resolve()), "--child", *arguments]
    command, pattern = {
        "perf": (["perf", "stat", "-x", ",", "-e", "instructions:u"], r"^(\d+),.*instructions"),
        "valgrind": (
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}"],
            r"Collected : (\d+)",
        ),
    }[tool]
    environment = {**os.environ, "PYTHONHASHSEED": "0", "LC_ALL": "C"}
    ran = subprocess.run([*command, *child], env=environment, stderr=subprocess.PIPE, text=True, check=False)
    found = re.search(pattern, ran.stderr, re.MULTILINE)
    if ran.returncode or not found:
        raise RuntimeError(f"{tool} gives no count: {ran.stderr[-2000:]}")
    return int(found[1])


def available_tool() -> str:
    """perf if it can count, else valgrind. `SystemExit` if there is neither."""
    if shutil.which("perf"):
        command = ["perf", "stat", "-x", ",", "-e", "instructions:u", "true"]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if re.search(r"^\d+,", ran.stderr, re.MULTILINE):
            return "perf"
    if shutil.which("valgrind"):
        return "valgrind"
    raise SystemExit("instructions.py: neither perf can count here, nor is valgrind installed")


def child(engine: str, vocabulary: str, text: str, passes: str) -> None:
    """The work of the measured process."""
    import gc

    from cases import Case
    from peers import our_tokenizer
    from timing import FIRST_TEXT

    warnings.simplefilter("ignore")
    gc.disable()
    tokenizer = our_tokenizer(Case("measured", Path(vocabulary), Path()), engine)
    content = Path(text).read_text(encoding="utf-8")
    tokenizer.encode_to_numpy(FIRST_TEXT)
    for _ in range(int(passes)):
        tokenizer.encode_to_numpy(content, add_special=False, parse_special=False)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        main()
