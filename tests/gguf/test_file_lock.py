"""The lock of a file that is changed: whom it keeps out, and what else is noticed."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from fix_cases import PRE, metadata, write_model

import ggufbpe
from ggufbpe import InterruptedChangeError
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


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    for path in (tmp_path, tmp_path / "pipe.gguf"):
        with locked(path) as lock:
            lock.require_unchanged()
    with pytest.raises(FileNotFoundError), locked(tmp_path / "none.gguf"):
        pass
