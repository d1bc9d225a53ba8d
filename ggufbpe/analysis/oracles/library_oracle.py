"""Other tokenizers' packages as oracles, in a child process: tokenizers and tiktoken."""

from __future__ import annotations

import os
import sys
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..._util.errors import printable
from ...models.vocabulary import Vocabulary
from ...tokenizer import Tokenizer

if TYPE_CHECKING:
    from queue import SimpleQueue
from .oracle import Answer, Failure, Oracle, OracleError, check_file, not_installed, of_crash


class LibraryOracle(Oracle):
    """Another tokenizer's package, in a child process that is restarted when it crashes or hangs."""

    def __init__(self, library: str, config: dict[str, Any], label: str, seconds: float) -> None:
        self._config = {"library": library, **config}
        self._seconds = seconds
        self._child: _Child | None = None
        self.name = f"{label} {self._started().version}".strip()

    def encode(self, texts: Sequence[bytes], add_special: bool, parse_special: bool) -> list[Answer]:
        return [self._encode(text, add_special | parse_special << 1) for text in texts]

    def _encode(self, text: bytes, flags: int) -> Answer:
        answer = self._answer(flags, text)
        return answer if isinstance(answer, Failure) else array("i", answer).tolist()

    def _answer(self, flags: int, data: bytes) -> bytes | Failure:
        """What the child answers to a message."""
        child = self._started()
        answer = child.ask(bytes([flags]) + data, self._seconds)
        if answer[:1] == b"+":
            return answer[1:]
        if answer[:1] == b"-":
            return Failure("refused", answer[1:].decode("utf-8", "replace"))
        self._child = None
        return child.failure(self._seconds, late=answer == b"late")

    def _started(self) -> _Child:
        if self._child is None:
            self._child = _Child(self._config, max(self._seconds, 60.0))
        return self._child

    def close(self) -> None:
        if self._child is not None:
            self._child.end()
            self._child = None


class _Child:
    """One process of library_child.py. Raises `OracleError` if the library cannot be used."""

    def __init__(self, config: dict[str, Any], seconds: float) -> None:
        import json
        import subprocess
        import threading
        from queue import SimpleQueue

        script = os.path.join(os.path.dirname(__file__), "library_child.py")
        self._process = subprocess.Popen(
            [sys.executable, script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TOKENIZERS_PARALLELISM": "false"},
        )
        self._answers: SimpleQueue[bytes] = SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        answer = self.ask(json.dumps(config).encode(), seconds)
        if answer[:1] != b"+":
            failure = (
                "" if answer[:1] in b"?!" and answer else self.failure(seconds, answer == b"late").detail
            )
            self.end()
            raise OracleError(_cannot_open(config, answer, failure))
        self.version = answer[1:].decode()

    def ask(self, message: bytes, seconds: float) -> bytes:
        """The answer to a message; b"late" or b"" if there is none."""
        from queue import Empty

        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.write(len(message).to_bytes(8, "little") + message)
            stdin.flush()
            return self._answers.get(timeout=seconds)
        except BrokenPipeError:
            return b""
        except Empty:
            return b"late"

    def failure(self, seconds: float, late: bool) -> Failure:
        """Why a process gave no answer; it is ended."""
        status = None if late else self._process.wait()
        self.end()
        return of_crash(status, seconds)

    def end(self) -> None:
        from contextlib import suppress

        self._process.kill()
        self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()

    def _read(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        while head := stdout.read(8):
            self._answers.put(stdout.read(int.from_bytes(head, "little")))
        self._answers.put(b"")


def _cannot_open(config: dict[str, Any], answer: bytes, failure: str) -> str:
    library = config["library"]
    said = answer[1:].decode("utf-8", "replace")
    if answer[:1] == b"?":
        return not_installed(library, said)
    if failure:
        return f"{library} crashes when opening this: {failure}"
    if library == "tiktoken" and "file" not in config:
        known = "an encoding's name needs the network, or a file in TIKTOKEN_CACHE_DIR"
        return f"tiktoken cannot open {config['name']} ({printable(said, 200)}); {known}"
    return f"{library} cannot open this: {printable(said, 200)}"


def tokenizers_library(rest: str, model: str, tokenizer: Tokenizer, seconds: float) -> Oracle:
    """The package tokenizers with the tokenizer.json at `rest`, a file or its folder."""
    path = os.path.join(rest, "tokenizer.json") if os.path.isdir(rest) else rest
    check_file(path)
    return LibraryOracle("tokenizers", {"file": os.path.abspath(path)}, "tokenizers", seconds)


class _Tiktoken(LibraryOracle):
    note = "compared without BOS and EOS, which tiktoken does not add"

    def add_special(self, wanted: bool) -> bool:
        return False


def tiktoken_library(rest: str, model: str, tokenizer: Tokenizer, seconds: float) -> Oracle:
    """The package tiktoken with one of its own encodings or a file of ranks."""
    if not rest.endswith(".tiktoken") and not os.path.exists(rest):
        return _Tiktoken("tiktoken", {"name": rest}, f"tiktoken {rest}", seconds)
    check_file(rest)
    name = os.path.basename(rest).removesuffix(".tiktoken")
    config = {"name": name, "file": os.path.abspath(rest), **_as_tiktoken(tokenizer.vocabulary)}
    return _Tiktoken("tiktoken", config, f"tiktoken {printable(name)[1:-1]}", seconds)


def _as_tiktoken(vocabulary: Vocabulary) -> dict[str, Any]:
    """Pattern and special tokens for a file of an unknown encoding, which has none: the model's own.

    llama.cpp keeps text that its pattern does not match as a piece; tiktoken would drop it, so it gets an alternative.
    """
    special = {vocabulary.tokens[token]: token for token in vocabulary.special_token_ids}
    first, *others = vocabulary.pre_tokenizer.patterns
    if others:
        return {"pattern": "", "special": special}
    return {"pattern": rf"{first}|(?:(?!{first})[\s\S])+", "special": special}
