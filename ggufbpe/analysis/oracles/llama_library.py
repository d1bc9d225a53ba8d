"""The llama.cpp library of a Python package or of a folder as an oracle, in a child process."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence

from ..._util.errors import escape_invisible, printable
from ...tokenizer import Tokenizer
from .oracle import Answer, Failure, Oracle, OracleError, not_installed, of_crash


class LlamaLibrary(Oracle):
    """The llama.cpp library of a Python package, in a child process that is restarted when it crashes or hangs.

    `package` is a distribution that llama_cpp_child.py knows, or a folder with the library.
    """

    def __init__(self, package: str, model: str, seconds: float, name: str = "") -> None:
        from .llama_cpp import LibraryError, LlamaCpp, LoadError

        self._seconds = seconds
        name = name or package
        try:
            self._llama = LlamaCpp(package, os.path.abspath(model), seconds=seconds)
        except LibraryError as error:
            if error.absent:
                raise OracleError(not_installed(package, str(error))) from None
            raise OracleError(f"{name} cannot be asked: {_why(str(error))}") from None
        except LoadError as error:
            if error.crash is not None:
                failure = of_crash(error.crash.status, seconds)
                raise OracleError(f"{name} crashes when opening this: {failure.detail}") from None
            raise OracleError(
                f"{name} cannot open this: llama.cpp cannot load the model's vocabulary"
            ) from None
        version = self._llama.version
        self.name = (
            f"{package} {version}" if name == package else f"{name}, {version or 'of an unknown build'}"
        )

    def encode(self, texts: Sequence[bytes], add_special: bool, parse_special: bool) -> list[Answer]:
        from .llama_cpp import LoadError

        try:
            answers = self._llama.tokenize(texts, add_special, parse_special)
        except LoadError as error:  # from a restarted child
            return [Failure("crash", str(error))] * len(texts)
        return [ids if isinstance(ids, list) else of_crash(ids.status, self._seconds) for ids in answers]

    def close(self) -> None:
        self._llama.close()


def _why(error: str) -> str:
    """Why a library cannot be loaded, with what to do where its C library is newer than this system's."""
    needed = re.search(r"version `(GLIBC_[\d.]+)' not found", error)
    if needed is None:
        return escape_invisible(" ".join(error.split())[:400])
    return (
        f"it was built for a newer C library than this system has ({needed[1]}); use a build for this system, or put "
        "that C library and its loader into the same folder"
    )


def library_folder(rest: str, model: str, tokenizer: Tokenizer, seconds: float) -> Oracle:
    """llama.cpp's library in the folder `rest`, or at that path."""
    path = os.path.abspath(os.path.expanduser(rest))
    if not os.path.exists(path):
        raise OracleError(
            f"there is no {printable(rest, 200)}; llama-cpp: takes a folder with llama.cpp's library"
        )
    return LlamaLibrary(path, model, seconds, name=f"llama.cpp in {printable(rest, 200)}")


def llama_library(package: str) -> Callable[[str, str, Tokenizer, float], Oracle]:
    """A function that opens llama.cpp in the package of this name."""

    def opened(rest: str, model: str, tokenizer: Tokenizer, seconds: float) -> Oracle:
        if rest:
            raise OracleError(f"{package} takes nothing after a colon: it opens the model of -m")
        return LlamaLibrary(package, model, seconds)

    return opened
