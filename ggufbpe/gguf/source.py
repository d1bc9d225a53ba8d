"""Reads the bytes of a GGUF file in blocks and notices when the file changes.

The file is read, not mapped: when somebody truncates a mapped file, SIGBUS ends the process. Of a remote file, only the
beginning is here, as bytes or, while it is read for the first time, as a `Stream`.
"""

# No `from __future__ import annotations`: `typing` would compile each annotation of a NamedTuple at every import.

import errno
import io
import os
import re
import stat
import struct
from collections.abc import Iterator
from typing import IO, NamedTuple, Protocol

from .._util.errors import InterruptedChangeError, NotGGUFError, RemoteError, TruncatedFileError
from .._util.files import undo_record
from .._util.shell import shell_path
from .constants import GGUF_MAGIC

DOWNLOAD_AGAIN = (
    "the file is damaged or its download is unfinished: compare its size and hash, and download it again"
)

SHARED_BLOCK = 1 << 16  # bytes, a multiple of every file system's block
_FICLONERANGE = 0x4020940D  # linux/fs.h

_FOREIGN_FILES = (  # how files begin that are often mistaken for a GGUF: (pattern, what it is, what to do)
    (
        rb"version https://git-lfs",
        "a Git LFS pointer, not the model itself",
        "run `git lfs pull` in its folder to get the model",
    ),
    (
        rb".{6}\0\0\{",
        "a safetensors file, not a GGUF",
        "convert the model with llama.cpp's convert_hf_to_gguf.py",
    ),
    (
        rb"PK\x03\x04",
        "a zip archive (a PyTorch checkpoint is one), not a GGUF",
        "convert the model with llama.cpp's convert_hf_to_gguf.py",
    ),
    (
        rb"lmgg|fmgg|tjgg",
        "a GGML file from before GGUF",
        "convert it with llama.cpp's convert_llama_ggml_to_gguf.py, or get the model as GGUF",
    ),
    (
        rb"\s*<(!doctype|html|\?xml)",
        "a web page, not a GGUF: the download gave an error or a login page",
        "open the file in an editor to read what the server said, then download the model again",
    ),
    (
        rb'\s*\{\s*"pre":',
        "a vocabulary that `ggufbpe train` wrote as JSON, not a GGUF",
        "explain, tokenize and compare open it; to others give what `ggufbpe train -o vocab.gguf` writes",
    ),
    (rb"\s*\{", "a JSON text, not a GGUF", "give the .gguf file of the model"),
    (rb"\x1f\x8b", "a gzip archive, not a GGUF", "unpack it with `gunzip` first"),
)

# Other programs' files of a tokenizer, which `ggufbpe import` reads (convert/importers/import_files.py).
TOKENIZER_FILES = (
    *("tokenizer.json", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model"),
    *("vocab.txt", "merges.txt", "vocab.bpe", "vocab.json", "encoder.json"),
)


class ByteRange(NamedTuple):
    """Bytes of a file, from offset `start` up to `end`."""

    start: int
    end: int


class FileState(NamedTuple):
    """What changes when somebody writes a file."""

    size: int
    modified: int  # nanoseconds


class Stream(Protocol):
    """The bytes of a remote file, which come in order and are kept."""

    size: int  # of the whole file

    def read(self, position: int, least: int, most: int) -> bytes:
        """`least` to `most` bytes from `position` on, as many as are there; waits for the least."""
        ...

    def expect(self, end: int, likely: int) -> None:
        """Say that everything up to `end` will be read, and likely up to `likely`."""
        ...

    def close(self) -> None:
        """Ask for no more."""
        ...


class Source:
    """A file, open for reading, or bytes that stand in for one."""

    # Bytes that opening reads at a time: with more, page faults in fresh memory take longer than reading.
    BLOCK = 1 << 16
    COPIED_BLOCK = 1 << 20

    path: str
    size: int  # of the file, in bytes, when it was opened
    _file: io.FileIO | io.BytesIO | Stream
    _opened: FileState
    _window: bytes  # the block that was read last
    _window_start: int  # where that block begins
    _was_closed: bool  # by `close` of this source; another source may have closed the shared file

    def __init__(
        self,
        path: "str | os.PathLike[str] | Source",
        data: bytes | Stream | None = None,
        size: int | None = None,
    ) -> None:
        """`data`: the bytes of a file that is not to be opened, or the first of them if it has `size` bytes.

        `path` is then what errors call it. A source that is open is taken over, and is closed with this one.
        """
        if isinstance(path, Source):
            self.path, self.size = path.path, path.size
            self._file, self._opened, self._was_closed = path._file, path._opened, path._was_closed
            self._window, self._window_start = path._window, path._window_start
            return
        self.path = os.fsdecode(path)
        self._file = _open_file(self.path) if data is None else _held(data)
        self._window, self._window_start = b"", 0
        self._was_closed = False
        try:
            self._opened = self._state()
            self.size = self._opened.size if size is None else size
            if self.size == 0:
                raise NotGGUFError("the file is empty", path=self.path, offset=0, remedy="download it again")
        except BaseException:
            self.close()
            raise

    @property
    def here(self) -> int:
        """The number of bytes that can be read: all of the file's, unless only the first of a remote file were kept."""
        return self._opened.size

    @property
    def is_on_disk(self) -> bool:
        """Whether this is a file of this machine, and not bytes that stand in for one."""
        return isinstance(self._file, io.FileIO)

    def some(self, position: int, size: int) -> bytes:
        """The bytes from `position` on: `size`, or fewer where the file, or what is kept of it, ends before.

        `TruncatedFileError` if the file has become shorter since it was opened.
        """
        return self._bytes(position, max(0, min(size, self.here - position)))

    def blocks(self, span: ByteRange) -> Iterator[bytes]:
        """The bytes of `span`, which may lie after the metadata, a megabyte at a time.

        `TruncatedFileError` where the file ends before, or has changed since it was opened: what was copied so
        far may be of two files.
        """
        position = span.start
        if self._opened.size < span.end <= self.size:
            raise RemoteError(
                "only the metadata of this file is here, not its tensors",
                path=self.path,
                offset=self._opened.size,
                remedy="download the file, and give its path",
            )
        while position < span.end:
            block = self._read(position, min(span.end - position, self.COPIED_BLOCK))
            if not block:
                raise self._changed(position)
            yield block
            position += len(block)
        if self._state() != self._opened:
            raise self._changed(span.start)

    def can_share(self, target: IO[bytes]) -> bool:
        """Whether the blocks of `target`, an empty file, may be this file's: both are on a file system that can."""
        try:
            self._clone(target, ByteRange(0, 1 << 16), 0)
        except (OSError, ImportError):
            return False
        target.truncate(0)
        return True

    def share(self, span: ByteRange, target: IO[bytes]) -> None:
        """Append the bytes of `span`, up to the end of the file; whole blocks are the same on the disk.

        In a block, `span` and the end of `target` begin at the same place.
        """
        whole = span.start + -span.start % SHARED_BLOCK
        for block in self.blocks(ByteRange(span.start, whole)):
            target.write(block)
        target.flush()
        self._clone(target, ByteRange(whole, 0), target.tell())
        target.seek(0, os.SEEK_END)
        if self._state() != self._opened:
            raise self._changed(whole)

    def _clone(self, target: IO[bytes], span: ByteRange, at: int) -> None:
        """Linux's FICLONERANGE; `span.end` is 0 for the end of the file."""
        import fcntl

        if not isinstance(self._file, io.FileIO):
            raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
        size = span.end - span.start if span.end else 0
        fcntl.ioctl(
            target.fileno(), _FICLONERANGE, struct.pack("qQQQ", self._file.fileno(), span.start, size, at)
        )

    def again(self) -> "Source":
        """Another source of the same bytes, which are held here; this one stays as it is."""
        assert isinstance(self._file, io.BytesIO)
        return Source(self.path, self._file.getvalue(), self.size)

    def close(self) -> None:
        """Close the file. Values can no longer be read."""
        self._was_closed = True
        self._window = b""
        self._file.close()

    @property
    def _closed(self) -> bool:
        """Whether the file is closed, by this source or by one that took it over."""
        return self._was_closed or (isinstance(self._file, io.IOBase) and self._file.closed)

    def _read(self, position: int, size: int) -> bytes:
        """Up to `size` bytes from `position` on. Others, a forked process too, may read the same file."""
        if isinstance(self._file, io.FileIO) and hasattr(os, "pread"):
            return os.pread(self._file.fileno(), size, position)
        if not isinstance(self._file, io.IOBase):
            return self._file.read(position, size, size)
        self._file.seek(position)
        return self._file.read(size)

    def _expect(self, end: int, likely: int) -> None:
        """Note that the file will be read up to `end`, so that a stream can ask for it in one go."""
        if not isinstance(self._file, io.IOBase):
            self._file.expect(end, likely)

    def _bytes(self, position: int, size: int) -> bytes:
        """`size` bytes from `position` on, which lie in the file by its size."""
        start = position - self._window_start
        if start < 0 or start + size > len(self._window):
            most = max(self.BLOCK, size)
            if isinstance(self._file, io.IOBase):
                self._window = self._read(position, most)
            else:  # what has not come yet would have to be waited for
                self._window = self._file.read(position, size, most)
            self._window_start, start = position, 0
            if len(self._window) < size:
                raise self._changed(position + len(self._window))
        return self._window[start : start + size]

    def _whole(self, start: int, end: int) -> bytes | memoryview:
        """The bytes of a value."""
        if isinstance(self._file, io.BytesIO):
            return self._file.getbuffer()[start:end]
        data = self._read(start, end - start)
        if len(data) < end - start:
            raise self._changed(start + len(data))
        return data

    def _state(self) -> FileState:
        """What is seen of the file now."""
        if isinstance(self._file, io.BytesIO):
            return FileState(len(self._file.getbuffer()), 0)
        if not isinstance(self._file, io.FileIO):
            return FileState(self._file.size, 0)
        status = os.fstat(self._file.fileno())
        return FileState(status.st_size, status.st_mtime_ns)

    def _changed(self, position: int) -> TruncatedFileError:
        return TruncatedFileError(
            "the file was truncated or written to while it was open",
            path=self.path,
            offset=position,
            remedy="try again when nobody writes to it any more",
        )


def _held(data: bytes | Stream) -> io.BytesIO | Stream:
    return io.BytesIO(data) if isinstance(data, bytes) else data


def _open_file(path: str) -> io.FileIO:
    """The file, open for reading; `NotGGUFError` for what is not a regular file."""
    if os.path.isdir(path):
        raise _not_a_file(path)
    if _is_half_written(path):
        raise InterruptedChangeError(
            "a change of this file was interrupted, or is under way",
            path=path,
            remedy="`ggufbpe fix MODEL` ends it: what was not yet written whole is undone",
        )
    if not stat.S_ISREG(os.stat(path).st_mode):  # asked before opening: opening a pipe waits for a writer
        raise NotGGUFError(
            "this is not a regular file but a pipe or device, which has no size to check lengths against",
            path=path,
            remedy="save it to a file first",
        )
    return open(path, "rb", buffering=0)


def _not_a_file(path: str) -> NotGGUFError:
    """The error for a folder, with what to give instead."""
    names = sorted(os.listdir(path))
    if models := [name for name in names if name.endswith(".gguf")]:
        listed = ", ".join(models[:3]) + (" …" if len(models) > 3 else "")
        return NotGGUFError("this is a directory", path=path, remedy=f"give the .gguf file in it: {listed}")
    if any(name in TOKENIZER_FILES for name in names):
        problem = "this is a directory with a tokenizer of another program, not a GGUF"
        return NotGGUFError(problem, path=path, remedy=_to_import(path))
    return NotGGUFError("this is a directory", path=path, remedy="give a .gguf file")


def is_tokenizer_of_others(path: str) -> bool:
    """Whether `path` is a file that `ggufbpe import` reads, or a folder with one and without a GGUF."""
    try:
        if os.path.isdir(path):
            there = os.listdir(path)
            return not set(TOKENIZER_FILES).isdisjoint(there) and not any(
                name.endswith(".gguf") for name in there
            )
        if os.path.basename(path) not in TOKENIZER_FILES:
            return False
        with open(path, "rb") as file:
            return file.read(len(GGUF_MAGIC)) != GGUF_MAGIC
    except OSError:
        return False  # whoever opens it says why


def _to_import(path: str) -> str:
    """How to make a GGUF of another program's files."""
    return f"`ggufbpe import {shell_path(path)} -o vocab.gguf` makes a GGUF of it, to give instead"


def _is_half_written(path: str) -> bool:
    """Whether a change was interrupted. Hardly any file has a record, so what reads one is imported late."""
    if not os.path.lexists(undo_record(path)):
        return False
    from .in_place import is_half_written

    return is_half_written(path)


def not_gguf(path: str, head: bytes, size: int) -> NotGGUFError | TruncatedFileError:
    """The error for a file that does not begin with "GGUF", naming what it is instead where that shows."""
    if GGUF_MAGIC.startswith(head):
        from .._util.wording import counted

        return TruncatedFileError(
            f"the file ends after {counted(size, 'byte')}, inside the magic",
            path=path,
            offset=0,
            remedy=DOWNLOAD_AGAIN,
        )
    name = os.path.basename(path)
    is_other_json = name.endswith(".json") and (b'"truncation"' in head or b'"added_tokens"' in head)
    if name in TOKENIZER_FILES or name.endswith(".model") or is_other_json:
        return NotGGUFError(
            "this is a tokenizer of another program, not a GGUF", path=path, offset=0, remedy=_to_import(path)
        )
    for pattern, problem, remedy in _FOREIGN_FILES:
        if re.match(pattern, head, re.DOTALL | re.IGNORECASE):
            return NotGGUFError(f"this is {problem}", path=path, offset=0, remedy=remedy)
    return NotGGUFError(
        f"this is not a GGUF: it begins with {head[:4]!r} instead of {GGUF_MAGIC!r}",
        path=path,
        offset=0,
        remedy="give a .gguf model, or convert the model with llama.cpp's convert_hf_to_gguf.py",
    )
