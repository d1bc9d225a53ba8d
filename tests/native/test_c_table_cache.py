"""The C library keeps the merge tables of large vocabularies in the folder that the Python package uses."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from c_library import LIBRARY, CTokenizer
from conftest import GPT2, ROOT

from ggufbpe import Tokenizer

pytestmark = [
    pytest.mark.skipif(not LIBRARY, reason="GGUFBPE_C_LIBRARY names no library"),
    pytest.mark.skipif(sys.platform == "win32", reason="nothing is kept on Windows"),
]

TEXT = "Hello world, 1234 and\n\n  for i in range(10): électricité 🦙"
SMALL = ROOT / "fixtures" / "vocabs" / "gpt-oss.gguf"
LONG_AGO = 1_000_000_000


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache folder of its own, which is not there yet."""
    monkeypatch.setenv("GGUFBPE_CACHE_DIR", str(tmp_path / "home" / "cache"))
    monkeypatch.delenv("GGUFBPE_CACHE", raising=False)
    monkeypatch.delenv("GGUFBPE_CACHE_BYTES", raising=False)
    return tmp_path / "home" / "cache" / "tables"


def ids(path: Path = GPT2) -> list[int]:
    with CTokenizer.open_file(path) as tok:
        return tok.encode(TEXT.encode())


def tables(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.tables"))


@pytest.fixture
def path(folder: Path) -> Path:
    """The file of GPT-2's tables, as if it was last used long ago."""
    ids()
    [path] = tables(folder)
    os.utime(path, (LONG_AGO, LONG_AGO))
    return path


def is_used(path: Path) -> bool:
    """Whether the next opening reads a file as it is, which marks it as used."""
    before = path.read_bytes()
    assert ids() == Tokenizer.from_gguf(GPT2, engine="reference").encode(TEXT)
    return path.read_bytes() == before and path.stat().st_mtime > LONG_AGO


def test_tables_are_used_again(path: Path) -> None:
    assert is_used(path)
    assert [each.stat().st_mode & 0o777 for each in path.parent.iterdir()] == [0o600] * 2
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_secret_is_that_of_python(folder: Path) -> None:
    Tokenizer.from_gguf(GPT2).encode("a")
    secret = (folder / "secret").read_bytes()
    before = tables(folder)
    ids()
    assert (folder / "secret").read_bytes() == secret
    assert len(tables(folder)) == len(before) + 1  # the tables are laid out by another build


@pytest.mark.parametrize("place", [0, 20, 40, 500, -1])
def test_damaged_tables_are_replaced(path: Path, place: int) -> None:
    sound = path.read_bytes()
    damaged = bytearray(sound)
    damaged[place] ^= 1
    path.write_bytes(damaged)
    ids()
    assert path.read_bytes() == sound


def test_link_is_not_followed(path: Path, tmp_path: Path) -> None:
    moved = path.rename(tmp_path / "moved")
    path.symlink_to(moved)
    ids()
    assert not path.is_symlink()
    assert path.read_bytes() == moved.read_bytes()


def test_pipe_is_not_waited_for(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)
    ids()
    assert path.is_file()


def test_switched_off(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GGUFBPE_CACHE", "off")
    ids()
    assert not folder.exists()


def test_small_vocabularies_are_not_kept(folder: Path) -> None:
    ids(SMALL)
    assert not folder.exists()


@pytest.mark.parametrize("bound", ["0", "1000"])
def test_a_bound_below_one_file_keeps_none(folder: Path, monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    monkeypatch.setenv("GGUFBPE_CACHE_BYTES", bound)
    ids()
    assert not tables(folder)


def test_the_least_recently_used_goes_first(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = path.stat().st_size
    older, newer = path.with_name("older.strings"), path.with_name("newer.tables")
    for number, each in enumerate((older, newer)):
        each.write_bytes(bytes(size))
        os.utime(each, (LONG_AGO + number, LONG_AGO + number))
    abandoned = path.with_name(".x.partial")
    abandoned.write_bytes(b"")
    os.utime(abandoned, (LONG_AGO, LONG_AGO))
    path.unlink()
    monkeypatch.setenv("GGUFBPE_CACHE_BYTES", str(2 * size))
    ids()
    assert sorted(path.parent.iterdir()) == sorted([newer, path, path.with_name("secret")])


@pytest.mark.parametrize("mode", [0o644, 0o666])
def test_a_secret_that_others_know_is_not_used(path: Path, mode: int) -> None:
    path.with_name("secret").chmod(mode)
    path.unlink()
    ids()
    assert not tables(path.parent)


def test_half_a_secret_is_replaced(path: Path) -> None:
    secret = path.with_name("secret")
    secret.write_bytes(secret.read_bytes()[:32])
    ids()
    assert len(secret.read_bytes()) == 64
    assert len(tables(path.parent)) == 2


@pytest.mark.parametrize("place", ["/dev/null/x", "~nobody/x"])
def test_where_nothing_can_be_written(monkeypatch: pytest.MonkeyPatch, folder: Path, place: str) -> None:
    expected = ids()
    monkeypatch.setenv("GGUFBPE_CACHE_DIR", place)
    assert ids() == expected


def test_cache_of_a_home(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GGUFBPE_CACHE_DIR", "~/c/d")
    ids()
    assert len(tables(tmp_path / "c" / "d" / "tables")) == 1
    if sys.platform != "darwin":
        monkeypatch.delenv("GGUFBPE_CACHE_DIR")
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # invalid, and ignored
        ids()
        assert len(tables(tmp_path / ".cache" / "ggufbpe" / "tables")) == 1


IN_A_PROCESS = """
import resource, signal, sys
from c_library import CTokenizer, library
library()
LIMIT
with CTokenizer.open_file(sys.argv[1]) as tok:
    print(tok.encode(b"Hello world"))
"""


def ids_in_a_process(limit: str) -> str:
    """What a process prints that opens GPT-2 after running `limit`."""
    helpers = os.pathsep.join([str(ROOT / "tests" / "helpers"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", IN_A_PROCESS.replace("LIMIT", limit), str(GPT2)],
        env={**os.environ, "PYTHONPATH": helpers},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, (done.returncode, done.stderr)
    return done.stdout.strip()


@pytest.mark.parametrize("limit", [10, 1000])  # less than the secret, less than the tables
def test_a_limit_on_the_size_of_files(folder: Path, limit: int) -> None:
    """Its signal would end the process; Python alone ignores the signal."""
    code = f"""if True:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
    """
    assert ids_in_a_process(code) == "[15496, 995]"
    assert sorted(each.name for each in folder.iterdir()) == (["secret"] if limit > 64 else [])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks /proc for the memory in use")
@pytest.mark.skipif(
    "asan" in os.environ.get("LD_PRELOAD", ""), reason="AddressSanitizer ends what lacks memory"
)
def test_a_file_that_memory_does_not_suffice_for(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(256 << 20)
    code = """if True:
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (200 << 20),) * 2)
    """
    assert ids_in_a_process(code) == "[15496, 995]"
    assert path.stat().st_size < 256 << 20


def test_threads_that_open_at_once(folder: Path) -> None:
    found: list[list[int]] = []
    threads = [threading.Thread(target=lambda: found.append(ids())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [ids()] * 8
    assert sorted(each.suffix for each in folder.iterdir()) == ["", ".tables"]
