"""`ggufbpe serve` under load for some minutes: no error, and memory that stays flat.

    python scripts/soak_server.py [--minutes 10] [--clients 64] [--idle 1000]

Clients ask with random texts, send what is no JSON, no UTF-8, nested too deeply, too long or shorter than it says, send
half and wait, or hang up; --idle more connections send nothing. Prints the server's memory on the way, and what was
answered by status. Exit code 1 where a request got a status that it does not call for, where the log has a failure, or
where memory grows: the least of the last two fifths of the time is over 48 MB more than of the first two.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import IO

from reference import ROOT

READ_TIMEOUT = 10  # seconds; a body of some megabytes takes one where others use the machine
FLAT = 48  # MB, as in soak.py
CLOSED = 0  # in place of a status
VOCABULARIES = [
    ROOT / "ggufbpe" / "models" / "gpt2.gguf",
    *(ROOT / "fixtures" / "vocabs" / f"{name}.gguf" for name in ("wpm", "rwkv")),
]
LETTERS = "etaoin shrdlu,.0123\n\t者你好äéß😀\u200b\0<|>"

Asked = tuple[bytes, set[int]]  # what is sent, and the statuses that it may get


def _post(path: str, body: bytes, length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    return f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {size}\r\n\r\n".encode() + body


def _sound(dice: random.Random) -> Asked:
    """A request that is in order."""
    text = "".join(dice.choices(LETTERS, k=dice.randrange(100))) * dice.choice((1, 1, 1, 10, 300))
    ids = [dice.randrange(500) for _ in range(dice.randrange(100))]
    chat = {"messages": [{"role": "user", "content": text}]}
    path, body = dice.choice(
        [
            *[("/tokenize", {"content": text, "with_pieces": dice.random() < 0.5})] * 5,
            ("/tokenize", {"prompt": text, "model": dice.choice(("gpt2", "wpm"))}),
            ("/detokenize", {"tokens": ids}),
            ("/apply-template", chat),
            ("/v1/messages/count_tokens", chat),
            ("/v1/responses/input_tokens", {"input": text}),
            ("/v1/count", {"texts": [text] * 20}),
            ("/v1/tokens", {"text": text, "model": dice.choice(("gpt2", "rwkv"))}),
            ("/v1/word", {"text": f"a{text[:1000]}", "token": 0, "model": dice.choice(("gpt2", "rwkv"))}),
        ]
    )
    if dice.random() < 0.01:  # a long answer, of which the client takes only the head
        path, body = "/tokenize", {"content": f"a{text[:99]}" * 5000, "with_pieces": True}
    return _post(path, json.dumps(body).encode()), {200, 429}


def _unsound(dice: random.Random) -> Asked:
    """One that is not, or that never comes."""
    return dice.choice(
        [
            (_post("/tokenize", b"[" * dice.randrange(100_000)), {400}),
            (_post("/tokenize", b'{"content": "\xff"}'), {400}),
            (_post("/tokenize", b'{"content": 1' + b"0" * 10_000 + b"}"), {400}),
            (_post("/tokenize", dice.randbytes(1000)), {400}),
            (_post("/tokenize", b"{}", 1 << 40), {413}),
            (_post("/tokenize", b'{"content": "a"}', 1000), {408}),
            (_post("/v1/count", b'{"texts": "a"}', 100_000), {408}),
            (_post("/tokenize", b'{"content": "a"}')[: dice.randrange(1, 60)], {408}),
            (dice.randbytes(1000), {400, 408}),
            (b"GET / HTTP/1.1\r\nx: " + b"a" * 1_000_000, {431}),
            (_post("/v1/word", json.dumps({"text": "a" * 100_000, "token": 1}).encode()), {413, 429}),
            (_post("/detokenize", b'{"tokens": [-1]}'), {400}),
            (_post("/v1/diff", b'{"models": ["gpt2", "/etc/passwd"]}'), {400}),
        ]
    )


async def _client(port: int, end: float, seed: int, found: Counter[int], wrong: list[str]) -> None:
    dice = random.Random(seed)
    while time.monotonic() < end:
        data, expected = (_sound if dice.random() < 0.8 else _unsound)(dice)
        status = await _status(port, data, hangs_up=dice.random() < 0.02)
        found[status] += 1
        if status != CLOSED and status not in expected:
            wrong.append(f"{status} for {data[:200]!r}")


async def _status(port: int, data: bytes, hangs_up: bool) -> int:
    """The status of the answer; `CLOSED` without one."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        if hangs_up:
            return CLOSED
        head = await asyncio.wait_for(reader.readline(), 60)
        return int(head.split()[1]) if head else CLOSED
    except ConnectionError:
        return CLOSED
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def _idle(port: int, end: float, count: int) -> None:
    """So many connections that send nothing; the server hangs up on each in time, and it comes again."""
    while time.monotonic() < end:
        opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(count)]
        for reader, writer in opened:
            with contextlib.suppress(ConnectionError):
                await asyncio.wait_for(reader.read(), READ_TIMEOUT * 10)
            writer.close()


async def _memory(pid: int, begin: float, end: float, found: list[int]) -> None:
    """Kilobytes, twenty times."""
    for step in range(1, 21):
        await asyncio.sleep(max(0.0, begin + (end - begin) * step / 20 - time.monotonic()))
        status = Path(f"/proc/{pid}/status").read_text()
        found.append(int(status.partition("VmRSS:")[2].split()[0]))
        print(f"{step * 5} %: {found[-1] // 1024} MB", flush=True)


async def _soak(arguments: argparse.Namespace, process: subprocess.Popen[bytes], port: int) -> list[str]:
    begin = time.monotonic()
    end = begin + arguments.minutes * 60
    found: Counter[int] = Counter()
    memory: list[int] = []
    wrong: list[str] = []
    clients = [_client(port, end, seed, found, wrong) for seed in range(arguments.clients)]
    await asyncio.gather(_memory(process.pid, begin, end, memory), _idle(port, end, arguments.idle), *clients)
    print(f"answers by status (0: none): {dict(sorted(found.items()))}")
    before, after = min(memory[1:8]), min(memory[12:])
    if after > before + FLAT * 1024:
        wrong.append(f"memory grew from {before} to {after} kB")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--idle", type=int, default=1000, help="connections that send nothing")
    arguments = parser.parse_args()
    command = [sys.executable, "-m", "ggufbpe", "serve", "--port", "0", "--read-timeout", str(READ_TIMEOUT)]
    for path in VOCABULARIES:
        command += ["-m", str(path)]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stderr=log)
        try:
            while b"\n" not in (told := _read(log)):
                time.sleep(0.1)
            port = int(told.partition(b"127.0.0.1:")[2].split()[0])
            wrong = asyncio.run(_soak(arguments, process, port))
        finally:
            process.terminate()
            code = process.wait(60)
        wrong += [
            line.decode() for line in _read(log).splitlines() if b'"error"' in line or b"Traceback" in line
        ]
    if code:
        wrong.append(f"the server ended with {code}")
    print("\n".join(wrong[:20]) or "all is well")
    return int(bool(wrong))


def _read(log: IO[bytes]) -> bytes:
    return os.pread(log.fileno(), 1 << 24, 0)


if __name__ == "__main__":
    sys.exit(main())
