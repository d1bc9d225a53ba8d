"""The command llama-tokenize as an oracle, started for each text.

Source: tools/tokenize/tokenize.cpp.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..._util.errors import printable
from ..._util.processors import processors
from ...tokenizer import Tokenizer

if TYPE_CHECKING:
    import subprocess
from .oracle import Answer, Failure, Oracle, OracleError, ending, garbage

GET_LLAMA_TOKENIZE = (
    "llama-tokenize comes with llama.cpp: https://github.com/ggml-org/llama.cpp/releases has it built, `brew "
    "install llama.cpp` installs it, and `cmake -B build && cmake --build build --target llama-tokenize` builds "
    "it; then put it on PATH, or write llama-tokenize:PATH"
)
_LOG_LINE = re.compile(r"[\d.]+ [DIW] |\s*$")
_SIGNALS_SEEN_AFTER = 0.5  # seconds


class LlamaTokenize(Oracle):
    """The command, run once per text, as many at a time as there are processors.

    It passes "the model wants BOS" as "add special tokens" (tools/tokenize/tokenize.cpp), so a model without
    BOS gets no EOS either.
    """

    def __init__(self, path: str, model: str, tokenizer: Tokenizer, seconds: float) -> None:
        self.name = "llama-tokenize"
        self._command = _find_command(path)
        self._model = model
        self._adds_bos = tokenizer.add_bos
        self._seconds = seconds
        self.batch = 2 * processors()
        status, _, errors, failure = self._run(b"Hello", True, True, _Running())
        if status != 0:
            said = _last_error(errors)
            quoted = printable(said, 200) if said else "it says nothing"
            problem = failure.detail if failure else quoted
            raise OracleError(f"{self._command} cannot take this model ({ending(status)}): {problem}")

    def add_special(self, wanted: bool) -> bool:
        return wanted and self._adds_bos

    def encode(self, texts: Sequence[bytes], add_special: bool, parse_special: bool) -> list[Answer]:
        from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

        running = _Running()
        with ThreadPoolExecutor(processors()) as pool:
            try:
                answers = [
                    pool.submit(self._encode, text, add_special, parse_special, running) for text in texts
                ]
                # Python sees a signal that comes just before a wait, or to another thread, only when the wait ends.
                while (known := wait(answers, _SIGNALS_SEEN_AFTER, FIRST_EXCEPTION)).not_done:
                    for answer in known.done:
                        answer.result()  # which raises what ended it
            except BaseException:  # interrupted: no one waits for the answers
                pool.shutdown(wait=False, cancel_futures=True)
                running.end()
                raise
        return [answer.result() for answer in answers]

    def _encode(self, text: bytes, add_special: bool, parse_special: bool, running: _Running) -> Answer:
        status, output, errors, problem = self._run(text, add_special, parse_special, running)
        if problem is not None:
            return problem
        if status != 0:
            last = _last_error(errors)
            return Failure("crash", ending(status) + (f": {printable(last, 200)}" if last else ""))
        body = output.strip()
        numbers = body[1:-1].split(b", ") if len(body) > 2 else []
        if body[:1] != b"[" or body[-1:] != b"]" or not all(number.isdigit() for number in numbers):
            return garbage(output)
        return [int(number) for number in numbers]

    def _run(
        self, text: bytes, add: bool, parse: bool, running: _Running
    ) -> tuple[int, bytes, str, Failure | None]:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "text")
            with open(path, "wb") as file:
                file.write(text)
            flags = ["--no-bos"] * (not add) + ["--no-parse-special"] * (not parse)
            command = [self._command, "-m", self._model, "-f", path, "--ids", "--no-escape", *flags]
            # an id and its separator take at most 11 bytes, and a byte that is not UTF-8 becomes three tokens
            return _run(command, self._seconds, 4096 + 33 * len(text), running)


def _find_command(path: str) -> str:
    import shutil

    if not path:
        command = shutil.which("llama-tokenize")
        if command is None:
            raise OracleError(f"llama-tokenize is not on PATH; {GET_LLAMA_TOKENIZE}")
        return command
    inside = os.path.join(path, "llama-tokenize")
    command = shutil.which(inside if os.path.isdir(path) else os.path.abspath(path))
    if command is None:
        raise OracleError(f"{path} is not an executable command; {GET_LLAMA_TOKENIZE}")
    return command


class _Running:
    """The processes that run for one question; all are ended together, also one that is just being started."""

    def __init__(self) -> None:
        self._children: set[subprocess.Popen[bytes]] = set()
        self._ended = False

    def add(self, child: subprocess.Popen[bytes]) -> None:
        self._children.add(child)
        if self._ended:
            _kill(child)

    def discard(self, child: subprocess.Popen[bytes]) -> None:
        self._children.discard(child)

    def end(self) -> None:
        self._ended = True
        for child in list(self._children):
            _kill(child)


def _run(
    command: list[str], seconds: float, limit: int, running: _Running
) -> tuple[int, bytes, str, Failure | None]:
    """Run a command: its status, at most `limit` bytes of output, the end of its errors, and what went wrong.

    The process is in `running` while it runs.
    """
    import subprocess
    import threading

    environment = {**os.environ, "GGML_NO_BACKTRACE": "1"}  # otherwise an abort starts a debugger
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,  # so that its children end with it
    ) as child:
        late = threading.Event()

        def end() -> None:
            late.set()
            _kill(child)

        timer = threading.Timer(seconds, end)
        errors = bytearray()
        reader = threading.Thread(target=_keep_end, args=(child.stderr, errors))
        assert child.stdout is not None
        try:
            running.add(child)
            timer.start()
            reader.start()
            output = child.stdout.read(limit + 1)
            if len(output) > limit:
                _kill(child)
            status = child.wait()
        except BaseException:  # interrupted, or no thread can be started
            _kill(child)
            raise
        finally:
            timer.cancel()
            if reader.ident is not None:
                reader.join()
            running.discard(child)
    said = errors.decode("utf-8", "replace").strip()
    if late.is_set():
        return status, output, said, Failure("timeout", f"no answer within {seconds:g} s")
    return status, output, said, garbage(output) if len(output) > limit else None


def _kill(child: subprocess.Popen[bytes]) -> None:
    """End a child and, where there are process groups, everything it started."""
    if sys.platform == "win32":
        child.kill()
        return
    import signal
    from contextlib import suppress

    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def _keep_end(stream: Any, kept: bytearray) -> None:
    """Read a stream to its end, keeping the last part."""
    while block := stream.read1(1 << 16):
        kept += block
        del kept[:-4096]


def _last_error(said: str) -> str:
    """The last line that is not a warning or information in llama.cpp's log: "0.00.123.456 W …"."""
    lines = [line for line in said.splitlines() if not _LOG_LINE.match(line)]
    return lines[-1].strip() if lines else ""
