"""Other tokenizers' packages as oracles, in a child process: tokenizers, tiktoken and sentencepiece."""

from __future__ import annotations

import os
import sys
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..._util.errors import printable
from ...models.vocabulary import Vocabulary
from ...tokenizer import Tokenizer
from .against import SENTENCEPIECE_FILES
from .oracle import Answer, Failure, Oracle, OracleError, check_file, not_installed, of_crash

if TYPE_CHECKING:
    from .piped_child import PipedChild

_LEAST_SECONDS = 60.0  # to open a library


class LibraryOracle(Oracle):
    """Another tokenizer's package, in a child process that is restarted when it crashes or hangs."""

    def __init__(self, library: str, config: dict[str, Any], label: str, seconds: float) -> None:
        self._config = {"library": library, **config}
        self._seconds = seconds
        self._child: PipedChild | None
        self._child, version = _opened(self._config, max(seconds, _LEAST_SECONDS))
        self.name = f"{label} {version}".strip()

    def encode(self, texts: Sequence[bytes], add_special: bool, parse_special: bool) -> list[Answer]:
        return [self._encode(text, add_special | parse_special << 1) for text in texts]

    def _encode(self, text: bytes, flags: int) -> Answer:
        answer = self._answer(flags, text)
        return answer if isinstance(answer, Failure) else array("i", answer).tolist()

    def _answer(self, flags: int, data: bytes) -> bytes | Failure:
        """What the child answers to a message."""
        if self._child is None:
            self._child, _ = _opened(self._config, max(self._seconds, _LEAST_SECONDS))
        answer = self._child.ask(bytes([flags]) + data, self._seconds)
        if not isinstance(answer, bytes):
            self._child = None
            return of_crash(answer.status, self._seconds)
        return answer[1:] if answer[:1] == b"+" else Failure("refused", answer[1:].decode("utf-8", "replace"))

    def close(self) -> None:
        if self._child is not None:
            self._child.end()
            self._child = None


def _opened(config: dict[str, Any], seconds: float) -> tuple[PipedChild, str]:
    """A process of library_child.py, and the version of its library. `OracleError` if the library cannot be used."""
    import json
    import subprocess

    from .piped_child import PipedChild

    script = os.path.join(os.path.dirname(__file__), "library_child.py")
    process = subprocess.Popen(
        [sys.executable, script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TOKENIZERS_PARALLELISM": "false"},
    )
    child = PipedChild(process)
    answer = child.ask(json.dumps(config).encode(), seconds)
    if not isinstance(answer, bytes):
        crash = of_crash(answer.status, seconds).detail
        raise OracleError(f"{config['library']} crashes when opening this: {crash}")
    if answer[:1] != b"+":
        child.end()
        raise OracleError(_cannot_open(config, answer))
    return child, answer[1:].decode()


def _cannot_open(config: dict[str, Any], answer: bytes) -> str:
    library = config["library"]
    said = answer[1:].decode("utf-8", "replace")
    if answer[:1] == b"?":
        return not_installed(library, said)
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


class _SentencePiece(LibraryOracle):
    note = "compared with control tokens in texts as plain text, since sentencepiece finds none"

    def parse_special(self, wanted: bool) -> bool:
        return False


def sentencepiece_library(rest: str, model: str, tokenizer: Tokenizer, seconds: float) -> Oracle:
    """The package sentencepiece with the model at `rest`, a file or its folder; it adds the BOS and EOS of ours."""
    inside = [os.path.join(rest, name) for name in SENTENCEPIECE_FILES]
    path = next(filter(os.path.exists, inside), inside[0]) if os.path.isdir(rest) else rest
    check_file(path)
    before, after = tokenizer.vocabulary.added
    config = {"file": os.path.abspath(path), "add_bos": bool(before), "add_eos": bool(after)}
    return _SentencePiece("sentencepiece", config, "sentencepiece", seconds)
