"""A child process that is asked through its pipes: answers, an end within one, and questions that it never reads."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from ggufbpe.analysis.oracles.piped_child import Crash, PipedChild

# Answers a message with itself; "die" with the beginning of an answer, and "hang" with nothing.
ECHO = """
import sys, time
questions, answers = sys.stdin.buffer, sys.stdout.buffer
while head := questions.read(8):
    message = questions.read(int.from_bytes(head, "little"))
    if message == b"hang":
        time.sleep(60)
    answers.write(head + message[: 1 if message == b"die" else None])
    answers.flush()
    if message == b"die":
        sys.exit(3)
"""


@pytest.mark.parametrize(
    ("message", "seconds", "answer"),
    [
        (b"a", 60.0, b"a"),
        (b"", 60.0, b""),
        (b"x" * (1 << 20), 60.0, b"x" * (1 << 20)),
        (b"die", 60.0, Crash(3)),
        (b"hang", 0.3, Crash(None)),
    ],
)
def test_a_message_has_one_answer(message: bytes, seconds: float, answer: bytes | Crash) -> None:
    process = subprocess.Popen([sys.executable, "-c", ECHO], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child = PipedChild(process)
    try:
        assert child.ask(b"first", 60.0) == b"first"
        assert child.ask(message, seconds) == answer
        assert (process.poll() is None) is isinstance(answer, bytes)
    finally:
        child.end()


@pytest.mark.parametrize(
    "code", ["import time; time.sleep(20)", "import os, time; os.close(1); time.sleep(20)"]
)
@pytest.mark.parametrize("size", [1, 1 << 20])  # more than a pipe holds
def test_a_child_that_neither_reads_nor_ends_is_ended(code: str, size: int) -> None:
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    started = time.monotonic()
    assert PipedChild(process).ask(b"x" * size, 0.3) == Crash(None)
    assert time.monotonic() - started < 15
    assert process.poll() is not None


def test_a_crash_says_why_there_is_no_answer() -> None:
    assert [Crash(3).reason, Crash(None).reason] == ["ended with status 3", "no answer in time"]
