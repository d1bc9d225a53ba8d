"""`explain` and `tokenize` with a vocabulary that `train` wrote as JSON."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from .._util.llama_cpp_states import FOLLOWED
from . import _output
from ._arguments import UsageError

if TYPE_CHECKING:
    from ..data.training.trained_vocabulary import TrainedVocabulary

_READ = 1 << 16  # bytes


class SupportsRead(Protocol):
    """What a text is read from."""

    def read(self, size: int, /) -> bytes:
        """Up to `size` bytes, none at the end."""
        ...


def classic_vocabulary(arguments: argparse.Namespace, *without: str) -> TrainedVocabulary | None:
    """The vocabulary that -m names if `train` wrote it as JSON; it does not take the flags `without`."""
    if arguments.model is None or not arguments.model.endswith(".json"):
        return None
    from ..data.training.load_vocabulary import is_trained_vocabulary, load_trained_vocabulary

    if not is_trained_vocabulary(arguments.model):
        return None
    for flag in (*without, "--override-kv", "--llama-cpp"):
        given = getattr(arguments, flag.strip("-").replace("-", "_"), None)
        if given is not None and given is not False and given not in ([], "", FOLLOWED):  # 0 is given, too
            raise UsageError(
                f"{flag} needs a GGUF; {arguments.model} is a vocabulary that train wrote as JSON"
            )
    return load_trained_vocabulary(arguments.model)


def utf8_text(stream: SupportsRead) -> str:
    """All of a text, which must be UTF-8."""
    try:
        return b"".join(iter(lambda: stream.read(_READ), b"")).decode()
    except UnicodeDecodeError as error:
        raise ValueError(
            f"byte {error.start} of the text is not UTF-8, which such a vocabulary needs"
        ) from None


def write_lines(lines: Iterable[str]) -> None:
    """Write lines to standard output."""
    _output.write("".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace"))
