"""Merge tables and strings from files give the ids of new ones; a file that is not right is ignored and replaced."""

from __future__ import annotations

import copy
import errno
import os
import pickle
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from conftest import GPT2, RAW_UTF8, UNSPLIT, missing
from record_fixtures import as_bytes, read_recorded

from ggufbpe import GGUFWarning, Tokenizer, TruncatedFileError
from ggufbpe.gguf import metadata
from ggufbpe.native import native, table_cache
from ggufbpe.native.lazy_strings import LazyStrings

if os.environ.get("GGUFBPE_ENGINE") == "reference":
    pytest.skip("the reference engine has no tables", allow_module_level=True)
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
    """Whether each look-up of tables found them in a file."""
    answers: list[bool] = []
    read = table_cache._read

    def noting(path: str, *arguments: Any) -> Any:
        made = read(path, *arguments)
        if path.endswith(".tables"):
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


def kept_strings(folder: Path) -> list[Path]:
    """The files of the merges and of the tokens."""
    return sorted(folder.glob("*.strings"), key=lambda path: path.stat().st_size)


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
    assert found == [False, False, True, True]


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
    oldest = {*kept(folder), *kept_strings(folder)}
    monkeypatch.setattr(table_cache, "MOST_BYTES", 2 * sum(path.stat().st_size for path in oldest))
    for path in oldest:
        os.utime(path, (0, 0))
    about[0] = b"1"
    opened()
    other = {*kept(folder), *kept_strings(folder)} - oldest
    for path in other:
        os.utime(path, (1, 1))
    about[0] = b"0"
    opened()  # is used again, and no longer the oldest
    about[0] = b"2"
    opened()
    assert found == [False, False, True, False]
    assert all(path.exists() for path in oldest)
    assert not any(path.exists() for path in other)
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
    assert sorted(path.suffix for path in folder.iterdir()) == ["", ".strings", ".strings", ".tables"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_child_uses_tables_of_its_parent() -> None:
    opened()
    tok = opened()
    child = os.fork()
    if not child:
        os._exit(tok.encode(TEXT) != EXPECTED)
    assert os.waitpid(child, 0)[1] == 0


# ---- strings --------------------------------------------------------------------------------------------


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each look-up of an array of strings found it in a file; `shared_strings` shares nothing."""
    answers: list[bool] = []
    read = table_cache.KnownArray.read

    def noting(*arguments: Any) -> Any:
        found = read(*arguments)
        answers.append(found[1] is not None)
        return found

    monkeypatch.setattr(table_cache.KnownArray, "read", noting)
    monkeypatch.setattr(metadata, "shared_strings", lambda texts: texts)
    return answers


def values(tok: Tokenizer) -> object:
    tokens, ids, merges = tok.vocabulary.tokens, tok.vocabulary.token_to_id, tok.vocabulary.merges
    return [*tokens], {**ids}, [ids[token] for token in tokens], [*merges], tok.encode(TEXT)


def test_strings_and_ids(known: list[bool]) -> None:
    first, again = values(opened()), values(opened())
    assert known == [False, False, True, True]
    assert first == again
    assert again == values(Tokenizer.from_gguf(GPT2, "reference"))


def test_strings_are_found_by_another_process() -> None:
    """Its hashes have other seeds than those with which the index was made."""
    opened()
    program = (
        f"import ggufbpe; tok = ggufbpe.Tokenizer.from_gguf({str(GPT2)!r}, 'native'); print(tok.encode({TEXT!r}));"
        "print(all(tok.vocabulary.token_to_id[token] == id for id, token in enumerate(tok.vocabulary.tokens)))"
    )
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout == f"{EXPECTED}\nTrue\n"


def test_merges_are_read_when_somebody_asks(known: list[bool]) -> None:
    opened()
    tok = opened()
    assert tok.encode(TEXT) == EXPECTED
    merges = tok.vocabulary.merges
    assert isinstance(merges, LazyStrings)
    assert merges._strings is None
    with ThreadPoolExecutor(8) as pool:
        assert len({id(strings) for strings in pool.map(lambda _: merges.strings, range(64))}) == 1
    assert merges[-1] == merges.to_list()[-1] == Tokenizer.from_gguf(GPT2, "reference").vocabulary.merges[-1]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_copies_of_known_strings(known: list[bool], copied: Any) -> None:
    opened()
    merges = opened().vocabulary.merges
    assert copied(merges) == merges == [*merges]


@pytest.mark.parametrize("key", ["tokenizer.ggml.tokens", "tokenizer.ggml.merges"])
def test_strings_that_changed_are_read_anew(known: list[bool], tmp_path: Path, key: str) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(GPT2.read_bytes())
    opened(path)
    data = bytearray(path.read_bytes())
    merge, token = "Ġwor ld".encode(), "Ġworld".encode()
    old, new = (merge, "Ġwor lu".encode()) if key.endswith("merges") else (token, "Ġwurld".encode())
    place = data.index(old, data.index(key.encode()))
    data[place : place + len(old)] = new  # of the same length, so neither sizes nor counts differ
    path.write_bytes(data)
    for expected in ([False, True], [True, True]):
        known.clear()
        assert values(opened(path)) == values(Tokenizer.from_gguf(path, "reference"))
        assert sorted(known) == sorted([*expected, True, True])  # the reference engine's, too
        assert opened(path).encode(TEXT) != EXPECTED


def test_a_key_that_file_names_cannot_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where names of files are ASCII, keys of a GGUF are UTF-8 as everywhere."""
    monkeypatch.setattr(os, "fsencode", lambda path: path.encode("ascii", "surrogateescape"))
    assert table_cache.KnownArray("model.gguf", "schlüssel", 10_000).read(-1, 0, 0) == (0, None)


def test_a_model_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(GPT2.read_bytes())
    opened(path)
    with path.open("rb+") as file:
        file.truncate(path.read_bytes().index("Ġwor ld".encode()))
    with pytest.raises(TruncatedFileError):
        opened(path)


@pytest.mark.parametrize("place", [0, 1], ids=["merges", "tokens"])
def test_damaged_files_of_strings_are_replaced(folder: Path, known: list[bool], place: int) -> None:
    opened()
    path = kept_strings(folder)[place]
    whole = path.read_bytes()
    for content in (b"", whole[:64], whole[:-64], whole[:-70] + b"?" + whole[-69:], whole + bytes(64)):
        path.write_bytes(content)
        known.clear()
        assert [opened().encode(TEXT) for _ in range(2)] == [EXPECTED, EXPECTED]
        assert sorted(known) == [False, True, True, True]
    assert path.stat().st_size == len(whole)


def test_each_array_has_its_own_file(folder: Path, known: list[bool]) -> None:
    """The file of one in place of that of the other is none: its key is another."""
    opened()
    merges, tokens = kept_strings(folder)
    merges.write_bytes(tokens.read_bytes())
    known.clear()
    assert opened().encode(TEXT) == EXPECTED
    assert sorted(known) == [False, True]
