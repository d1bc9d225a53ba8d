"""Files of a corpus, read by their names: compressed ones, and lines of JSON.

    a file, its name -> [this file] -> its bytes, its lines -> training/corpus.py, statistics/reading.py

But: what is a text of it, and what becomes of bytes that are not UTF-8, its users say.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from importlib import import_module
from typing import IO, Any

_BLOCK = 1 << 20
_HEAD_SIZE = 8000  # where a NUL makes a file binary; buffer_is_binary in git's xdiff-interface.c
_JSON_LINES = (".jsonl", ".ndjson")
_ZSTD = (".zst", ".zstd")


class CorpusError(ValueError):
    """A text that cannot be learned from or measured; the message says which, where and what to do."""


def decompressed(raw: IO[bytes], path: str) -> IO[bytes]:
    """The bytes of a file, by its name. `CorpusError` where the package for it is not installed."""
    if path.endswith(".gz"):
        import gzip

        return gzip.GzipFile(fileobj=raw)  # type: ignore[return-value]
    if path.endswith(_ZSTD):
        try:
            reader: IO[bytes] = (
                import_module("zstandard").ZstdDecompressor().stream_reader(raw, read_across_frames=True)
            )
        except ImportError:
            raise CorpusError(
                f"{path}: reading zstd takes the zstandard package: pip install 'ggufbpe[zstd]'"
            ) from None
        return reader
    return raw


def without_compression(name: str) -> str:
    """A file name without the suffix of its compression.

    >>> without_compression("a.txt.gz")
    'a.txt'
    """
    return name[: name.rindex(".")] if name.endswith((".gz", *_ZSTD)) else name


def has_json_lines(name: str) -> bool:
    """Whether a file is named as one of JSON lines."""
    return without_compression(name).endswith(_JSON_LINES)


def is_binary(path: str) -> bool:
    """Whether there is a NUL near the beginning of what the file decompresses to."""
    with open(path, "rb") as raw:
        try:
            return b"\0" in decompressed(raw, path).read(_HEAD_SIZE)
        except (CorpusError, EOFError, zlib.error, OSError):
            return False  # told when it is read


def lines(stream: Any) -> Iterator[bytes]:
    """The lines of a binary stream, with their ends; only a line feed ends one."""
    rest = b""
    while block := stream.read(_BLOCK):
        *whole, rest = (rest + block).split(b"\n") if b"\n" in block else (rest + block,)
        for line in whole:
            yield line + b"\n"
    if rest:
        yield rest
