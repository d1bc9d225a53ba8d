"""Merge tables from a file give the same ids as new ones; a file that is not right is ignored and replaced."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from conftest import GPT2, RAW_UTF8, UNSPLIT, missing
from record_fixtures import as_bytes, read_recorded

from ggufbpe import GGUFWarning, Tokenizer
from ggufbpe.native import native, table_cache

if native is None:
    missing("the compiled module is not there")

TEXT = "Hello world, don't!\n\n  \t12345 \u4f60\u597d\U0001f600 antidisestablishmentarianism"
EXPECTED = Tokenizer.from_gguf(GPT2, "reference").encode(TEXT)


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of tables in an empty cache folder."""
    monkeypatch.setenv("GGUFBPE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("GGUFBPE_CACHE", raising=False)
    return tmp_path / "cache" / "tables"


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each look-up found tables in a file."""
    answers: list[bool] = []
    read = table_cache._read

    def noting(*arguments: Any) -> Any:
        made = read(*arguments)
        answers.append(made is not None)
        return made

    monkeypatch.setattr(table_cache, "_read", noting)
    return answers


def opened(path: Path = GPT2) -> Tokenizer:
    """A tokenizer whose tables are there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GGUFWarning)
        tok = Tokenizer.from_gguf(path, "native")
    tok.encode("")
    return tok


def kept(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.tables"))


@pytest.mark.parametrize(
    ("recorded", "path"), [("byte_level", GPT2), ("raw_utf8", RAW_UTF8), ("unsplit", UNSPLIT)]
)
def test_ids_and_offsets(
    recorded: str, path: Path, found: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_cache, "FEWEST_MERGES", 0)
    made, read = opened(path), opened(path)
    assert found == [False, True]
    for text in map(as_bytes, read_recorded(recorded)["texts"]):
        assert read.encode_with_offsets(text) == made.encode_with_offsets(text)
    assert read.encode(TEXT * 999) == made.encode(TEXT * 999)


def test_equal_vocabularies_share_a_file(folder: Path, found: list[bool], tmp_path: Path) -> None:
    copy = tmp_path / "copy.gguf"
    copy.write_bytes(GPT2.read_bytes())
    assert opened(copy).encode(TEXT) == opened().encode(TEXT) == EXPECTED
    assert found == [False, True]
    assert len(kept(folder)) == 1


def test_another_merge_is_another_vocabulary(found: list[bool], tmp_path: Path) -> None:
    data = bytearray(GPT2.read_bytes())
    place = data.index("Ġwor ld".encode(), data.index(b"tokenizer.ggml.merges"))
    data[place + 4 : place + 5] = b"u"  # of the same length, so nothing else differs
    changed = tmp_path / "changed.gguf"
    changed.write_bytes(data)
    assert opened().encode(TEXT) == EXPECTED
    ours, theirs = (
        Tokenizer.from_gguf(changed, engine).encode(TEXT * 3) for engine in ("native", "reference")
    )
    assert ours == theirs
    assert found == [False, False]


def damaged(data: bytes) -> list[bytes]:
    """A file with one changed bit at each of many places, cut off, too long, empty, or of zeros."""
    places = [*range(160), *range(160, len(data), 40_009), *range(len(data) - 64, len(data))]
    flipped = [data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :] for at in places]
    cut = [data[:size] for size in (0, 1, 16, 63, 64, 128, len(data) // 2, len(data) - 64, len(data) - 1)]
    return [*flipped, *cut, data + b"\0", data + bytes(64), data + data, bytes(len(data))]


def test_damaged_files_are_not_read(folder: Path) -> None:
    opened()
    [path] = kept(folder)
    secret, key, whole = (folder / "secret").read_bytes(), bytes.fromhex(path.stem), path.read_bytes()
    assert table_cache._read(str(path), secret, key) is not None
    for data in damaged(whole):
        path.write_bytes(data)
        assert table_cache._read(str(path), secret, key) is None
    path.write_bytes(whole)
    other = bytes(64)
    assert table_cache._read(str(path), other, key) is None
    assert table_cache._read(str(path), secret, bytes(16)) is None


@pytest.mark.parametrize("content", [b"", b"x" * 5000, None], ids=["empty", "text", "flipped"])
def test_a_damaged_file_is_replaced(folder: Path, found: list[bool], content: bytes | None) -> None:
    opened()
    [path] = kept(folder)
    whole = path.read_bytes()
    path.write_bytes(whole[:-70] + b"?" + whole[-69:] if content is None else content)
    assert [opened().encode(TEXT) for _ in range(2)] == [EXPECTED, EXPECTED]
    assert found == [False, False, True]
    assert path.read_bytes()[:4096] == whole[:4096]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
@pytest.mark.parametrize("kind", ["pipe", "link", "sparse"])
@pytest.mark.parametrize("name", ["tables", "secret"])
def test_what_is_no_ordinary_file_is_not_read(folder: Path, kind: str, name: str) -> None:
    opened()
    path = kept(folder)[0] if name == "tables" else folder / "secret"
    whole = path.read_bytes()
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to(folder / "elsewhere")
        (folder / "elsewhere").write_bytes(whole)
    else:
        path.touch(0o600)
        os.truncate(path, 1 << 41)
    assert opened().encode(TEXT) == EXPECTED


def test_a_file_that_is_shortened_later_changes_nothing(folder: Path) -> None:
    opened()
    tok = opened()
    for path in kept(folder):
        os.truncate(path, 0)
    assert tok.encode(TEXT) == EXPECTED


def test_another_build_makes_its_own(
    folder: Path, found: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened()
    monkeypatch.setattr(native, "BUILD", "another build")
    assert opened().encode(TEXT) == EXPECTED
    assert found == [False, False]
    assert len(kept(folder)) == 2


def test_switched_off(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GGUFBPE_CACHE", "off")
    assert opened().encode(TEXT) == EXPECTED
    assert not folder.exists()


def test_small_vocabularies_are_not_kept(folder: Path) -> None:
    opened(RAW_UTF8)
    assert kept(folder) == []


@pytest.mark.parametrize("fails", ["folder", "disk", "no home"])
def test_where_nothing_can_be_written(folder: Path, monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if fails == "folder":
        folder.parent.write_bytes(b"a file")
    elif fails == "disk":
        monkeypatch.setattr(table_cache, "replacing", full)
    else:
        monkeypatch.setenv("GGUFBPE_CACHE_DIR", "~/nobody")
    assert opened().encode(TEXT) == EXPECTED
    assert kept(folder) == []


@pytest.mark.skipif(os.name == "nt", reason="no such permissions")
@pytest.mark.parametrize("mode", [0o620, 0o604])
def test_a_secret_that_others_know_is_not_used(folder: Path, mode: int) -> None:
    opened()
    for path in kept(folder):
        path.unlink()
    (folder / "secret").chmod(mode)
    assert opened().encode(TEXT) == EXPECTED
    assert kept(folder) == []


def test_half_a_secret_is_replaced(folder: Path, found: list[bool]) -> None:
    opened()
    (folder / "secret").write_bytes(b"half")
    for _ in range(3):
        assert opened().encode(TEXT) == EXPECTED
    assert found == [False, False, True]  # the opening that found it looked nothing up


@pytest.mark.skipif(os.name == "nt", reason="no such permissions")
def test_nobody_else_can_read_the_files(folder: Path) -> None:
    opened()
    assert {path.stat().st_mode & 0o077 for path in (folder, *folder.iterdir())} == {0}


def test_the_least_recently_used_goes_first(
    folder: Path, found: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    about = [b"0"]
    monkeypatch.setattr(table_cache, "_about", lambda options: about[0])
    opened()
    [oldest] = kept(folder)
    size = oldest.stat().st_size
    monkeypatch.setattr(table_cache, "MOST_BYTES", 2 * size)
    os.utime(oldest, (0, 0))
    about[0] = b"1"
    opened()
    [other] = {*kept(folder)} - {oldest}
    os.utime(other, (1, 1))
    about[0] = b"0"
    opened()  # is used again, and no longer the oldest
    about[0] = b"2"
    opened()
    assert found == [False, False, True, False]
    assert oldest.exists()
    assert not other.exists()
    assert len(kept(folder)) == 2


def test_a_bound_below_one_file_keeps_none(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GGUFBPE_CACHE_BYTES", "1000")
    assert opened().encode(TEXT) == EXPECTED
    assert kept(folder) == []


def test_threads_that_open_at_once(folder: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: opened().encode(TEXT), range(16))) == [EXPECTED] * 16
    assert len(kept(folder)) == 1


@pytest.mark.slow
def test_processes_that_open_at_once(folder: Path) -> None:
    program = f"import ggufbpe; print(ggufbpe.Tokenizer.from_gguf({str(GPT2)!r}).encode({TEXT!r}))"
    command = [sys.executable, "-c", program]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert [process.communicate()[0] for process in started] == [f"{EXPECTED}\n"] * 4
    assert len(kept(folder)) == 1
    assert sorted(path.suffix for path in folder.iterdir()) == ["", ".tables"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_child_uses_tables_of_its_parent() -> None:
    opened()
    tok = opened()
    child = os.fork()
    if not child:
        os._exit(tok.encode(TEXT) != EXPECTED)
    assert os.waitpid(child, 0)[1] == 0
