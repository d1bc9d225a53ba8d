"""Local files and URLs: the inputs of a corpus, and the folder for its shards.

A file appears complete or not at all. A local file is written under a hidden name and then renamed; one behind a URL
is sent when it is complete.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import tempfile
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, NamedTuple

from ..._util import files
from ..._util.errors import naming
from .corpus_files import file_version, files_of, find_storage, is_url, open_file
from .records import CorpusError, raised

_HIDDEN = ".partial"  # ends the name of a file that is not whole
SEGMENTS = f".segments{_HIDDEN}"  # a folder of what a cluster has encoded and not yet written
# What a run leaves when it is killed: files of shards, and folders of segments. Hidden files of others stay.
_LEFT = re.compile(r"\.(part-\d{5,}\..+|segments|[0-9a-f]{32})\.partial", re.DOTALL)


class Input(NamedTuple):
    """A file of a corpus. `version` changes with its content."""

    path: str
    size: int
    version: str


class ChangedError(ValueError):
    """A file of a corpus has changed since the run started."""


# ---- inputs ---------------------------------------------------------------------------------------------


def list_inputs(paths: Iterable[str], skipped: Counter[str]) -> list[Input]:
    """The files named, and those in directories named, in order.

    `OSError` for one that is missing, `CorpusError` for one that can be read only once.
    """
    inputs: list[Input] = []
    for file in files_of(paths, skipped, raised, tables=True):
        if is_url(file.path):
            # What the listing says, since a request for each of many objects takes long.
            state = (file.size, file.version) if file.version else _state_at(file.path)
            inputs.append(Input(file.path, *state))
        else:
            status = os.stat(file.path)
            if not stat.S_ISREG(status.st_mode):
                raise CorpusError(
                    f"{file.path} is a pipe or a device, and inputs must be read again to resume and to check shards; "
                    "write the text to a file"
                )
            inputs.append(Input(file.path, *_state(status)))
    return inputs


def _state_at(url: str) -> tuple[int, str]:
    system, path = find_storage(url)
    facts = system.info(path)
    return facts.get("size") or 0, file_version(facts) or str(system.ukey(path))


def _state(status: os.stat_result) -> tuple[int, str]:
    return status.st_size, str(status.st_mtime_ns)


@contextmanager
def open_input(given: Input) -> Iterator[IO[bytes]]:
    """Open an input. `ChangedError` if it has changed, before or after reading."""
    if is_url(given.path):
        _check(given, *_state_at(given.path))
        with open_file(given.path) as file:
            yield file
        return
    with open(given.path, "rb") as file:
        _check(given, *_state(os.fstat(file.fileno())))
        yield file
        _check(given, *_state(os.fstat(file.fileno())))


def _check(given: Input, size: int, version: str) -> None:
    if (size, version) != (given.size, given.version):
        raise ChangedError(f"{given.path}: the file has changed since encoding began")


# ---- the folder that is written -------------------------------------------------------------------------


class LocalFolder:
    """A folder of this machine."""

    def __init__(self, path: str, attempt: str = "") -> None:
        self.name = path
        # called when a created file is complete, before it gets its name
        self.before_naming = _nothing
        self._attempt = attempt
        self._lock: int | None = None
        self._made = False

    def path(self, name: str) -> str:
        """The path of a file."""
        return os.path.join(self.name, name)

    def names(self) -> list[str]:
        """The files in it; none if it does not exist."""
        try:
            return sorted(name for name in os.listdir(self.name) if not name.startswith("."))
        except FileNotFoundError:
            return []

    def read(self, name: str) -> bytes:
        """All of a file; `FileNotFoundError`."""
        with open(self.path(name), "rb") as file:
            return file.read()

    def write(self, name: str, data: bytes) -> None:
        """Write a file, completely or not at all."""
        files.write_files({self.path(name): data}, follow=False)

    def append(self, name: str, data: bytes) -> None:
        """Add to a file of this run, and sync it. A kill may leave only the beginning of `data`."""
        path = self.path(name)
        with naming(path), open(path, "r+b", opener=files.without_links) as file:
            file.seek(0, os.SEEK_END)
            file.write(data)
            files.sync(file)

    def create(self, name: str) -> LocalOutput:
        """A file to be written in parts."""
        return LocalOutput(self, name, self._attempt)

    def open(self, name: str) -> IO[bytes]:
        """A file to be read, from any offset."""
        return open(self.path(name), "rb")

    def size(self, name: str) -> int:
        """Bytes of a file; `FileNotFoundError`."""
        return os.path.getsize(self.path(name))

    def remove(self, name: str) -> None:
        """Remove a file."""
        os.unlink(self.path(name))

    def prepare(self) -> None:
        """Make and lock the folder. `OSError` if another run is writing to it."""
        self._made = not os.path.isdir(self.name)
        os.makedirs(self.name, exist_ok=True)
        if os.name != "nt":
            self._lock = self._locked()

    def clean(self) -> None:
        """Remove what a run did not finish."""
        with suppress(FileNotFoundError):  # tasks that are being cancelled do not find it under another name
            os.rename(self.path(SEGMENTS), self.path(f".{uuid.uuid4().hex}{_HIDDEN}"))
        for name in os.listdir(self.name):
            if _LEFT.fullmatch(name):
                path = self.path(name)
                if os.path.isdir(path) and not os.path.islink(path):
                    shutil.rmtree(path)
                else:
                    with suppress(FileNotFoundError):
                        os.unlink(path)

    def discard(self) -> None:
        """Remove the folder if `prepare` made it and it is empty."""
        if self._made:
            with suppress(OSError):  # not empty
                os.rmdir(self.name)

    @property
    def is_locked(self) -> bool:
        """Whether no other run can be writing there."""
        return self._lock is not None

    def _locked(self) -> int:
        """A lock on the folder. The system releases it even after a kill."""
        import fcntl

        lock = os.open(self.name, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise BlockingIOError(errno.EAGAIN, "another run is writing there", self.name) from None
        return lock

    def release(self) -> None:
        """Unlock it."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _nothing() -> None:
    """Do nothing."""


class LocalOutput:
    """A file that is being written."""

    def __init__(self, folder: LocalFolder, name: str, attempt: str) -> None:
        self._folder = folder
        self._path, self._hidden = folder.path(name), folder.path(f".{name}{attempt}{_HIDDEN}")
        self.file: IO[bytes] = files.created(self._hidden)

    def finish(self, is_kept: bool = True) -> None:
        """Sync it if it `is_kept` after the run, and give it its name."""
        if is_kept:
            files.sync(self.file)
        self.file.close()
        self._folder.before_naming()
        os.replace(self._hidden, self._path)
        if is_kept:
            files.sync_folder(self._folder.name or ".")

    def discard(self) -> None:
        """Remove it."""
        with suppress(OSError):
            self.file.close()
        with suppress(OSError):
            os.unlink(self._hidden)


class RemoteFolder:
    """A folder behind a URL, with the methods of `LocalFolder`. It has no lock."""

    def __init__(self, url: str) -> None:
        self.name = url.rstrip("/")
        self.before_naming = _nothing
        try:
            self._system, self._root = find_storage(self.name)
        except CorpusError as error:
            raise CorpusError(f"{self.name}: {error}") from None

    def _at(self, name: str) -> str:
        return f"{self._root}/{name}"

    def names(self) -> list[str]:
        if not self._system.isdir(self._root):
            return []
        self._system.invalidate_cache()
        return sorted(os.path.basename(path) for path in self._system.ls(self._root, detail=False))

    def read(self, name: str) -> bytes:
        data: bytes = self._system.cat_file(self._at(name))
        return data

    def write(self, name: str, data: bytes) -> None:
        self._system.pipe_file(self._at(name), data)

    def put(self, path: str, name: str) -> None:
        """Send a file of this machine."""
        self._system.put_file(path, self._at(name))

    def create(self, name: str) -> RemoteOutput:
        return RemoteOutput(self, name)

    def open(self, name: str) -> IO[bytes]:
        file: IO[bytes] = self._system.open(self._at(name), "rb")
        return file

    def size(self, name: str) -> int:
        return int(self._system.size(self._at(name)))

    def remove(self, name: str) -> None:
        self._system.rm_file(self._at(name))

    def prepare(self) -> None:
        self._system.makedirs(self._root, exist_ok=True)

    def release(self) -> None:
        pass

    def discard(self) -> None:
        pass

    @property
    def is_locked(self) -> bool:
        return False

    def clean(self) -> None:
        with suppress(FileNotFoundError):
            self._system.rm(self._at(SEGMENTS), recursive=True)


class RemoteOutput:
    """A temporary file with the methods of `LocalOutput`, sent to a URL when it is complete."""

    def __init__(self, folder: RemoteFolder, name: str) -> None:
        self._folder, self._name = folder, name
        self._local = tempfile.NamedTemporaryFile(suffix=_HIDDEN)  # noqa: SIM115
        self.file: IO[bytes] = self._local.file

    def finish(self, is_kept: bool = True) -> None:
        self.file.flush()
        self._folder.before_naming()
        self._folder.put(self._local.name, self._name)
        self._local.close()

    def discard(self) -> None:
        with suppress(OSError):
            self._local.close()


Folder = LocalFolder | RemoteFolder


def folder_at(path: str, attempt: str = "") -> Folder:
    """The folder of a path or URL, which need not be there.

    Two who write the same file at the same time, on machines of a cluster, are told apart by their `attempt`.
    """
    return RemoteFolder(path) if is_url(path) else LocalFolder(path, attempt)
