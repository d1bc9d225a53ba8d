"""Files of a corpus: which ones there are, and what is in them, compressed or as lines of JSON.

    paths -> [this file] -> files -> bytes, records -> count, stats, train, verify

One rule for all that take texts: in directories, hidden and binary files, links and special files are left out. The
name of a file says how it is compressed (.gz, .zst) and whether its lines are JSON (.jsonl, .ndjson), each with a
text of its own.

But: bytes that are not UTF-8, and files that cannot be read, are up to the callers.
"""

from __future__ import annotations

import io
import os
import stat
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any, NamedTuple, TypeVar

from .errors import printable
from .extras import NotInstalledError, imported

_BLOCK = 1 << 20
_HEAD_SIZE = 8000  # where a NUL makes a file binary; buffer_is_binary in git's xdiff-interface.c
_JSON_LINES = (".jsonl", ".ndjson")
_ZSTD = (".zst", ".zstd")
_OF_A_REPOSITORY = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX"})
DEFAULT_FIELD = "text"  # of JSON lines

Report = Callable[[str, Exception], object]
T = TypeVar("T")


class CorpusError(ValueError):
    """A text that cannot be learned from or measured; the message says which, where and what to do."""


def raised(name: str, error: Exception) -> None:
    """A `Report` that raises what it is told, with the name of the file."""
    if isinstance(error, OSError) or str(error).startswith(name):
        raise error
    raise type(error)(f"{name}: {error}")


# ---- which files ----------------------------------------------------------------------------------------


class File(NamedTuple):
    """A file to read, and the path that was named: itself, or a directory that it is in."""

    path: str
    size: int  # bytes, as it lies on the disk
    root: str


def files_of(
    paths: Iterable[str],
    skipped: Counter[str],
    report: Report,
    ignored_in: Callable[[str], frozenset[str]] | None = None,
) -> Iterator[File]:
    """The files named, and those in the directories named, sorted by name in each.

    What is left out of directories is counted in `skipped`, by kind. What cannot be read goes to `report`.
    `ignored_in` tells which paths below a directory are left out, too. It is asked of each that is named, and of each
    repository below it: what git says of a directory says nothing of other repositories in it.
    """
    for root in paths:
        to_visit = [root]
        ignored: set[str] = set()
        while to_visit:
            path = to_visit.pop()
            if path in ignored:
                skipped["ignored by git"] += 1
                continue
            try:
                status = os.stat(path) if path == root else os.lstat(path)
                if stat.S_ISDIR(status.st_mode):
                    names = sorted(os.listdir(path), reverse=True)
                    if ignored_in is not None and (path == root or ".git" in names):
                        ignored |= ignored_in(path)
                    shown = [name for name in names if not name.startswith(".")]
                    skipped["hidden"] += len(names) - len(shown)
                    to_visit += [os.path.join(path, name) for name in shown]
                elif path != root and not stat.S_ISREG(status.st_mode):
                    skipped["link or special"] += 1
                elif path != root and _is_binary(path):
                    skipped["binary"] += 1
                else:
                    yield File(path, status.st_size, root)
            except OSError as error:
                report(path, error)


def ignored_by_git(folder: str) -> frozenset[str]:
    """What git ignores in a directory of a repository: paths as `files_of` makes them, one for a directory.

    Nothing where the directory is in no repository, where it is itself ignored, or where git is not installed.
    """
    import subprocess

    # fsmonitor names a program of the repository that git would run. In hooks, variables name another repository.
    git = ["git", "-C", folder, "-c", "core.fsmonitor=false"]
    environment = {name: value for name, value in os.environ.items() if name not in _OF_A_REPOSITORY}

    def asked(*arguments: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*git, *arguments], stdin=subprocess.DEVNULL, capture_output=True, env=environment
        )

    try:
        listed = asked("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
        if listed.returncode or not asked("check-ignore", "-q", ".").returncode:
            return frozenset()
    except OSError:
        return frozenset()
    names = (os.fsdecode(name).rstrip("/") for name in listed.stdout.split(b"\0"))
    return frozenset(os.path.join(folder, name) for name in names if name not in ("", "."))


def _is_binary(path: str) -> bool:
    """Whether there is a NUL near the beginning of what the file decompresses to."""
    with open(path, "rb") as raw:
        try:
            with decompressed(raw, path) as stream:
                return b"\0" in stream.read(_HEAD_SIZE)
        except CorpusError:
            return False  # reported when it is read


# ---- what is in them ------------------------------------------------------------------------------------


@contextmanager
def decompressed(raw: IO[bytes], path: str) -> Iterator[IO[bytes]]:
    """The bytes of a file, by its name. `CorpusError` where they are broken or the package for it is not installed."""
    try:
        yield _decompressed(raw, path)
    except (EOFError, zlib.error) as error:
        raise CorpusError(f"{path}: the compressed data is broken: {error}") from error
    except Exception as error:
        if type(error).__name__ in ("BadGzipFile", "ZstdError"):  # neither is imported where it is not needed
            raise CorpusError(f"{path}: the compressed data is broken: {error}") from error
        raise


def _decompressed(raw: IO[bytes], path: str) -> IO[bytes]:
    if path.endswith(".gz"):
        import gzip

        return gzip.GzipFile(fileobj=raw)  # type: ignore[return-value]
    if path.endswith(_ZSTD):
        try:
            zstandard = imported("zstandard", "zstd", "reading zstd")
        except NotInstalledError as error:
            raise CorpusError(f"{path}: {error}") from None
        return io.BufferedReader(_ZstdFrames(raw, zstandard.ZstdDecompressor()), 1 << 17)
    return raw


class _ZstdFrames(io.RawIOBase):
    """What a zstd file decompresses to; `EOFError` where it ends inside a frame, as gzip has it.

    The reader of the package `zstandard` takes it for the end of the text.
    """

    def __init__(self, raw: IO[bytes], decompressor: Any) -> None:
        self._raw, self._decompressor = raw, decompressor
        self._frame: Any = None
        self._input, self._output = b"", memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._output:
            self._input = self._input or self._raw.read(
                1 << 10
            )  # so little, as 4 bytes may be 128 KiB of text
            if not self._input:
                if self._frame is not None:
                    raise EOFError("it ends inside a frame")
                return 0
            if self._frame is None:
                self._frame = self._decompressor.decompressobj()
            self._output, self._input = memoryview(self._frame.decompress(self._input)), b""
            if self._frame.eof:
                self._input, self._frame = self._frame.unused_data, None
        size = min(len(buffer), len(self._output))
        buffer[:size], self._output = self._output[:size], self._output[size:]
        return size


def without_compression(name: str) -> str:
    """A file name without the suffix of its compression.

    >>> without_compression("a.txt.gz")
    'a.txt'
    """
    return name[: name.rindex(".")] if name.endswith((".gz", *_ZSTD)) else name


def has_json_lines(name: str) -> bool:
    """Whether a file is named as one of JSON lines."""
    return without_compression(name).endswith(_JSON_LINES)


def lines(stream: Any) -> Iterator[bytes]:
    """The lines of a binary stream, with their ends; only a line feed ends one."""
    rest = b""
    while block := stream.read(_BLOCK):
        *whole, rest = (rest + block).split(b"\n") if b"\n" in block else (rest + block,)
        for line in whole:
            yield line + b"\n"
    if rest:
        yield rest


class Record(NamedTuple):
    """A line of JSON: its text, and all of its fields."""

    text: str
    fields: dict[str, Any]


def record_of(line: str, field: str | None) -> Record:
    """A line of JSON lines; its text is in `field` (None: "text"). `ValueError` says what is wrong with it."""
    import json  # here, so that commands which read none start faster

    try:
        fields = json.loads(line)
    except RecursionError:
        raise ValueError("not JSON: nested too deep") from None
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise ValueError("not an object")
    text = fields.get(DEFAULT_FIELD if field is None else field)
    if not isinstance(text, str):
        name = printable(DEFAULT_FIELD if field is None else field)
        raise ValueError(f"the field {name} is no text; --field NAME says which one to read")
    return Record(text, fields)


def records(
    stream: Any, name: str, field: str | None, report: Report
) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """The texts of JSON lines as bytes, with all fields. Lines that have none are reported together, at the end."""
    for text, fields in read_lines(
        stream, name, report, lambda line: record_of(line.decode("utf-8", "surrogateescape"), field)
    ):
        yield utf8(text), fields


def read_lines(stream: Any, name: str, report: Report, read: Callable[[bytes], T]) -> Iterator[T]:
    """What `read` makes of each line; those of which it raises a `ValueError` are reported together, at the end."""
    bad, first = 0, ""
    for number, line in enumerate(lines(stream), 1):
        if not line.strip():
            continue
        try:
            found = read(line)
        except ValueError as error:
            bad, first = bad + 1, first or f"line {number}: {error}"
        else:
            yield found
    if bad:
        left_out = "" if bad == 1 else f" ({bad} such lines)"
        report(name, CorpusError(f"left out: {first}{left_out}"))


def utf8(text: str) -> bytes:
    """The bytes of a text, also of lone surrogates, which JSON can write and UTF-8 cannot, and bytes read as such."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
