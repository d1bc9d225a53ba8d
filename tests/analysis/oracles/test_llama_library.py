"""llama.cpp's library as an oracle: what becomes of its answers, crashes and refusals."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from small_models import small_tokenizer

from ggufbpe.analysis.oracles import llama_cpp
from ggufbpe.analysis.oracles.llama_cpp import Crash, LibraryError, LoadError
from ggufbpe.analysis.oracles.llama_library import LlamaLibrary, library_folder, llama_library
from ggufbpe.analysis.oracles.oracle import Failure, OracleError

TOKENIZER = small_tokenizer()


class Llama:
    """A library that gives the number of bytes as the only id, and crashes or hangs if the text says so."""

    version = "b123"
    opening: Exception | None = None
    restarting: Exception | None = None
    closed = 0

    def __init__(self, library: str, path: str, *, seconds: float) -> None:
        self.given = library, path, seconds
        if Llama.opening:
            raise Llama.opening

    def tokenize(
        self, texts: Sequence[bytes], add_special: bool, parse_special: bool
    ) -> list[list[int] | Crash]:
        if Llama.restarting:
            raise Llama.restarting
        faults = {b"crash": Crash(-11), b"hang": Crash(None)}
        return [faults.get(text, [len(text), add_special, parse_special]) for text in texts]

    def close(self) -> None:
        Llama.closed += 1


@pytest.fixture(autouse=True)
def no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama_cpp, "LlamaCpp", Llama)
    for name, value in (("opening", None), ("restarting", None), ("closed", 0), ("version", "b123")):
        monkeypatch.setattr(Llama, name, value)


def test_answers() -> None:
    with LlamaLibrary("xllamacpp", "model.gguf", 5) as oracle:
        assert oracle.name == "xllamacpp b123"
        crash, hang = Failure("crash", "ended by SIGSEGV"), Failure("timeout", "no answer within 5 s")
        assert oracle.encode([b"ab", b"crash", b"hang"], True, False) == [[2, 1, 0], crash, hang]
    assert Llama.closed == 1


def test_a_child_that_cannot_be_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    oracle = LlamaLibrary("xllamacpp", "model.gguf", 5)
    monkeypatch.setattr(Llama, "restarting", LoadError("it is gone"))
    assert oracle.encode([b"a", b"b"], True, True) == [Failure("crash", "it is gone")] * 2


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            LibraryError("no module", absent=True),
            r"package xllamacpp is not installed \(no module\): .*pip install",
        ),
        (LibraryError("bad\n  symbol\x1b", absent=False), r"xllamacpp cannot be asked: bad symbol\\x1b$"),
        (
            LibraryError("/x: version `GLIBC_2.99' not found (required by y)", absent=False),
            r"built for a newer C library than this system has \(GLIBC_2.99\); use a build for this system",
        ),
        (LoadError("crashed", Crash(-6)), "xllamacpp crashes when opening this: ended by SIGABRT"),
        (LoadError("refused"), "cannot open this: llama.cpp cannot load the model's vocabulary"),
    ],
)
def test_why_it_cannot_be_asked(error: Exception, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Llama, "opening", error)
    with pytest.raises(OracleError, match=said):
        LlamaLibrary("xllamacpp", "model.gguf", 5)


def test_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    oracle = library_folder(str(tmp_path), "model.gguf", TOKENIZER, 5)
    assert oracle.name == f"llama.cpp in '{tmp_path}', b123"
    monkeypatch.setattr(Llama, "version", "")
    assert library_folder(str(tmp_path), "model.gguf", TOKENIZER, 5).name.endswith(", of an unknown build")
    with pytest.raises(OracleError, match=r"there is no '.*nowhere'; llama-cpp: takes a folder"):
        library_folder(str(tmp_path / "nowhere"), "model.gguf", TOKENIZER, 5)


def test_a_package_takes_no_path() -> None:
    make: Callable[..., Any] = llama_library("xllamacpp")
    assert make("", "model.gguf", TOKENIZER, 5).name == "xllamacpp b123"
    with pytest.raises(OracleError, match="xllamacpp takes nothing after a colon"):
        make("x", "model.gguf", TOKENIZER, 5)


@pytest.mark.parametrize("absent", [True, False])
def test_that_there_is_no_library_is_told_by_another_process(absent: bool) -> None:
    found = pickle.loads(pickle.dumps(LibraryError("no module", absent)))
    assert (str(found), found.absent) == ("no module", absent)
