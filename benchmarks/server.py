"""`ggufbpe serve` beside the real llama-server, in turn: requests a second, waiting, processor time, memory.

    python scripts/reference.py prepare --older --vocabs
    python benchmarks/server.py [--vocab llama-3] [--rounds 5] [--seconds 3] [--workers N]

llama-server gets a model with weights of a few megabytes (tests/makers/make_tiny_model.py) and its own defaults, and so
does ours. Both are asked for /tokenize of the same text by wrk (Debian's package), which takes a part of the machine
itself. Rounds alternate between the two, each after the other has come to rest; of each figure the median is shown.
Answers are compared first.

Processor time of a request is what stays the same where others use the machine, too: requests a second compare what
one thread gets with what several get.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

from cases import ROOT

sys.path.insert(0, str(ROOT / "tests" / "makers"))

from make_tiny_model import GPT2, make_tiny_model
from reference import llama_server_command, vocabulary

SIZES, CONNECTIONS = (1_000, 100_000), (1, 64)  # bytes of a text; at once
_IDLE = 20_000  # microseconds of processor time in 0.3 s
_SCRIPT = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = io.open("{body}", "rb"):read("*a")
function done(summary, latency, requests)
  io.write(string.format("\\n%d %d %d %d %d", summary.requests, summary.duration, latency:percentile(50),
    latency:percentile(99), summary.errors.status + summary.errors.timeout + summary.errors.read))
end
"""


class Figures(NamedTuple):
    """What one server did in one round; times in microseconds."""

    per_second: float
    p50: float
    p99: float
    processor: float  # time of a request
    errors: int


class Server:
    """A server that runs, and the processor time and memory that it takes, with its children."""

    def __init__(self, command: list[str], log: Path) -> None:
        with log.open("wb") as file:
            self.process = subprocess.Popen(command, stdout=file, stderr=file)
        end = time.monotonic() + 60
        while not (
            found := re.search(r"listening (?:at|on) (http://[\d.:]+)", log.read_text(errors="replace"))
        ):
            if self.process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"{command[0]} does not start: {log.read_text(errors='replace')[-500:]}")
            time.sleep(0.05)
        self.url = found[1] + "/tokenize"

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()

    def ids(self, body: bytes) -> Any:
        with urlopen(Request(self.url, body), timeout=60) as answer:
            return json.load(answer)["tokens"]

    def processor_time(self) -> float:
        """Microseconds so far."""
        ticks = 0
        for pid in self._all():
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks * 1e6 / os.sysconf("SC_CLK_TCK")

    def _settle(self) -> None:
        """Wait until it does nothing: llama-server goes on with requests whose clients are gone."""
        before = -math.inf
        while (now := self.processor_time()) > before + _IDLE:
            before = now
            time.sleep(0.3)

    def peak_memory(self) -> float:
        """Megabytes."""
        status = [Path(f"/proc/{pid}/status").read_text() for pid in self._all()]
        return sum(int(re.findall(r"VmHWM:\s+(\d+)", text)[0]) for text in status) / 1024

    def _all(self) -> list[int]:
        own = self.process.pid
        children = Path(f"/proc/{own}/task/{own}/children").read_text().split()
        return [own, *map(int, children)]

    def measured(self, script: Path, connections: int, seconds: int) -> Figures:
        before = self.processor_time()
        command = [
            "wrk",
            "-t1",
            f"-c{connections}",
            f"-d{seconds}s",
            "--timeout",
            "30s",
            "-s",
            str(script),
            self.url,
        ]
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        requests, duration, p50, p99, errors = map(int, shown.split()[-5:])
        processor = (self.processor_time() - before) / max(requests, 1)
        self._settle()
        return Figures(requests * 1e6 / duration, max(p50, 1), max(p99, 1), processor, errors)


def bodies() -> dict[int, bytes]:
    """Requests by the size of their texts, which are this project's documentation."""
    text = b"".join(path.read_bytes() for path in sorted((ROOT / "docs").glob("*.md")))
    parts = {size: text[:size].decode("utf-8", "ignore") for size in SIZES}
    return {size: json.dumps({"content": part}).encode() for size, part in parts.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--vocab", help="of scripts/reference.py, such as llama-3 (default: GPT-2's)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3, help="of each round")
    parser.add_argument("--workers", type=int, default=1, help="processes of ours")
    arguments = parser.parse_args()
    if shutil.which("wrk") is None:
        raise SystemExit("wrk sends the requests: apt-get install wrk")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        model = make_tiny_model(
            folder / "tiny.gguf", vocabulary(arguments.vocab) if arguments.vocab else GPT2
        )
        theirs = [str(llama_server_command()), "-m", str(model), "-c", "512", "--port", "8291"]
        ours = [sys.executable, "-m", "ggufbpe", "serve", "-m", str(model), "--port", "0"]
        ours += ["--workers", str(arguments.workers)]
        servers = [
            stack.enter_context(Server(command, folder / name))
            for name, command in (("llama-server", theirs), ("ggufbpe", ours))
        ]
        _compare(servers, folder, arguments.rounds, arguments.seconds)


def _compare(servers: list[Server], folder: Path, rounds: int, seconds: int) -> None:
    """Print a row for each size and number of connections: llama-server, ours, and how many times better."""
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"load {load}; llama-server / ggufbpe = ratio; waiting and processor time in microseconds")
    print("| text | connections | requests a second | p50 | p99 | processor time of a request |")
    print("| --- | --- | --- | --- | --- | --- |")
    for size, body in bodies().items():
        assert servers[0].ids(body) == servers[1].ids(body)
        (folder / "body").write_bytes(body)
        script = folder / "wrk.lua"
        script.write_text(_SCRIPT.format(body=folder / "body"))
        for connections in CONNECTIONS:
            found = [[each.measured(script, connections, seconds) for each in servers] for _ in range(rounds)]
            assert not any(figures.errors for pair in found for figures in pair), found
            columns = [
                _column([(getattr(theirs, name), getattr(ours, name)) for theirs, ours in found], name)
                for name in ("per_second", "p50", "p99", "processor")
            ]
            print(f"| {size} | {connections} | {' | '.join(columns)} |", flush=True)
    peak = [server.peak_memory() for server in servers]
    print(f"peak memory, MB: {peak[0]:.0f} / {peak[1]:.0f}")


def _column(pairs: list[tuple[float, float]], name: str) -> str:
    """Medians of both, and the median of the ratios of the rounds, which were measured one after the other."""
    theirs, ours = (statistics.median(values) for values in zip(*pairs))
    ratio = statistics.median(b / max(a, 1e-9) if name == "per_second" else a / b for a, b in pairs)
    return f"{theirs:,.0f} / {ours:,.0f} = {ratio:.1f} x"


if __name__ == "__main__":
    main()
