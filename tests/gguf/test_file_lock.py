"""The lock of a file that is changed: whom it keeps out, and what else is noticed."""

from __future__ import annotations

import builtins
import errno
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from fix_cases import PRE, metadata, write_model

import ggufbpe
from ggufbpe import InterruptedChangeError
from ggufbpe._util import files
from ggufbpe.gguf.file_lock import locked

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such locks")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path / "model.gguf")


@pytest.mark.parametrize("name", ["model.gguf", "link.gguf", "other.gguf"])
def test_a_file_is_locked_under_all_its_names(name: str, model: Path) -> None:
    model.with_name("link.gguf").symlink_to(model)
    os.link(model, model.with_name("other.gguf"))
    with (
        locked(model),
        pytest.raises(InterruptedChangeError, match=f"{name}: another process is changing it"),
        locked(model.with_name(name)),
    ):
        pass
    with locked(model.with_name(name)):
        pass


def test_a_lock_is_of_the_file_that_has_the_name(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another change put a copy in the place of the file between opening and locking."""
    import fcntl

    inner, copies = fcntl.flock, [write_model(model.with_name("copy.gguf"))]

    def later(file: int, operation: int) -> None:
        if copies:
            os.replace(copies.pop(), model)
        inner(file, operation)

    monkeypatch.setattr(fcntl, "flock", later)
    with locked(model) as lock:
        assert os.path.samestat(lock.status, model.stat())
        with pytest.raises(InterruptedChangeError), locked(model):
            pass


def test_a_file_that_may_only_be_read_is_locked_too(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model.chmod(0o400)
    inner = open

    def opened(path: Any, mode: str = "r", *arguments: Any, **keywords: Any) -> Any:
        if "+" in mode:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)  # tests may run as root
        return inner(path, mode, *arguments, **keywords)

    monkeypatch.setattr("builtins.open", opened)
    with locked(model) as lock, pytest.raises(InterruptedChangeError), locked(model):
        assert lock.failure == ""
    assert ggufbpe.fix(model, in_place=True, set={PRE: "olmo"}).written == "copied"
    assert metadata(model)[PRE] == "olmo"


def test_a_file_system_without_locks(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There the file is replaced by a copy, and compared with what was read."""
    import fcntl

    def refused(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refused)
    assert ggufbpe.fix(model, in_place=True, set={PRE: "olmo"}).written == "copied"
    assert metadata(model)[PRE] == "olmo"
    with locked(model) as lock:
        lock.require_unchanged()
        os.replace(write_model(model.with_name("copy.gguf")), model)
        with pytest.raises(InterruptedChangeError, match="another process has changed it in the meantime"):
            lock.require_unchanged()


@pytest.mark.parametrize("nameless", [True, False])
@pytest.mark.parametrize("name", ["a", "x" * 300])
def test_a_share_whose_locked_files_cannot_be_read(
    name: str, nameless: bool, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SMB, since Linux 5.5: I/O on a locked file fails except through the descriptor that locked it (flock(2))."""
    import fcntl

    flock, held, asked = fcntl.flock, set[int](), set[int]()

    def locking(descriptor: int, operation: int) -> None:
        flock(descriptor, operation)
        asked.add(descriptor)
        (held.remove if operation == fcntl.LOCK_UN else held.add)(descriptor)

    def is_one_of(descriptors: set[int], path: Any) -> bool:
        found = []
        for descriptor in descriptors:
            with suppress(OSError):  # closed, or no file at the path
                found.append(os.path.samestat(os.fstat(descriptor), os.stat(path)))
        return any(found)

    def refusing(opened: Callable[..., Any]) -> Callable[..., Any]:
        def called(path: Any, *arguments: Any, **keywords: Any) -> Any:
            if not isinstance(path, int) and is_one_of(held, path):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
            return opened(path, *arguments, **keywords)

        return called

    def replacing(source: Any, target: Any, inner: Callable[..., None] = os.replace) -> None:
        assert not is_one_of(asked, model)  # nor is the file still open
        inner(source, target)

    monkeypatch.setattr(fcntl, "flock", locking)
    monkeypatch.setattr(builtins, "open", refusing(open))
    monkeypatch.setattr(os, "open", refusing(os.open))
    monkeypatch.setattr(os, "replace", replacing)
    if not nameless:
        monkeypatch.setattr(files, "_NAMELESS", 0)
    assert ggufbpe.fix(model, in_place=True, set={"general.name": name}).written == "copied"
    assert metadata(model)["general.name"] == name
    assert os.listdir(model.parent) == [model.name]


@pytest.mark.parametrize("error", [errno.EAGAIN, errno.EACCES])
def test_a_lock_that_another_process_holds(error: int, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SMB says EACCES for what other file systems say EAGAIN for."""
    import fcntl

    def refused(*_: object) -> None:
        raise OSError(error, os.strerror(error))

    before = model.read_bytes()
    monkeypatch.setattr(fcntl, "flock", refused)
    with pytest.raises(InterruptedChangeError, match="another process is changing it"):
        ggufbpe.fix(model, in_place=True, set={PRE: "olmo"})
    assert model.read_bytes() == before


def test_nfs_locks_only_what_is_open_for_writing(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    flock, modes = fcntl.flock, []

    def locking(descriptor: int, operation: int) -> None:
        modes.append(fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE)
        if modes[-1] == os.O_RDONLY:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", locking)
    with locked(model) as lock:
        assert (lock.failure, modes) == ("", [os.O_RDONLY, os.O_RDWR])
        with pytest.raises(InterruptedChangeError, match="another process is changing it"), locked(model):
            pass


@pytest.mark.parametrize(
    ("arguments", "expected"), [({PRE: "no such one"}, None), ({"general.name": "x" * 300}, "copied")]
)
def test_what_is_not_written_to_is_not_opened_for_writing(
    arguments: dict[str, Any], expected: str | None, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening a file of a lower layer for writing makes overlayfs copy all of it."""
    inner, opened = open, []

    def noting(path: Any, mode: str = "r", *rest: Any, **keywords: Any) -> Any:
        opened.append((path, mode))
        return inner(path, mode, *rest, **keywords)

    monkeypatch.setattr(builtins, "open", noting)
    try:
        written = ggufbpe.fix(model, in_place=True, set=arguments).written
    except ggufbpe.GGUFError:
        written = None
    assert written == expected
    assert (str(model), "rb") in opened
    assert (str(model), "r+b") not in opened


def test_a_file_that_is_another_one_each_time_is_given_up(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a file system whose inode numbers change."""
    asked: list[object] = []
    monkeypatch.setattr(os.path, "samestat", lambda *both: asked.append(both))
    with pytest.raises(InterruptedChangeError, match="another file has its name each time"), locked(model):
        pass
    assert len(asked) == 10


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    for path in (tmp_path, tmp_path / "pipe.gguf"):
        with locked(path) as lock:
            lock.require_unchanged()
    with pytest.raises(FileNotFoundError), locked(tmp_path / "none.gguf"):
        pass
