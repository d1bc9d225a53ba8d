"""Run the command line, in this process, in a child or on a terminal, and check its errors."""

from __future__ import annotations

import io
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from json_answers import require_schema

from ggufbpe.cli import main
from ggufbpe.cli._arguments import Parser, parse_arguments

COMMAND = [sys.executable, "-m", "ggufbpe"]

NOTE = "ggufbpe: no model given (-m); using the GPT-2 vocabulary that comes with ggufbpe\n"

posix_only = pytest.mark.skipif(os.name != "posix", reason="signals, pipes and terminals as on POSIX")


class Result(NamedTuple):
    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()


Run = Callable[..., Result]


@pytest.fixture
def run(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command line in this process; what `--json` prints must be what its schema allows."""

    def run(*arguments: str | Path, stdin: bytes | None = None) -> Result:
        set_stdin(monkeypatch, stdin)
        code = main([str(argument) for argument in arguments])
        out, err = capsysbinary.readouterr()
        require_schema(list(map(str, arguments)), code, out)
        return Result(code, out, err.decode())

    return run


def set_stdin(monkeypatch: pytest.MonkeyPatch, data: bytes | None) -> None:
    """Set standard input; None is one that must not be read."""

    class Unread(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise AssertionError("standard input was read without --stdin")

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Unread() if data is None else io.BytesIO(data)))


@pytest.fixture
def call(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Parses arguments with the parser of a command's module, and runs it; what it raises is not caught."""

    def call(module: Any, *arguments: str | Path, stdin: bytes | None = None) -> Result:
        set_stdin(monkeypatch, stdin)
        parser = Parser(f"ggufbpe {module.__name__.rpartition('.')[2].strip('_')}")
        module.add_arguments(parser)
        code = module.run(parse_arguments(parser, [str(argument) for argument in arguments]))
        out, err = capsysbinary.readouterr()
        command = module.__name__.rpartition(".")[2].strip("_").replace("_", "-")
        require_schema([command, *map(str, arguments)], code, out)
        return Result(code, out, err.decode())

    return call


def run_process(*arguments: str | bytes | Path, stdin: bytes = b"", **options: Any) -> Result:
    """Runs a command line in a process of its own."""
    done = subprocess.run([*COMMAND, *arguments], input=stdin, capture_output=True, timeout=60, **options)
    return Result(done.returncode, done.stdout, done.stderr.decode())


_COMMAND_ON_FEWER_TEXTS = """\
#!{python}
import sys
import ggufbpe.analysis.conversion.parity as check
from ggufbpe.cli import main
check.agreement.__kwdefaults__["random_texts"] = 20
check._characters = lambda: list(range(9, 128))
sys.exit(main())
"""


def write_command(path: Path) -> None:
    """Write the command `ggufbpe` to a file; it compares with libraries on fewer texts than the real one."""
    path.write_text(_COMMAND_ON_FEWER_TEXTS.format(python=sys.executable))
    path.chmod(0o755)


def assert_error(result: Result, *words: str) -> None:
    """Exit code 2, nothing on stdout but an error as JSON, and one line that says what is wrong."""
    lines = [line for line in result.err.splitlines() if line + "\n" != NOTE]
    assert (result.code, len(lines)) == (2, 1), result
    if result.out:
        require_schema(["error", "--json"], 2, result.out)
    assert lines[0].startswith("ggufbpe: error: ")
    assert "Traceback" not in result.err
    for word in words:
        assert word in lines[0]


def run_on_terminal(
    *arguments: str | Path, columns: int = 80, command: Sequence[str] = COMMAND, **environment: str
) -> Result:
    """Runs a command line in a process whose standard output and error are a terminal; both are in `out`."""
    fcntl, pty, termios = (pytest.importorskip(name) for name in ("fcntl", "pty", "termios"))
    controller, terminal = pty.openpty()
    fcntl.ioctl(
        terminal, termios.TIOCSWINSZ, b"".join(n.to_bytes(2, sys.byteorder) for n in (24, columns, 0, 0))
    )
    clean = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "NO_COLOR", "TERM")}
    process = subprocess.Popen(
        [*command, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        stderr=terminal,
        env={**clean, "TERM": "xterm-256color", **environment},
    )
    output = output_of_terminal(process, controller, terminal)
    return Result(process.wait(timeout=60), output.replace(b"\r\n", b"\n"), "")


def output_of_terminal(process: subprocess.Popen[bytes], controller: int, terminal: int) -> bytes:
    """All that a process writes to a pseudo-terminal; both ends are closed.

    Our own copy of the terminal stays open until a mark that is written behind everything has come back. Reading until
    the last copy is closed may miss what was written just before: Linux can say that the other end is closed while
    the last lines are still on their way.
    """
    mark = b"\x00all is read\x00"
    output = b""
    marked = False
    deadline = time.monotonic() + 300
    try:
        while mark not in output:
            if time.monotonic() > deadline:
                process.kill()
                process.wait()
                raise AssertionError(
                    f"the process has not ended, or one that it has started still writes: {output[-200:]!r}"
                )
            if select.select([controller], [], [], 0.02)[0]:
                output += os.read(controller, 1 << 16)
            elif process.poll() is not None and not marked:
                os.write(terminal, mark)
                marked = True
    finally:
        os.close(terminal)
        os.close(controller)
    return output.partition(mark)[0]
