"""The llama.cpp library of a Python package, in a child process.

llama_cpp.py -> [this file] -> ids
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from ..errors import printable
from ..tokenizer import Tokenizer
from .oracle import Answer, Failure, Oracle, OracleError, not_installed, of_crash


class InProcess(Oracle):
    """The llama.cpp library of a Python package, in a child process that is restarted when it crashes or hangs."""

    def __init__(self, package: str, model: str, seconds: float) -> None:
        from .llama_cpp import LibraryError, LlamaCpp, LoadError

        self._seconds = seconds
        try:
            self._llama = LlamaCpp(package, os.path.abspath(model), seconds=seconds)
        except LibraryError as error:
            if error.absent:
                raise OracleError(not_installed(package, str(error))) from None
            raise OracleError(f"{package} cannot be asked: {printable(str(error), 200)}") from None
        except LoadError as error:
            if error.crash is not None:
                failure = of_crash(error.crash.status, seconds)
                raise OracleError(f"{package} crashes when opening this: {failure.detail}") from None
            raise OracleError(
                f"{package} cannot open this: llama.cpp cannot load the model's vocabulary"
            ) from None
        self.name = f"{package} {self._llama.version}"

    def encode(self, texts: Sequence[bytes], add_special: bool, parse_special: bool) -> list[Answer]:
        from .llama_cpp import LoadError

        try:
            answers = self._llama.tokenize(texts, add_special, parse_special)
        except LoadError as error:  # from a restarted child
            return [Failure("crash", str(error))] * len(texts)
        return [ids if isinstance(ids, list) else of_crash(ids.status, self._seconds) for ids in answers]

    def close(self) -> None:
        self._llama.close()


def in_process(package: str) -> Callable[[str, str, Tokenizer, float], Oracle]:
    """A function that opens llama.cpp in the package of this name."""

    def opened(rest: str, model: str, tokenizer: Tokenizer, seconds: float) -> Oracle:
        if rest:
            raise OracleError(f"{package} takes nothing after a colon: it opens the model of -m")
        return InProcess(package, model, seconds)

    return opened
