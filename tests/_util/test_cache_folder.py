"""Where caches are, and what is deleted from them."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from ggufbpe._util.cache_folder import bound, cache_folder, delete_abandoned, evict


def file(path: Path, size: int = 1, age: float = 0) -> None:
    """A file of `size` bytes that was used `age` seconds ago."""
    path.write_bytes(b"x" * size)
    then = time.time() - age
    os.utime(path, (then, then))


def test_the_variable_comes_before_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GGUFBPE_CACHE_DIR", "/somewhere")
    assert cache_folder() == "/somewhere"
    monkeypatch.setenv("GGUFBPE_CACHE_DIR", "")
    assert "ggufbpe" in cache_folder()


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="these have folders of their own")
@pytest.mark.parametrize(
    ("of_all", "expected"), [("/all", "/all/ggufbpe"), ("relative", "/home/me/.cache/ggufbpe")]
)
def test_the_folder_of_all_caches_is_absolute(
    of_all: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The XDG Base Directory Specification: a relative path is invalid and is ignored."""
    monkeypatch.delenv("GGUFBPE_CACHE_DIR", raising=False)
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("XDG_CACHE_HOME", of_all)
    assert cache_folder() == expected


@pytest.mark.parametrize(("said", "expected"), [("", 5), ("0", 0), ("12", 12)])
def test_bound(said: str, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GGUFBPE_CACHE_BYTES", said)
    assert bound(5) == expected


@pytest.mark.parametrize("said", ["abc", "-1", "1G", "1e9", "²"])
def test_a_bound_that_is_no_number_is_an_error(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GGUFBPE_CACHE_BYTES", said)
    with pytest.raises(ValueError, match=f"GGUFBPE_CACHE_BYTES must be a number of bytes, not '{said}'"):
        bound(5)


@pytest.mark.parametrize(
    ("most", "spared", "gone"),
    [
        (60, "", set()),
        (59, "", {"old.bin"}),
        (59, "old.bin", {"middle.bin"}),
        (20, "", {"old.bin", "middle.bin"}),
        (0, "new.bin", {"old.bin", "middle.bin"}),
    ],
)
def test_the_least_recently_used_files_are_evicted(
    most: int, spared: str, gone: set[str], tmp_path: Path
) -> None:
    for age, name in enumerate(("new.bin", "middle.bin", "old.bin")):
        file(tmp_path / name, 20, age * 60)
    file(tmp_path / "other.json", 1000, 3600)
    assert evict(str(tmp_path), ".bin", most, spared) == gone
    assert {path.name for path in tmp_path.iterdir()} == {
        "new.bin",
        "middle.bin",
        "old.bin",
        "other.json",
    } - gone


def test_only_old_unfinished_files_are_abandoned(tmp_path: Path) -> None:
    day = 24 * 3600
    file(tmp_path / "a.partial", age=day + 60)
    file(tmp_path / "b.partial", age=day - 60)
    file(tmp_path / "c.bin", age=2 * day)
    delete_abandoned([str(tmp_path)])
    assert {path.name for path in tmp_path.iterdir()} == {"b.partial", "c.bin"}
