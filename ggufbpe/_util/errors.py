"""The errors that are part of the public API, and how their messages quote what a file holds.

Whatever is wrong with a model file is a `GGUFError` with its place and a remedy, so one `except` catches it. A
chat that cannot be rendered or made to fit, and a name that matches no model, are of their own kinds. Wrong
arguments (an id out of range, a text with lone surrogates) are Python's own `ValueError` and `TypeError`. Errors of
a single module stand in that module.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any


class GGUFError(ValueError):
    """A model file that cannot be used.

    `problem` says what is wrong and `remedy` what to do; `path`, `offset` (in bytes from the start of
    the file) and `key` (the metadata key) say where, and are None where they do not apply.
    """

    def __init__(
        self,
        problem: str,
        *,
        path: str | os.PathLike[str] | None = None,
        offset: int | None = None,
        key: str | None = None,
        remedy: str | None = None,
    ) -> None:
        self.problem = problem
        self.path = None if path is None else os.fsdecode(path)
        self.offset = offset
        self.key = key
        self.remedy = remedy
        super().__init__(problem)

    def __str__(self) -> str:
        where = []
        if self.path is not None:
            where.append(self.path if self.path.isprintable() else printable(self.path, len(self.path)))
        if self.offset is not None:
            where.append(f"byte {self.offset}")
        if self.key is not None:
            where.append(f"key {printable(self.key)}")
        text = ": ".join([*where, self.problem])
        return f"{text}; {self.remedy}" if self.remedy else text

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.problem,), vars(self)


# Characters that show as nothing, or as a space, though `str.isprintable` is true of them: joiners and fillers,
# variation selectors, the empty Braille pattern (Unicode, Default_Ignorable_Code_Point).
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0").union(
    map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
)


def is_visible(char: str) -> bool:
    """Whether a character has no effect on a terminal and can be told from nothing."""
    return char.isprintable() and char not in _INVISIBLE


def escape_invisible(text: str) -> str:
    r"""`text` with all that takes effect or cannot be seen escaped, as in Python and JSON; backslashes stay.

    >>> escape_invisible("a\n\u200b\ufe0f")
    'a\\n\\u200b\\ufe0f'
    """
    if text.isprintable() and (text.isascii() or _INVISIBLE.isdisjoint(text)):
        return text
    return "".join(c if is_visible(c) else c.encode("unicode_escape").decode() for c in text)


def printable(text: str, limit: int = 80) -> str:
    """`text` quoted for one line of a message: control and invisible characters escaped, a long one cut.

    >>> printable("a\\nb")
    "'a\\\\nb'"
    """
    return escape_invisible(repr(text if len(text) <= limit else text[: limit - 1] + "…"))


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Name `path` in an `OSError` that names no file: Python names a file only where opening it fails."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            error.filename = error.filename or path
        raise


class NotGGUFError(GGUFError):
    """The file is something else: empty, a directory, a Git LFS pointer, a safetensors file …"""


class UnsupportedVersionError(GGUFError):
    """A GGUF version other than 1, 2 or 3; or 1, where a copy is asked for."""


class TruncatedFileError(GGUFError):
    """The file ends inside its metadata: an unfinished download, or a length that lies."""


class TensorError(GGUFError):
    """Tensors that llama.cpp refuses: cut off, overlapping, misaligned, or of an impossible shape or type.

    `tensor` is the name of the first of them, `missing` the number of bytes by which the file is too short, or 0.
    """

    tensor: str = ""
    missing: int = 0


class InterruptedChangeError(GGUFError):
    """A change of the file was interrupted, is under way in another process, or cannot be recorded for an undo."""


class CorruptMetadataError(GGUFError):
    """A count, length or type number that no sound file has."""


class DuplicateKeyError(GGUFError):
    """A metadata key that occurs twice."""


class InvalidUTF8Error(GGUFError):
    """A key or string whose bytes are not UTF-8."""


class ShardError(GGUFError):
    """A later part of a split model, whose metadata is in the first; or a part that is missing or does not fit."""


class MissingKeyError(GGUFError):
    """A metadata key without which there is no tokenizer."""


class WrongTypeError(GGUFError):
    """A metadata key whose value has another type than llama.cpp accepts."""


class VocabularyError(GGUFError):
    """Tokens, scores, types and merges that do not fit together."""


class UnknownPreTokenizerError(GGUFError):
    """A name in `tokenizer.ggml.pre` that llama.cpp does not know.

    `nearest` is the known name that the tokens point to, "" if they tell nothing, and `share` the share of the tokens
    that it keeps whole.
    """

    nearest: str = ""
    share: float = 0.0


class UnsupportedTokenizerError(GGUFError):
    """A tokenizer that ggufbpe does not read; `model` is its `tokenizer.ggml.model`."""

    model: str = ""


class StoreError(GGUFError):
    """Another program's model store is damaged: a manifest, a blob, or a link that leads outside of it."""


class RemoteError(GGUFError):
    """A remote file cannot be read, because of the network, the server, or its answer."""


class RemoteAccessError(RemoteError):
    """The server requires a login, or does not allow this user to read the file."""


class RemoteNotFoundError(RemoteError):
    """There is no such file, repository or revision, or it is not visible without a login."""


class OfflineError(RemoteError):
    """Network access is switched off, and the metadata is not in the cache."""


class ChatError(ValueError):
    """A chat that llama-server refuses, or a template that cannot be run.

    `reason` is llama.cpp's message, `line` the line of the template, counted from 1, or None if the error is not in
    the template.
    """

    def __init__(self, reason: str, line: int | None = None) -> None:
        self.reason = reason
        self.line = line
        super().__init__(reason if line is None else f"line {line} of the chat template: {reason}")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.reason, self.line)


class ChatTooLongError(ChatError):
    """A chat that does not fit, whatever may be left out of it.

    `count` is the number of tokens of what must stay, `limit` how many it may have. `keep` is the policy with which the
    chat fits, and `message` the number of the message that it cuts, because that alone has more; both are None if that
    is not known.
    """

    def __init__(
        self, count: int, limit: int, message: int | None = None, keep: Mapping[str, Any] | None = None
    ) -> None:
        self.count = count
        self.limit = limit
        self.message = message
        self.keep = keep
        super().__init__(f"the chat does not fit in {limit} tokens: what must stay has {count} tokens")

    @property
    def remedy(self) -> str:
        """What would help, in one sentence; "" if that is not known."""
        import json

        return "" if self.keep is None else self.remedy_by(f"a keep such as {json.dumps(dict(self.keep))}")

    def remedy_by(self, policy: str) -> str:
        """Return the sentence with the policy in other words: as the flags of a command, say."""
        return f"messages[{self.message}] alone has more, and is cut with {policy}"

    def __str__(self) -> str:
        return f"{self.reason}; {self.remedy}" if self.remedy else self.reason

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.count, self.limit, self.message, self.keep)


class ModelNameError(ValueError):
    """A name that matches no model, or several; `candidates` lists those that it matches."""

    def __init__(self, message: str, candidates: Sequence[str] = ()) -> None:
        self.candidates = tuple(candidates)
        super().__init__(message)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.candidates)


def _name_as_imported() -> None:
    """Tracebacks, `help()` and pickles name a class as its users import it, wherever this file stands.

    The price: `inspect.getsource` looks into that module and does not find the class.
    """
    for value in globals().values():
        if isinstance(value, type) and issubclass(value, Exception):
            value.__module__ = "ggufbpe"


_name_as_imported()
