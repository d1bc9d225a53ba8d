"""A child process that is asked through its pipes, one message at a time; its crash is an answer like any other."""

from __future__ import annotations

import subprocess
import threading
from contextlib import suppress
from queue import Empty, SimpleQueue
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
        self._messages: SimpleQueue[bytes | None] = SimpleQueue()
        self._answers: SimpleQueue[bytes | None] = SimpleQueue()
        # writes as well as reads, as a process that hangs may take only the beginning of a long message
        self._thread = threading.Thread(target=self._exchange, daemon=True)
        self._thread.start()

    def ask(self, message: bytes, seconds: float) -> bytes | Crash:
        """Return the answer to a message; a `Crash` if there is none in that time, after which the process is gone."""
        self._messages.put(message)
        status = None
        try:
            answer = self._answers.get(timeout=seconds)
            if answer is not None:
                return answer
            status = self._process.wait(seconds)
        except (Empty, subprocess.TimeoutExpired):
            pass
        self.end()
        return Crash(status)

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._messages.put(None)
        self._thread.join()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()

    def _exchange(self) -> None:
        """Write each message and put its answer into the queue; None if the process ends before, be it within one."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        for message in iter(self._messages.get, None):
            try:
                stdin.write(len(message).to_bytes(8, "little") + message)
                stdin.flush()
                answer = _read(stdout, int.from_bytes(_read(stdout, 8), "little"))
            except (EOFError, OSError):
                self._answers.put(None)
            else:
                self._answers.put(answer)


def _read(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data
