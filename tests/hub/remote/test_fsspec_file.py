"""Ranges of files in a storage of fsspec, here the one in memory."""

from __future__ import annotations

from collections.abc import Iterator

import fsspec
import pytest

from ggufbpe._util.errors import RemoteAccessError, RemoteError, RemoteNotFoundError
from ggufbpe.gguf.source import ByteRange
from ggufbpe.hub.name_grammar import Address
from ggufbpe.hub.remote.fsspec_file import StoredFile


@pytest.fixture
def files() -> Iterator[fsspec.AbstractFileSystem]:
    """The storage in memory, with a file of ten bytes."""
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/models/m.gguf", b"0123456789")
    yield memory
    memory.rm("/models", recursive=True)


def test_ranges(files: fsspec.AbstractFileSystem) -> None:
    stored = StoredFile(Address("memory://models/m.gguf"))
    for span, data in (
        (ByteRange(2, 5), b"234"),
        (ByteRange(8, 99), b"89"),
        (ByteRange(0, 10), b"0123456789"),
    ):
        part = stored.open(span)
        assert b"".join(part.blocks) == data
        assert (part.span, part.size) == (ByteRange(span.start, span.start + len(data)), 10)
    assert stored.name == "memory://models/m.gguf"


def test_a_file_that_is_replaced(files: fsspec.AbstractFileSystem) -> None:
    stored = StoredFile(Address("memory://models/m.gguf"))
    stored.check()
    files.pipe_file("/models/m.gguf", b"0123456789!")
    with pytest.raises(RemoteError, match="the file was replaced while it was read"):
        stored.check()


MISSING = {
    "memory://models/other.gguf": (RemoteNotFoundError, "there is no such file"),
    "memory://models": (RemoteNotFoundError, "this is not a file"),
}


@pytest.mark.parametrize("url", MISSING)
def test_what_is_no_file(files: fsspec.AbstractFileSystem, url: str) -> None:
    kind, problem = MISSING[url]
    with pytest.raises(kind, match=problem):
        StoredFile(Address(url))


ERRORS: list[tuple[Exception, type[RemoteError], str]] = [
    (PermissionError("no"), RemoteAccessError, r"the storage denies access \(no\)"),
    (RuntimeError("broken"), RemoteError, r"the storage cannot be reached \(RuntimeError: broken\)"),
]


@pytest.mark.parametrize(("error", "kind", "problem"), ERRORS)
def test_errors_of_a_storage(
    files: fsspec.AbstractFileSystem,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    kind: type[RemoteError],
    problem: str,
) -> None:
    stored = StoredFile(Address("memory://models/m.gguf"))

    def fail(*_: object, **__: object) -> bytes:
        raise error

    monkeypatch.setattr(type(files), "cat_file", fail)
    with pytest.raises(kind, match=problem):
        stored.open(ByteRange(0, 1))
    monkeypatch.setattr(type(files), "cat_file", lambda *_, **__: b"")
    with pytest.raises(RemoteError, match="0 bytes came where 1 were requested"):
        stored.open(ByteRange(0, 1))


UNCONNECTED = [
    (
        OSError("no such host"),
        r"the storage cannot be reached \(OSError: no such host\); check the network and",
    ),
    (ValueError("give account_name"), "give account_name; check the address, and the package and settings"),
    (ImportError("Install s3fs"), "Install s3fs; check the address, and the package and settings"),
]


@pytest.mark.parametrize(("error", "said"), UNCONNECTED)
def test_a_storage_that_cannot_be_connected_to(
    error: Exception, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("fsspec.core.url_to_fs", fail)
    with pytest.raises(RemoteError, match=rf"^ftp://x\.invalid/m\.gguf: {said}"):
        StoredFile(Address("ftp://x.invalid/m.gguf"))
