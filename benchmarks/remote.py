"""What opening a remote model costs: bytes that are asked for, and time, beside what its metadata alone would take.

    python benchmarks/remote.py [MODEL.gguf …] [--rounds 5]

A server on the loopback (tests/helpers/remote_server.py), in a process of its own, has each model as a file of 40 GB,
of which only the metadata is there. All its answers together come at a rate, each after a latency. The time is that of
`remote_source` with an empty cache, in a process that has imported what it needs, and beside it, in turn, that of one
plain request for exactly the metadata's bytes.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import socket
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

from cases import GPT2, ROOT
from timing import median_ratio, seconds

sys.path.insert(0, str(ROOT / "tests" / "helpers"))

from remote_server import RemoteServer

from ggufbpe.gguf.reader import GGUFFile
from ggufbpe.hub.name_grammar import Address
from ggufbpe.hub.remote.opening import remote_source

SIZE = 40 << 30
LINES = [  # bytes a second, seconds of latency
    *((1e6, 0.1), (1e6, 0.02), (5e6, 0.05), (5e6, 0.02)),
    *((20e6, 0.02), (20e6, 0.05), (50e6, 0.01), (50e6, 0.02)),
]


def main() -> None:
    """Print a row for each model and line as it is measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path, default=[GPT2])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(
        f"{'model':26} {'MB/s':>5} {'ms':>4} {'bytes':>10} {'asked':>6} {'requests':>8} {'plain s':>8} {'time':>6}"
    )
    with tempfile.TemporaryDirectory() as cache:
        os.environ["GGUFBPE_CACHE_DIR"] = cache
        for path in options.models:
            with GGUFFile(path) as file:
                end = file.metadata_end
            for rate, latency in LINES:
                with serving(path.read_bytes()[:end], rate, latency) as server:
                    row = measured(server, end, cache, options.rounds)
                print(f"{path.stem:26} {rate / 1e6:5.0f} {latency * 1000:4.0f} {end:10} {row}", flush=True)


@contextmanager
def serving(data: bytes, rate: float, latency: float) -> Iterator[Connection]:
    """The server; for what is sent, it answers its port, and the requests and bytes that it was asked for since."""
    ours, its = multiprocessing.Pipe()
    process = multiprocessing.Process(target=serve, args=(its, data, rate, latency), daemon=True)
    process.start()
    try:
        yield ours
    finally:
        process.terminate()
        process.join()


def serve(line: Connection, data: bytes, rate: float, latency: float) -> None:
    """Serve, and answer what `serving` says, for ever."""
    server = RemoteServer()
    server.put("/model.gguf", data, size=SIZE, rate=rate, latency=latency)
    while line.recv():
        line.send((server.port, len(server.requests), server.asked))
        server.requests.clear()


def measured(server: Connection, end: int, cache: str, rounds: int) -> str:
    """The shares of bytes and of time, with the number of requests."""
    ours, plain = [], []
    server.send(True)
    port, _, _ = server.recv()
    remote_source(Address(f"http://127.0.0.1:{port}/model.gguf"))  # what is imported late
    for _ in range(rounds):
        plain.append(seconds(lambda: read_plainly(port, end)))
        shutil.rmtree(cache)
        server.send(True)
        server.recv()
        ours.append(seconds(lambda: remote_source(Address(f"http://127.0.0.1:{port}/model.gguf"))))
    server.send(True)
    _, requests, asked = server.recv()
    ratio = median_ratio(ours, plain)
    return f"{asked / end:6.3f} {requests:8} {statistics.median(plain):8.3f} {ratio:6.2f}"


def read_plainly(port: int, size: int) -> None:
    """One request for exactly `size` bytes, by a socket."""
    with socket.create_connection(("127.0.0.1", port)) as line:
        head = (
            f"GET /model.gguf HTTP/1.1\r\nHost: x\r\nRange: bytes=0-{size - 1}\r\nConnection: close\r\n\r\n"
        )
        line.sendall(head.encode())
        while line.recv(1 << 16):
            pass


if __name__ == "__main__":
    main()
