"""A child process that is asked through its pipes, one message at a time; its crash is an answer like any other."""

from __future__ import annotations

import subprocess
import threading
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import NamedTuple


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
        self._answers: SimpleQueue[bytes | None] = SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def ask(self, message: bytes, seconds: float) -> bytes | Crash:
        """Return the answer to a message; a `Crash` if there is none in that time, after which the process is gone."""
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.write(len(message).to_bytes(8, "little") + message)
            stdin.flush()
            answer = self._answers.get(timeout=seconds)
        except BrokenPipeError:
            answer = None
        except Empty:
            self.end()
            return Crash(None)
        if answer is not None:
            return answer
        status = self._process.wait()
        self.end()
        return Crash(status)

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()

    def _read(self) -> None:
        """Put the answers into the queue, and None where they end, be it within one."""
        stdout = self._process.stdout
        assert stdout is not None
        while len(head := stdout.read(8)) == 8:
            answer = stdout.read(size := int.from_bytes(head, "little"))
            if len(answer) < size:
                break
            self._answers.put(answer)
        self._answers.put(None)
