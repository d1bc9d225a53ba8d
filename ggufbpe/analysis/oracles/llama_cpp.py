"""Asks llama.cpp itself through its C functions, for `verify --against` and for scripts/reference.py.

llama.cpp runs in a child process (llama_cpp_child.py), because it can abort on a text or a file (a failed assertion,
an uncaught exception) or overflow its stack: that answer is a `Crash`, and the next question gets a new child.
"""

from __future__ import annotations

import glob
import marshal
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from .llama_cpp_child import library_in
from .piped_child import Crash as Crash
from .piped_child import PipedChild

_ASKED_ALONE = 64  # the largest batch whose questions are asked one by one after a crash
_PARTS = 16  # into which a larger batch is split


class LibraryError(RuntimeError):
    """No library to ask: `absent` if its distribution is not installed."""

    def __init__(self, message: str, absent: bool = False) -> None:
        super().__init__(message)
        self.absent = absent


class LoadError(RuntimeError):
    """llama.cpp refused a file (`crash` is None) or crashed on it."""

    def __init__(self, message: str, crash: Crash | None = None) -> None:
        super().__init__(message)
        self.crash = crash


class Description(NamedTuple):
    """What llama.cpp made of a vocabulary on load."""

    vocab_type: int  # LLAMA_VOCAB_TYPE_*: 2 is BPE
    special_ids: dict[str, int | None]  # by the names in SPECIAL_IDS
    add_bos: bool
    add_eos: bool
    add_sep: bool
    eog_ids: list[int]  # sorted
    texts: list[bytes]  # of all tokens
    attributes: list[int]  # of all tokens, LLAMA_TOKEN_ATTR_*


class LlamaCpp:
    """llama.cpp's tokenizer for one vocabulary, in a child process; a context manager.

    >>> with LlamaCpp("xllamacpp", "model.gguf") as llama:                   # doctest: +SKIP
    ...     llama.tokenize([b"Hello world"], add_special=True, parse_special=True)
    [[128000, 9906, 1917]]

    `library` is a distribution that llama_cpp_child.py knows, the path of a shared library, or a folder that has one.
    Questions go in batches: a batch costs one round trip, so a thousand short texts take hardly longer than llama.cpp
    itself. `seconds` bounds a single text; a batch gets that, or more by its number of texts. `stack` is the size in
    bytes of the child's stack; None leaves the default. If a C library with its loader lies beside llama.cpp's
    library, the child runs under that one. Raises `LibraryError` if the library cannot be used.
    """

    def __init__(
        self,
        library: str | os.PathLike[str],
        path: str | os.PathLike[str],
        *,
        seconds: float = 20.0,
        stack: int | None = None,
    ) -> None:
        launcher = _launcher(os.fspath(library))
        restart = [] if stack is None and not launcher else [str(stack or 0), *launcher]
        self._arguments = [os.fspath(library), *restart]
        self._seconds = seconds
        self._child: PipedChild | None = None
        self.crashes = 0
        self.version = ""  # of the distribution, or the build of a library if it is known
        try:
            self.open(path)
        except BaseException:  # no library, or a refused file: the caller has no object to close
            self.close()
            raise

    def open(self, path: str | os.PathLike[str]) -> None:
        """Switch to another vocabulary, in the same child. `LoadError` if llama.cpp does not accept it."""
        self.path = os.fspath(path)
        answer = self._ask("open", os.fsencode(path))
        if isinstance(answer, Crash):
            raise LoadError(f"llama.cpp crashed on {self.path}: {answer.reason}", answer)
        self.version = answer

    def tokenize(
        self, texts: Sequence[bytes], add_special: bool, parse_special: bool
    ) -> list[list[int] | Crash]:
        """The ids of each text, or the crash that it caused."""
        return self.tokenize_each([(text, add_special, parse_special) for text in texts])

    def tokenize_each(self, questions: Sequence[tuple[bytes, bool, bool]]) -> list[list[int] | Crash]:
        """Like `tokenize`, with flags for each text: (text, add_special, parse_special)."""
        return self._each("tokenize", questions)

    def detokenize(self, ids: Sequence[int], remove_special: bool, unparse_special: bool) -> bytes | Crash:
        """The text of ids."""
        return self.detokenize_each([(ids, remove_special, unparse_special)])[0]

    def detokenize_each(self, questions: Sequence[tuple[Sequence[int], bool, bool]]) -> list[bytes | Crash]:
        """The text of each sequence of ids: (ids, remove_special, unparse_special)."""
        return self._each("detokenize", questions)

    def pieces(self, special: bool) -> list[bytes]:
        """The piece of every token; unless `special`, control tokens have none."""
        answer: list[bytes] = self._sure("pieces", special)
        return answer

    def describe(self) -> Description:
        """What llama.cpp made of the vocabulary on load."""
        return Description(**self._sure("describe"))

    def close(self) -> None:
        """End the child."""
        child, self._child = self._child, None
        if child is not None:
            child.end()

    def __enter__(self) -> LlamaCpp:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _each(self, method: str, questions: Sequence[Any]) -> list[Any]:
        """Ask a batch; if it crashes the child, ask smaller ones, down to the questions that crash it."""
        if not questions:
            return []
        answers = self._ask(method, list(questions), weight=len(questions))
        if not isinstance(answers, Crash):
            return list(answers)
        if len(questions) == 1:
            self.crashes += 1
            return [answers]
        size = 1 if len(questions) <= _ASKED_ALONE else -(-len(questions) // _PARTS)
        parts = (questions[start : start + size] for start in range(0, len(questions), size))
        return [answer for part in parts for answer in self._each(method, part)]

    def _sure(self, method: str, *arguments: Any) -> Any:
        answer = self._ask(method, *arguments, weight=10)
        if isinstance(answer, Crash):
            raise LoadError(f"llama.cpp crashed on {method} for {self.path}: {answer.reason}", answer)
        return answer

    def _ask(self, method: str, *arguments: Any, weight: int = 1) -> Any:
        """One round trip; a `Crash` if the child dies of it."""
        if self._child is None:
            self._child = PipedChild(_start_child(self._arguments))
            if method != "open":
                self.open(self.path)
        answer = self._child.ask(marshal.dumps((method, *arguments)), max(self._seconds, weight * 0.1))
        if isinstance(answer, Crash):
            self._child = None
            return answer
        kind, value = marshal.loads(answer)
        if kind == "ok":
            return value
        if kind == "refused":
            raise LoadError(f"llama.cpp refused {self.path}: {value}")
        raise LibraryError(value, kind == "absent")


def _launcher(library: str) -> list[str]:
    """The command that starts programs under the C library beside a library; empty if there is none (Linux only)."""
    try:
        folder = os.path.dirname(library_in(library) if os.path.isdir(library) else library)
    except FileNotFoundError:
        return []
    for loader in glob.glob(os.path.join(glob.escape(folder), "ld-linux*.so.*")) if folder else ():
        return [os.path.abspath(loader), "--library-path", os.path.abspath(folder)]
    return []


def _start_child(arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    script = os.path.join(os.path.dirname(__file__), "llama_cpp_child.py")
    return subprocess.Popen(
        [sys.executable, script, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "GGML_NO_BACKTRACE": "1"},  # otherwise an abort starts a debugger
    )
