"""The command llama-tokenize as an oracle, played by a shell script."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from small_models import small_tokenizer

from ggufbpe.analysis.oracles.llama_tokenize import LlamaTokenize
from ggufbpe.analysis.oracles.oracle import Failure, OracleError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the command is a shell script")

WITH_BOS, WITHOUT = small_tokenizer(add_bos=True), small_tokenizer(add_eos=True)
# the number of bytes and, for each flag, a 1 if it is given; $4 is the file with the text
ECHO = """case "$(cat "$4")" in
    crash) echo '0.00.1 W warned' >&2; echo 'bad luck' >&2; exit 3;;
    rubbish) echo '[1, x]'; exit;;
    none) echo '[]'; exit;;
esac
echo "[$(wc -c < "$4" | tr -d ' '), $(case "$*" in *--no-bos*) echo 1;; *) echo 0;; esac), \
$(case "$*" in *--no-parse-special*) echo 1;; *) echo 0;; esac)]" """


def command(folder: Path, script: str = ECHO) -> str:
    path = folder / "llama-tokenize"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_answers(tmp_path: Path) -> None:
    with LlamaTokenize(command(tmp_path), "model.gguf", WITH_BOS, 60) as oracle:
        assert oracle.encode([b"a\\n", b"none"], True, True) == [
            [3, 0, 0],
            [],
        ]  # the text as it is, unescaped
        assert oracle.encode([b"ab"], False, False) == [[2, 1, 1]]
        crash, rubbish = oracle.encode([b"crash", b"rubbish"], True, True)
    assert crash == Failure("crash", "exit code 3: 'bad luck'")
    assert rubbish == Failure("garbage", "the output is not a list of ids: '[1, x]\\n'")


def test_the_command_takes_no_eos_for_a_model_without_bos(tmp_path: Path) -> None:
    path = command(tmp_path)
    assert LlamaTokenize(path, "model.gguf", WITH_BOS, 60).add_special(True)
    assert not LlamaTokenize(path, "model.gguf", WITH_BOS, 60).add_special(False)
    assert not LlamaTokenize(path, "model.gguf", WITHOUT, 60).add_special(True)


def test_where_it_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = command(tmp_path)
    for given in (path, str(tmp_path)):
        assert LlamaTokenize(given, "model.gguf", WITH_BOS, 60).encode([b"a"], True, True) == [[1, 0, 0]]
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert LlamaTokenize("", "model.gguf", WITH_BOS, 60).encode([b"a"], True, True) == [[1, 0, 0]]
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(OracleError, match=r"llama-tokenize is not on PATH; .*releases"):
        LlamaTokenize("", "model.gguf", WITH_BOS, 60)
    with pytest.raises(OracleError, match="nowhere is not an executable command"):
        LlamaTokenize("/nowhere", "model.gguf", WITH_BOS, 60)


def test_a_model_that_it_refuses(tmp_path: Path) -> None:
    path = command(tmp_path, "echo 'no such model' >&2; echo '0.00.1 I bye' >&2; exit 1")
    with pytest.raises(OracleError, match=r"cannot take this model \(exit code 1\): 'no such model'"):
        LlamaTokenize(path, "model.gguf", WITH_BOS, 60)


@pytest.mark.parametrize(
    ("script", "seconds", "said"),
    [
        ("exit 1", 60, r"\(exit code 1\): it says nothing$"),
        ("exec sleep 60", 0.1, r"\(ended by SIGKILL\): no answer within 0.1 s$"),
        ("exec yes", 60, r"\(ended by SIGKILL\): the output is not a list of ids: 'y\\ny\\n"),
    ],
)
def test_only_its_own_words_are_quoted(script: str, seconds: float, said: str, tmp_path: Path) -> None:
    with pytest.raises(OracleError, match=rf"llama-tokenize cannot take this model {said}"):
        LlamaTokenize(command(tmp_path, script), "model.gguf", WITH_BOS, seconds)


def hanging(folder: Path, text: str) -> str:
    return command(folder, f'grep -q {text} "$4" && exec sleep 60; echo "[1]"')


@contextmanager
def interrupted_at_once() -> Iterator[None]:
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        yield
    assert time.monotonic() - began < 30  # not the 60 s that the command sleeps


@pytest.mark.parametrize(("interrupted_after", "known_after"), [(0.5, 0), (0, 2)])
def test_interrupting_a_command_that_runs_or_is_being_started(
    interrupted_after: float, known_after: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C some seconds after a command was started, which is known some seconds after it."""

    def interrupt() -> None:  # another thread receives the signal, so that it wakes nobody who waits
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    class Popen(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            threading.Timer(interrupted_after, interrupt).start()
            time.sleep(known_after)

    oracle = LlamaTokenize(hanging(tmp_path, "hang"), "model.gguf", WITH_BOS, 60)
    with monkeypatch.context() as patched, interrupted_at_once():
        patched.setattr(subprocess, "Popen", Popen)
        oracle.encode([b"hang"], True, True)
    assert oracle.encode([b"Hello"], True, True) == [[1]]


def test_interrupting_a_command_that_hangs_on_its_first_text(tmp_path: Path) -> None:
    path = hanging(tmp_path, "Hello")
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with interrupted_at_once():
            LlamaTokenize(path, "model.gguf", WITH_BOS, 60)
    finally:
        timer.cancel()


def test_the_first_error_ends_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    oracle = LlamaTokenize(hanging(tmp_path, "hang"), "model.gguf", WITH_BOS, 60)
    encode = oracle._encode

    def failing(text: bytes, *arguments: Any) -> Any:
        if text == b"fail":
            raise OSError("no space left")
        return encode(text, *arguments)

    monkeypatch.setattr(oracle, "_encode", failing)
    began = time.monotonic()
    with pytest.raises(OSError, match="no space left"):
        oracle.encode([b"hang", b"fail"], True, True)
    assert time.monotonic() - began < 30  # not the 60 s that the command sleeps
