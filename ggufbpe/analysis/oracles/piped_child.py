"""A child process that is asked through its pipes, one message at a time; its crash is an answer like any other."""

from __future__ import annotations

import subprocess
import threading
from contextlib import suppress
from typing import IO, NamedTuple


class Crash(NamedTuple):
    """A process gave no answer: its exit status, or None if it took too long."""

    status: int | None

    @property
    def reason(self) -> str:
        return "no answer in time" if self.status is None else f"ended with status {self.status}"


class PipedChild:
    """A process that answers messages: each of them is a length of 8 bytes, little-endian, and that many bytes."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        """`process` has pipes as its standard input and output."""
        self._process = process

    def ask(self, message: bytes, seconds: float) -> bytes | Crash:
        """Return the answer to a message; a `Crash` if there is none in that time, after which the process is gone."""
        late = threading.Event()

        def end_late() -> None:
            late.set()
            self._process.kill()

        timer = threading.Timer(seconds, end_late)  # of writing, too: a process that hangs reads nothing
        timer.start()
        try:
            return self._answer(message)
        except (EOFError, BrokenPipeError):
            status = self._process.wait()
            self.end()
            return Crash(None if late.is_set() else status)
        finally:
            timer.cancel()

    def _answer(self, message: bytes) -> bytes:
        """Write a message and read its answer, however long that takes."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(len(message).to_bytes(8, "little") + message)
        stdin.flush()
        return _read(stdout, int.from_bytes(_read(stdout, 8), "little"))

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()


def _read(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data
