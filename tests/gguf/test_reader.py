"""The reader of the key/value section: what it says of sound files, and what it leaves alone.

Held to the `gguf` package's own reader on every file that one can read, and to known values
(fixtures/variants, made by tests/makers/make_gguf_variants.py) on the rest. Unsound files: test_malformed.py.
"""

from __future__ import annotations

import gc
import json
import math
import os
import re
import shutil
import struct
import subprocess
import sys
import textwrap
import threading
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import pytest

from ggufbpe import Tokenizer
from ggufbpe._util.errors import (
    CorruptMetadataError,
    GGUFError,
    NotGGUFError,
    ShardError,
    TruncatedFileError,
    UnsupportedVersionError,
)
from ggufbpe.gguf.constants import GGUFValueType
from ggufbpe.gguf.reader import GGUFFile
from ggufbpe.gguf.source import ByteRange as Span

pytestmark = pytest.mark.both_engines

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures"
VARIANTS = FIXTURES / "variants"
CACHE = Path(os.environ.get("GGUFBPE_REFERENCE") or ROOT / ".cache") / "vocabs"  # of scripts/reference.py
GPT2 = ROOT / "ggufbpe" / "models" / "gpt2.gguf"

EXPECTED = json.loads((VARIANTS / "expected.json").read_text(encoding="utf-8"))
VARIANT_NAMES = sorted(EXPECTED["files"])
VOCABULARY_NAMES = [name for name in VARIANT_NAMES if EXPECTED["files"][name]["content"] == "vocabulary"]
READABLE_BY_GGUF = [
    *(VARIANTS / name for name in VARIANT_NAMES if EXPECTED["files"][name]["version"] > 1),
    *sorted(FIXTURES.glob("*.gguf")),
    *sorted(FIXTURES.glob("vocabs/*.gguf")),
    GPT2,
    *(path for name in ("bert-bge", "falcon", "llama-spm") for path in CACHE.glob(f"ggml-vocab-{name}.gguf")),
]  # of real ones a small one with each form of tokens: the `gguf` package takes seconds for one


def same(left: Any, right: Any) -> bool:
    """Whether two values and all elements have the same type and value; NaN equals NaN, 0.0 is not -0.0.

    >>> same([1], [True]), same(math.nan, math.nan)
    (False, True)
    """
    if isinstance(left, list) and isinstance(right, list) and len(left) > 1000:
        return left == right and set(map(type, left)) == set(map(type, right))
    return repr(left) == repr(right)


def contents(path: Path) -> dict[str, list[Any]]:
    """What our reader says of each key: type, element type, value."""
    with GGUFFile(path) as file:
        found = {}
        for key in file.keys():  # noqa: SIM118
            element = file.element_type(key)
            found[key] = [file.value_type(key).name, None if element is None else element.name, file[key]]
        return found


# ---- what a file holds ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", VARIANT_NAMES)
def test_every_version_and_byte_order(name: str) -> None:
    about = EXPECTED["files"][name]
    with GGUFFile(VARIANTS / name) as file:
        header = {"version": file.version, "byteorder": file.byteorder, "tensor_count": file.tensor_count}
    assert {**header, "content": about["content"]} == about
    assert same(contents(VARIANTS / name), EXPECTED["contents"][about["content"]])


@pytest.mark.slow
@pytest.mark.parametrize("path", READABLE_BY_GGUF, ids=lambda path: path.name)
def test_same_as_the_gguf_package(path: Path) -> None:
    theirs = gguf.GGUFReader(path)
    fields = {key: field for key, field in theirs.fields.items() if not key.startswith("GGUF.")}
    with GGUFFile(path) as ours:
        assert ours.keys() == list(fields)
        assert ours.tensor_count == theirs.fields["GGUF.tensor_count"].contents()
        assert ours.byteorder == theirs.endianess.name.lower()
        for key, field in fields.items():
            assert int(ours.value_type(key)) == field.types[0], key
            if field.types[0] == gguf.GGUFValueType.ARRAY:
                assert ours.element_type(key) == GGUFValueType(int(field.parts[3][0])), key
                assert ours.array_length(key) == int(field.parts[4][0]), key
            else:
                assert ours.element_type(key) is None
                assert ours.array_length(key) == 0
            name_length, name, type_number = field.parts[:3]
            before_value = int(name_length.nbytes + name.nbytes + type_number.nbytes)
            assert ours.offset(key) == field.offset + before_value, key
            assert same(ours[key], field.contents()), key
        last = list(fields.values())[-1:]
        end = last[0].offset + sum(int(part.nbytes) for part in last[0].parts) if last else 24
        assert ours.metadata_end == end


def test_value_types_are_those_of_the_gguf_package() -> None:
    ours = {member.name: member.value for member in GGUFValueType}
    assert ours == {member.name: member.value for member in gguf.GGUFValueType}


def test_variants_are_what_the_script_writes(tmp_path: Path) -> None:
    script = ROOT / "tests" / "makers" / "make_gguf_variants.py"
    subprocess.run([sys.executable, script, "--out", tmp_path], check=True)
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert written == {path.name: path.read_bytes() for path in VARIANTS.iterdir()}


@pytest.mark.parametrize("name", VOCABULARY_NAMES)
def test_a_vocabulary_gives_the_same_ids_in_every_version_and_byte_order(name: str) -> None:
    tokenizer = Tokenizer.from_gguf(VARIANTS / name)
    found = {text: tokenizer.encode(text) for text in EXPECTED["tiny_ids"]}
    assert found == EXPECTED["tiny_ids"]


# ---- the mapping ------------------------------------------------------------------------------------


def test_is_a_mapping_of_keys_in_the_order_of_the_file() -> None:
    with GGUFFile(VARIANTS / "vocabulary-version-3-little.gguf") as file:
        keys = list(EXPECTED["contents"]["vocabulary"])
        assert file.keys() == keys
        assert list(file) == keys
        assert len(file) == len(keys)
        assert "tokenizer.ggml.model" in file
        assert "no.such.key" not in file


def test_a_key_that_is_not_there_is_a_key_error() -> None:
    with GGUFFile(VARIANTS / "vocabulary-version-3-little.gguf") as file:
        for ask in (
            file.__getitem__,
            file.value_type,
            file.element_type,
            file.array_length,
            file.offset,
        ):
            with pytest.raises(KeyError, match=re.escape("no.such.key")):
                ask("no.such.key")


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("byteorder", ["little", "big"])
def test_element_offset_is_where_the_bytes_of_an_element_lie(version: int, byteorder: Any) -> None:
    path = VARIANTS / f"vocabulary-version-{version}-{byteorder}.gguf"
    data = path.read_bytes()
    width = 4 if version == 1 else 8
    with GGUFFile(path) as file:
        tokens, types = file["tokenizer.ggml.tokens"], file["tokenizer.ggml.token_type"]
        assert isinstance(tokens, list)
        assert isinstance(types, list)
        for index, token in enumerate(tokens):
            start = file.element_offset("tokenizer.ggml.tokens", index)
            length = int.from_bytes(data[start : start + width], byteorder)
            assert data[start + width : start + width + length].decode() == token
        for index, number in enumerate(types):
            start = file.element_offset("tokenizer.ggml.token_type", index)
            assert int.from_bytes(data[start : start + 4], byteorder, signed=True) == number


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("byteorder", ["little", "big"])
def test_spans_are_the_whole_section(version: int, byteorder: Any) -> None:
    path = VARIANTS / f"vocabulary-version-{version}-{byteorder}.gguf"
    data = path.read_bytes()
    with GGUFFile(path) as file:
        spans = file.spans()
        assert list(spans) == file.keys()
        borders = [24, *(span.end for span in spans.values())]
        assert [span.start for span in spans.values()] == borders[:-1]
        assert borders[-1] == file.metadata_end
    for key, (start, _) in spans.items():
        assert int.from_bytes(data[start : start + 8], byteorder) == len(key)
        assert data[start + 8 : start + 8 + len(key)] == key.encode()


def test_version_1_has_no_spans_to_copy() -> None:
    with (
        GGUFFile(VARIANTS / "vocabulary-version-1-little.gguf") as file,
        pytest.raises(UnsupportedVersionError, match="version 1, which"),
    ):
        file.spans()


@pytest.mark.parametrize("kind", [str, Path, os.fsencode])
def test_path_may_be_text_bytes_or_path_like(kind: Any) -> None:
    path = VARIANTS / "odd-bools.gguf"
    with GGUFFile(kind(str(path))) as file:
        assert file.path == str(path)


def test_values_after_close_are_a_clear_error() -> None:
    with GGUFFile(VARIANTS / "types-version-3-little.gguf") as file:
        pass
    file.close()  # a second time does no harm
    for key in ("uint8.1", "string.2", "string.array", "uint16.array", "string.array.empty"):
        with pytest.raises(ValueError, match="closed"):
            file[key]


def test_values_from_several_threads() -> None:
    path = VARIANTS / "types-version-3-big.gguf"
    expected = contents(path)
    wrong: list[str] = []
    with GGUFFile(path) as file:

        def read() -> None:
            for _ in range(20):
                wrong.extend(key for key in expected if not same(file[key], expected[key][2]))

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


# ---- the file underneath ----------------------------------------------------------------------------


def test_the_section_alone_is_enough(tmp_path: Path) -> None:
    """The tensors may be missing: a download can be asked for its tokenizer as soon as that is there."""
    path = tmp_path / "model.gguf"
    whole = VARIANTS / "model-with-tensor.gguf"
    with GGUFFile(whole) as file:
        path.write_bytes(whole.read_bytes()[: file.metadata_end])
        assert file.metadata_end < whole.stat().st_size
    assert same(contents(path), contents(whole))


def test_what_follows_the_section_does_not_matter(tmp_path: Path) -> None:
    whole = VARIANTS / "types-version-3-little.gguf"
    path = tmp_path / "model.gguf"
    path.write_bytes(whole.read_bytes() + b"\xff" * 10_000)
    assert same(contents(path), contents(whole))


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be removed there")
def test_the_file_may_go_away_after_opening(tmp_path: Path) -> None:
    whole = VARIANTS / "types-version-3-little.gguf"
    expected = contents(whole)
    path = tmp_path / "model.gguf"
    shutil.copy(whole, path)
    with GGUFFile(path) as removed:
        path.unlink()
        assert all(same(removed[key], value) for key, (_, _, value) in expected.items())
    shutil.copy(whole, path)
    with GGUFFile(path) as replaced:
        other = tmp_path / "other.gguf"
        shutil.copy(VARIANTS / "odd-bools.gguf", other)
        other.replace(path)
        assert all(same(replaced[key], value) for key, (_, _, value) in expected.items())
    tokenizer_path = tmp_path / "vocabulary.gguf"
    shutil.copy(VARIANTS / "vocabulary-version-3-little.gguf", tokenizer_path)
    tokenizer = Tokenizer.from_gguf(tokenizer_path)
    tokenizer_path.unlink()
    assert tokenizer.encode("hello world!\nhello") == EXPECTED["tiny_ids"]["hello world!\nhello"]


@pytest.mark.skipif(sys.platform == "win32", reason="counts what /proc or /dev/fd list")
def test_no_file_stays_open() -> None:
    folder = "/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"
    malformed = sorted((FIXTURES / "malformed").glob("*.gguf"))[::10]
    gc.collect()
    before = len(os.listdir(folder))
    for path in [*malformed, VARIANTS / "vocabulary-version-3-little.gguf", GPT2]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                Tokenizer.from_gguf(path)
            except GGUFError:
                continue
    assert len(os.listdir(folder)) == before


# ---- only the section is read -----------------------------------------------------------------------

OPEN_AND_MEASURE = textwrap.dedent(
    """
    import json, resource, sys, tracemalloc
    from ggufbpe import Tokenizer
    from ggufbpe.gguf.reader import GGUFFile

    def peak():  # in bytes
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

    path = sys.argv[1]
    Tokenizer.from_gguf(sys.argv[2])  # imports what it needs
    before = peak()
    bytes_read = None
    if sys.platform == "linux":
        def read_so_far():
            with open("/proc/self/io") as counts:
                return int(counts.readline().split()[1])
        bytes_read = -read_so_far()
    with GGUFFile(path) as file:
        values = [file[key] for key in file]
    if bytes_read is not None:
        bytes_read += read_so_far()
    ids = Tokenizer.from_gguf(path).encode("Hello world")
    growth = peak() - before
    del values
    tracemalloc.start()
    Tokenizer.from_gguf(path)
    answer = {"ids": ids, "growth": growth, "read": bytes_read, "python": tracemalloc.get_traced_memory()[1]}
    print(json.dumps(answer))
    """
)


def open_and_measure(path: Path) -> dict[str, Any]:
    """Ids of a text and bytes of memory that opening `path` takes, measured in a process of its own."""
    small = VARIANTS / "vocabulary-version-3-little.gguf"
    command = [sys.executable, "-c", OPEN_AND_MEASURE, str(path), str(small)]
    run = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    found: dict[str, Any] = json.loads(run.stdout)
    return found


@pytest.mark.skipif(sys.platform == "win32", reason="no sparse files and no `resource` there")
def test_40_gigabytes_take_no_more_memory_than_the_vocabulary_alone(tmp_path: Path) -> None:
    """The tail is a hole of the file: were it read, memory would grow by what is read of it."""
    model = tmp_path / "model-of-40-gb.gguf"
    shutil.copy(GPT2, model)
    try:
        os.truncate(model, 40 * 2**30)
    except OSError as error:
        pytest.skip(f"this file system takes no file of 40 GB: {error}")
    with GGUFFile(GPT2) as file:
        section = file.metadata_end
    alone, large = open_and_measure(GPT2), open_and_measure(model)
    assert large["ids"] == alone["ids"] == [15496, 995]
    assert large["growth"] < alone["growth"] + 4 * 2**20
    assert abs(large["python"] - alone["python"]) < 2**16
    if large["read"] is not None:
        assert section <= large["read"] < 2 * section + 2**17  # twice: to walk and to decode


def test_opening_keeps_no_object_for_each_string() -> None:
    """Opening notes 8 bytes for each string of an array, however large the vocabulary."""
    with GGUFFile(GPT2) as file:
        strings = sum(file.array_length(k) for k in file if file.element_type(k) is GGUFValueType.STRING)
    tracemalloc.start()
    file = GGUFFile(GPT2)
    size, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    file.close()
    assert strings > 100_000
    assert size < 9.5 * strings + GGUFFile.BLOCK
    assert peak < 20 * strings


# ---- files that somebody writes while they are open -------------------------------------------------

SMALL = VARIANTS / "vocabulary-version-3-little.gguf"


@pytest.fixture
def changing(tmp_path: Path) -> Path:
    """A copy of a small vocabulary, with some bytes in the place of tensors."""
    path = tmp_path / "changing.gguf"
    path.write_bytes(SMALL.read_bytes() + b"tensors!" * 1000)
    return path


@pytest.mark.parametrize("block", [1, 3, 64, 1000])
@pytest.mark.parametrize("name", VARIANT_NAMES)
def test_values_are_the_same_in_blocks_of_any_size(
    monkeypatch: pytest.MonkeyPatch, name: str, block: int
) -> None:
    def found() -> tuple[object, ...]:
        with GGUFFile(VARIANTS / name) as file:
            offsets = [
                file.element_offset(key, file.array_length(key)) for key in file if file.element_type(key)
            ]
            return repr([file[key] for key in file]), offsets, file.metadata_end

    expected = found()
    monkeypatch.setattr(GGUFFile, "BLOCK", block)
    assert found() == expected


def test_a_truncated_file_is_an_error_and_no_signal(changing: Path) -> None:
    """In a process of its own, which SIGBUS would end."""
    program = textwrap.dedent(
        """
        import os, sys
        from ggufbpe._util.errors import TruncatedFileError
        from ggufbpe.gguf.reader import GGUFFile
        with GGUFFile(sys.argv[1]) as file:
            os.truncate(sys.argv[1], 0)
            for key in file:
                try:
                    file[key]
                except TruncatedFileError as error:
                    print(error.path == sys.argv[1], error.offset, bool(error.remedy))
        """
    )
    run = subprocess.run(
        [sys.executable, "-c", program, changing], capture_output=True, text=True, timeout=60
    )
    with GGUFFile(SMALL) as file:
        assert (run.returncode, run.stdout) == (0, "True 0 True\n" * len(file)), run.stderr


def truncated(path: Path, size: int) -> None:
    os.truncate(path, size)


def replaced(path: Path, size: int) -> None:
    """In place, by a file of the same size that differs from byte `size` on."""
    data = path.read_bytes()
    path.write_bytes(data[:size] + bytes(255 - byte for byte in data[size:]))


def later(path: Path) -> None:
    """The clock of a file system is not fine: somebody wrote the file a second ago."""
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns - 10**9))


@pytest.mark.parametrize("change", [truncated, replaced])
@pytest.mark.parametrize("part", [0.0, 0.01, 0.2, 0.5, 0.9, 0.999])
def test_a_file_that_changes_while_it_is_opened(
    changing: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path, int], None], part: float
) -> None:
    """Behind or before what was read so far, in the middle of a value or between two."""
    with GGUFFile(changing) as file:
        at = int(part * file.metadata_end)
    later(changing)
    read, changed = GGUFFile._read, []

    def and_change(self: GGUFFile, position: int, size: int) -> bytes:
        if position + size > at and not changed:
            changed.append(position)
            change(changing, at // 2 if part < 0.9 else at)
        return read(self, position, size)

    monkeypatch.setattr(GGUFFile, "BLOCK", 16)
    monkeypatch.setattr(GGUFFile, "_read", and_change)
    with pytest.raises(TruncatedFileError, match="while it was open") as caught:
        Tokenizer.from_gguf(changing)
    assert changed
    assert caught.value.path == str(changing)


def refused(path: Path, is_changed: bool) -> None:
    """Find fault with the values of a file, which may have changed since it was opened."""
    with GGUFFile(path):
        if is_changed:
            replaced(path, 100)
        raise CorruptMetadataError("the values are odd", path=path)


@pytest.mark.parametrize("is_changed", [True, False])
def test_what_is_wrong_with_values_is_not_said_of_a_file_that_changes(
    changing: Path, is_changed: bool
) -> None:
    """What was read may be of two files."""
    later(changing)
    with pytest.raises(GGUFError, match="while it was open" if is_changed else "odd"):
        refused(changing, is_changed)


READS: dict[str, Callable[[GGUFFile, str], object]] = {
    "value": GGUFFile.__getitem__,
    "strings": GGUFFile.strings,
    "numbers": lambda file, key: file.numbers("tokenizer.ggml.token_type"),
    "bytes of metadata": lambda file, key: list(file.blocks(file.spans()[key])),
    "bytes of tensors": lambda file, key: list(file.blocks(Span(file.metadata_end, file.size))),
}


@pytest.mark.parametrize("change", [truncated, replaced])
@pytest.mark.parametrize("part", [0.0, 0.5, 0.999])
@pytest.mark.parametrize("read", READS)
def test_a_file_that_changes_while_it_is_open(
    changing: Path, change: Callable[[Path, int], None], part: float, read: str
) -> None:
    later(changing)
    with GGUFFile(changing) as file:
        change(changing, int(part * file.metadata_end))
        with pytest.raises(TruncatedFileError, match="while it was open") as caught:
            READS[read](file, "tokenizer.ggml.tokens")
    assert caught.value.path == str(changing)
    assert caught.value.offset is not None
    assert caught.value.remedy


def test_a_download_may_go_on_and_a_file_be_renamed_while_it_is_open(changing: Path) -> None:
    """What was opened is what is read: a file of the same name is another one."""
    later(changing)
    with GGUFFile(SMALL) as file:
        expected = [file[key] for key in file]
    with GGUFFile(changing) as file:
        with changing.open("ab") as more:
            more.write(b"more tensors")
        assert [file[key] for key in file] == expected
        os.replace(shutil.copy(GPT2, changing.with_name("other.gguf")), changing)
        assert [file[key] for key in file] == expected


def test_lengths_that_lie_do_not_make_us_read_gigabytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of 40 GB can hold what they say. The limit itself would take a second to reach."""
    assert GGUFFile.LONGEST < 2**30
    monkeypatch.setattr(GGUFFile, "LONGEST", 2**22)
    key = struct.pack("<Q", 3) + b"key"
    lies = {
        "key": struct.pack("<Q", 2**34),
        "string": key + struct.pack("<IQ", GGUFValueType.STRING, 2**34),
        "numbers": key + struct.pack("<IIQ", GGUFValueType.ARRAY, GGUFValueType.UINT64, 2**31),
        "strings": key + struct.pack("<IIQ", GGUFValueType.ARRAY, GGUFValueType.STRING, 2**31),
    }
    path = tmp_path / "lies.gguf"
    for lie in lies.values():
        path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + lie)
        try:
            os.truncate(path, 40 * 2**30)
        except OSError as error:
            pytest.skip(f"this file system takes no file of 40 GB: {error}")
        tracemalloc.start()
        with pytest.raises(CorruptMetadataError, match="longer than"):
            GGUFFile(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2**23


# ---- split models -----------------------------------------------------------------------------------


def test_first_shard_of_a_split_model_opens_without_the_others() -> None:
    tokenizer = Tokenizer.from_gguf(VARIANTS / "model-00001-of-00003.gguf")
    assert tokenizer.encode("hello world!\nhello") == EXPECTED["tiny_ids"]["hello world!\nhello"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("model-00002-of-00003.gguf", "model-00001-of-00003.gguf"),
        ("a-00001-of-00003.gguf-00002-of-00003.gguf", "a-00001-of-00003.gguf-00001-of-00003.gguf"),
        ("model-00003-of-00003.gguf", "model-00001-of-00003.gguf"),
        ("renamed.gguf", "-00001-of-"),
        (
            "model-00001-of-00003.gguf",
            "its name says that it is the first: give all parts the names that they had",
        ),
    ],
)
def test_later_shard_names_the_one_to_open(tmp_path: Path, name: str, hint: str) -> None:
    path = tmp_path / name
    shutil.copy(FIXTURES / "malformed" / "shard-00002-of-00003.gguf", path)
    with pytest.raises(ShardError, match=re.escape(hint)) as caught:
        Tokenizer.from_gguf(path)
    assert str(path) in str(caught.value)
    with GGUFFile(path) as file:  # its own metadata can be read
        assert file["split.no"] == 1


# ---- paths that are no file -------------------------------------------------------------------------


def test_a_missing_file_is_pythons_own_error(tmp_path: Path) -> None:
    for function in (GGUFFile, Tokenizer.from_gguf):
        with pytest.raises(FileNotFoundError, match=r"no-such\.gguf"):
            function(tmp_path / "no-such.gguf")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_pythons_own_error(tmp_path: Path) -> None:
    path = tmp_path / "secret.gguf"
    path.write_bytes(b"GGUF")
    path.chmod(0)
    with pytest.raises(PermissionError, match=r"secret\.gguf"):
        GGUFFile(path)


OTHER_PROGRAMS: dict[str, tuple[dict[str, bytes], str, str]] = {  # files, what is opened, what is said
    "tokenizer.json": ({"tokenizer.json": b"{}"}, "tokenizer.json", "ggufbpe import PATH -o vocab.gguf"),
    "one of another name": (
        {"qwen.json": b'{"version": "1.0", "truncation": null}'},
        "qwen.json",
        "ggufbpe import PATH -o vocab.gguf",
    ),
    "any JSON": ({"a.json": b'{"a": 1}'}, "a.json", "give the .gguf file of the model"),
    "sentencepiece": ({"spiece.model": b"\n\x0e\n\x05<unk>"}, "spiece.model", "ggufbpe import PATH"),
    "vocab.txt": ({"vocab.txt": b"[PAD]\n[UNK]\n"}, "vocab.txt", "ggufbpe import PATH"),
    "merges.txt": ({"merges.txt": b"#version: 0.2\n"}, "merges.txt", "ggufbpe import PATH"),
    "a folder": ({"tokenizer.json": b"{}", "config.json": b"{}"}, "", "ggufbpe import PATH -o vocab.gguf"),
    "a folder with a model": (
        {"tokenizer.json": b"{}", "m.gguf": b""},
        "",
        "give the .gguf file in it: m.gguf",
    ),
    "another folder": ({"a.txt": b""}, "", "give a .gguf file"),
}


@pytest.mark.parametrize("name", OTHER_PROGRAMS)
def test_tokenizers_of_other_programs_are_to_be_imported(name: str, tmp_path: Path) -> None:
    files, opened, said = OTHER_PROGRAMS[name]
    folder = tmp_path / "with spaces"
    folder.mkdir()
    for each, data in files.items():
        (folder / each).write_bytes(data)
    path = str(folder / opened).rstrip("/")
    with pytest.raises(NotGGUFError) as caught:
        GGUFFile(path)
    assert caught.value.remedy is not None
    assert said.replace("PATH", f"'{path}'") in caught.value.remedy


def test_a_directory_is_told_to_be_one(tmp_path: Path) -> None:
    for function in (GGUFFile, Tokenizer.from_gguf):
        with pytest.raises(NotGGUFError, match="directory") as caught:
            function(tmp_path)
        assert str(tmp_path) in str(caught.value)


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no device files here")
@pytest.mark.parametrize("path", ["/dev/null", "/dev/zero"])
def test_a_device_is_told_not_to_be_a_file(path: str) -> None:
    with pytest.raises(NotGGUFError, match="not a regular file"):
        GGUFFile(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_without_a_writer_does_not_hang(tmp_path: Path) -> None:
    path = tmp_path / "pipe.gguf"
    os.mkfifo(path)
    program = "import sys; from ggufbpe.gguf.reader import GGUFFile; GGUFFile(sys.argv[1])"
    command = [sys.executable, "-c", program, str(path)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert "NotGGUFError" in run.stderr


def test_same_tells_apart_what_equality_does_not() -> None:
    assert same([math.nan, 1, "a"], [math.nan, 1, "a"])
    assert not same([1], [True])
    assert not same(0.0, -0.0)
    assert not same([1.0] * 2000, [1] * 2000)
