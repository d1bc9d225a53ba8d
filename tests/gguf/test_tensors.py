"""Tensor infos are metadata: what llama.cpp refuses about them is an error here, and nothing else is.

Every file of the table is also given to llama.cpp, whose verdict must be the same.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gguf
import pytest
from conftest import GPT2, missing
from gguf_by_hand import T
from reference import LoadError, NotPreparedError, Oracle
from remote_server import RemoteServer, remote_server
from tensors_by_hand import ALIGNMENT, Tensor, model_with

import ggufbpe
from ggufbpe import GGUFError, ShardError, TensorError, Tokenizer, TruncatedFileError, WrongTypeError
from ggufbpe.cli import main
from ggufbpe.gguf.constants import KEY_FILE_TYPE, TENSOR_TYPES
from ggufbpe.gguf.reader import GGUFFile
from ggufbpe.gguf.tensors import check_file_type, check_parts, check_tensors, tensor_infos
from ggufbpe.gguf.value_types import Field
from ggufbpe.hub.remote import forecast, metadata_cache, range_stream

Q4_K, Q8_1 = gguf.GGMLQuantizationType.Q4_K, gguf.GGMLQuantizationType.Q8_1
A, B = Tensor("a"), Tensor("b")
HUGE = 1 << 62
LONG = "x" * 64

SOUND: dict[str, bytes] = {  # files that llama.cpp opens
    "four tensors": model_with(),
    "no tensors": model_with([]),
    "no tensors, and bytes after the metadata": model_with([], tail=b"x" * 7),
    "no tensors, and a silly alignment": model_with([], alignment=1 << 31),
    "no tensors, a silly alignment, and bytes after the metadata": model_with(
        [], alignment=1 << 31, tail=b"x"
    ),
    "another alignment": model_with(alignment=4096),
    "an alignment of one byte": model_with(alignment=1),
    "bytes after the last tensor": model_with(tail=b"x" * 1000),
    "without padding after the last tensor": model_with([A, Tensor("b", (1,))]),
    "the longest name": model_with([A, Tensor("x" * 63)]),
    "an empty name": model_with([A, Tensor("")]),
    "a name that is not UTF-8": model_with([A, Tensor(b"\xff\xfe")]),
    "no dimensions": model_with([Tensor("a", ()), B]),
    "no elements": model_with([Tensor("a", (0,)), B]),
    "no elements in the last dimension": model_with([Tensor("a", (4, 0)), B]),
    "rows of whole blocks": model_with([Tensor("a", (256, 2), Q4_K), B]),
    "a type with an odd size": model_with([Tensor("a", (32,), Q8_1, size=36), B]),
    "the newest type": model_with([Tensor("a", (64,), 42, size=18), B]),
}
REFUSED: dict[str, tuple[bytes, str]] = {  # files that it does not open, and the words for it
    "one byte missing": (
        model_with(cut=1),
        "the file ends 1 byte too early: tensor 'output_norm.weight' has 27 of its 28 bytes",
    ),
    "a whole tensor missing": (
        model_with(cut=28),
        "the file ends 28 bytes too early: tensor 'output_norm.weight' has 0 of its 28 bytes",
    ),
    "several missing": (
        model_with(cut=28 + 32 + 20 + 96),
        "the file ends 176 bytes too early: tensor 'blk.0.attn_q.weight' has 12 of its 108 bytes, and 2 tensors after "
        "it have none",
    ),
    "all missing": (
        model_with(cut=64 + 128 + 32 + 28),
        "tensor 'token_embd.weight' has 0 of its 60 bytes, and 3 tensors after it have none",
    ),
    "no data section": (model_with([Tensor("a", (0,))], alignment=4096)[:-1], "ends 1 byte too early"),
    "the list cut": (model_with()[:-300], "the file ends inside the tensor infos: 3 of 4 are there"),
    "more tensors than there are": (model_with(tensor_count=5), "tensor '' overlaps"),
    "a count that lies": (model_with([], tensor_count=1 << 40), "inside the tensor infos: 0 of"),
    "overlapping": (model_with([A, B._replace(offset=64)]), "tensor 'b' overlaps the tensors before it"),
    "a gap": (model_with([A, B._replace(offset=256)], tail=bytes(400)), "tensor 'b' leaves a gap"),
    "in another order": (
        model_with([A._replace(offset=128), B._replace(offset=0)]),
        "tensor 'a' leaves a gap: its data begins at byte 128 of the tensor data, not at 0",
    ),
    "misaligned": (
        model_with([A, B._replace(offset=132)], tail=bytes(99)),
        "tensor 'b' is not aligned: its data begins at byte 132, not at a multiple of 32",
    ),
    "a negative dimension": (
        model_with([Tensor("a", (4, -1)), B]),
        "tensor 'a' has a negative dimension: 4 x -1",
    ),
    "a dimension of 2^62": (model_with([Tensor("a", (HUGE,)), B._replace(offset=0)]), "2^64 bytes"),
    "two large dimensions": (model_with([Tensor("a", (HUGE, 4)), B]), "more than 2^63 elements"),
    "large dimensions of nothing": (model_with([Tensor("a", (HUGE, 4, 0)), B]), "more than 2^63 elements"),
    "an offset at the end of all numbers": (
        model_with([A, B._replace(offset=2**64 - 32)]),
        "tensor 'b' leaves a gap",
    ),
    "five dimensions": (model_with([Tensor("a", (1,) * 5)]), "tensor 'a' has 5 dimensions; the most are 4"),
    "dimensions that lie": (model_with([Tensor("a", (), rank=2**32 - 1)]), "has 4294967295 dimensions"),
    "a type that was removed": (model_with([Tensor("a", (32,), 4)]), "type 4, which llama.cpp does not read"),
    "another type that was removed": (model_with([Tensor("a", (32,), 36)]), "type 36"),
    "an unknown type": (model_with([Tensor("a", (32,), 43)]), "tensor 'a' has type 43"),
    "a negative type": (model_with([Tensor("a", (32,), -1)]), "tensor 'a' has type -1"),
    "half a block": (
        model_with([Tensor("a", (128, 2), Q4_K)]),
        "has rows of 128 elements, which is not a multiple of 256, the block size of Q4_K",
    ),
    "two of a name": (model_with([A, A]), "two tensors are called 'a'"),
    "two of a name up to a NUL": (model_with([A, Tensor(b"a\0b")]), "two tensors are called"),
    "a long name": (model_with([A, Tensor(LONG)]), "the name of tensor 1, 'xxxxxxxxxxxx"),
    "a very long name": (model_with([A, Tensor("x" * 100_000)]), "the name of tensor 1 has 100000 bytes"),
    "no alignment": (model_with(changes={ALIGNMENT: Field(T.UINT32, 0)}), "is not a power of two"),
    "an alignment of 3": (model_with(changes={ALIGNMENT: Field(T.UINT32, 3)}), "is not a power of two"),
    "an alignment of another type": (model_with(changes={ALIGNMENT: Field(T.INT32, 32)}), "of type UINT32"),
    "an alignment past the end": (
        model_with([A], changes={ALIGNMENT: Field(T.UINT32, 1 << 31)}),
        "too early: tensor 'a' has 0 of its 128 bytes",
    ),
    "a file type of INT32": (
        model_with(changes={KEY_FILE_TYPE: Field(T.INT32, 7)}),
        "file_type is of type INT32",
    ),
    "a file type in words": (
        model_with(changes={KEY_FILE_TYPE: Field(T.STRING, "F16")}),
        "is of type STRING",
    ),
}


@pytest.fixture
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The file of the case, as a model."""
    path = tmp_path / "model.gguf"
    name = request.node.callspec.params["name"]
    path.write_bytes(SOUND[name] if name in SOUND else REFUSED[name][0])
    return path


def tensor_findings(path: Path | str) -> list[ggufbpe.analysis.doctor.finding.Finding]:  # type: ignore[name-defined]
    ids = {"cut_off", "tensors", "parts"}
    return [finding for finding in ggufbpe.doctor(path).findings if finding.id in ids]


def error_of(path: Path) -> GGUFError | None:
    try:
        with GGUFFile(path) as file:
            check_tensors(file)
            check_parts(file)
            check_file_type(file)
    except GGUFError as error:
        return error
    return None


# ---- the rules ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SOUND)
def test_what_llama_cpp_accepts_is_no_error(name: str, written: Path) -> None:
    assert error_of(written) is None
    assert tensor_findings(written) == []


@pytest.mark.parametrize("name", REFUSED)
def test_what_llama_cpp_refuses_is_an_error_that_names_the_tensor(name: str, written: Path) -> None:
    error, (finding,) = error_of(written), tensor_findings(written)
    assert error is not None
    assert REFUSED[name][1] in error.problem
    assert str(written) in str(error)
    assert str(error).isprintable()
    assert (finding.severity, finding.what) == ("error", error.problem)
    assert finding.fix == error.remedy
    assert Tokenizer.from_gguf(written).encode("hello")  # ids need no tensors


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    try:
        with Oracle(GPT2) as oracle:
            yield oracle
    except NotPreparedError as error:
        missing(str(error))


def verdict(oracle: Oracle, path: Path) -> str:
    """What llama.cpp does with a file."""
    try:
        oracle.open(path)
    except LoadError as error:
        return "refused" if error.crash is None else "crashed"
    return "opened"


@pytest.mark.parametrize("name", [*SOUND, *REFUSED])
def test_llama_cpp_has_the_same_verdict(name: str, written: Path, oracle: Oracle) -> None:
    assert verdict(oracle, written) == ("opened" if name in SOUND else "refused")


def test_sizes_of_types_are_those_of_llama_cpp() -> None:
    """Asked of its library; the `gguf` package has an older size of Q8_1, and does not know Q2_0."""
    import ctypes

    from reference import CHATS, library

    try:
        ggml = ctypes.CDLL(str(library(CHATS)))
    except NotPreparedError as error:
        missing(str(error))
    ggml.ggml_type_size.restype, ggml.ggml_blck_size.restype = ctypes.c_size_t, ctypes.c_int64
    ggml.ggml_type_name.restype = ctypes.c_char_p
    asked = {
        number: (name.decode().upper(), ggml.ggml_blck_size(number), ggml.ggml_type_size(number))
        for number in range(43)  # GGML_TYPE_COUNT
        if ggml.ggml_blck_size(number) and (name := ggml.ggml_type_name(number))
    }
    assert {number: (name.upper(), *sizes) for number, (name, *sizes) in TENSOR_TYPES.items()} == asked


def test_infos_are_those_of_the_gguf_package(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    for byteorder in ("little", "big"):
        path.write_bytes(model_with(byteorder=byteorder))
        with GGUFFile(path) as file:
            ours = [(info.name.decode(), info.shape, info.type) for info in tensor_infos(file)]
        theirs = gguf.GGUFReader(path).tensors
        assert ours == [(each.name, tuple(each.shape.tolist()), each.tensor_type) for each in theirs]
        assert error_of(path) is None


def test_an_error_has_the_tensor_and_the_missing_bytes_for_programs(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(model_with(cut=50))
    error = error_of(path)
    assert isinstance(error, TensorError)
    assert (error.tensor, error.missing, error.offset) == ("blk.0.ffn_up.weight", 50, path.stat().st_size)
    (finding,) = tensor_findings(path)
    assert finding.detail == {"tensor": "blk.0.ffn_up.weight", "missing_bytes": 50}


def test_every_truncation_is_an_error(tmp_path: Path) -> None:
    whole = model_with()
    path = tmp_path / "model.gguf"
    for size in range(len(whole) - 400, len(whole)):
        path.write_bytes(whole[:size])
        error = error_of(path)
        assert isinstance(error, TensorError | TruncatedFileError)
        if isinstance(error, TensorError):
            assert error.missing == len(whole) - size


def test_many_tensors_are_read_in_blocks(tmp_path: Path) -> None:
    """Also where an info lies across two blocks."""
    path = tmp_path / "model.gguf"
    tensors = [Tensor(f"blk.{number}.{'x' * (number % 40)}", (1,)) for number in range(3000)]
    path.write_bytes(model_with(tensors))
    assert error_of(path) is None
    path.write_bytes(model_with(tensors, cut=4 + 28 + 4))
    error = error_of(path)
    assert isinstance(error, TensorError)
    assert error.tensor == f"blk.2998.{'x' * 38}"


# ---- what the commands say --------------------------------------------------------------------------------

CUT = (
    "the file ends 50 bytes too early: tensor 'blk.0.ffn_up.weight' has 10 of its 24 bytes, and 1 tensor after it has "
    "none"
)


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    path = folder / "broken.gguf"
    path.write_bytes(model_with(cut=50))
    return path


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_doctor_says_so_and_exits_with_1(broken: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", str(broken)]) == 1
    told = one_line(capfd.readouterr().out)
    assert "error: cut_off" in told
    assert CUT in told
    assert "compare its size and hash" in told


def test_info_has_the_same_line(broken: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(broken)]) == 0
    assert f"broken {CUT}" in one_line(capfd.readouterr().out)
    assert main(["info", str(broken), "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["file"]["problem"] == CUT
    broken.write_bytes(model_with())
    assert main(["info", str(broken), "--json"]) == 0
    assert "problem" not in json.loads(capfd.readouterr().out)["file"]


@pytest.mark.parametrize("change", ["tokenizer.ggml.pre=olmo", f"general.name={'x' * 300}"])
@pytest.mark.parametrize("where", ["copy", "in place"])
def test_fix_refuses_without_force(
    change: str, where: str, broken: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before, out = broken.read_bytes(), broken.with_name("out.gguf")
    command = ["fix", str(broken), "--set", change]
    command += ["--in-place"] if where == "in place" else ["-o", str(out)]
    assert main(command) == 2
    told = capfd.readouterr().err
    assert CUT in told
    assert "nothing was written; --force writes it" in told
    assert (broken.read_bytes(), os.listdir(broken.parent)) == (before, [broken.name])
    assert main([*command, "--force"]) == 0
    done = broken if where == "in place" else out
    key, _, value = change.partition("=")
    with GGUFFile(done) as file:
        assert file[key] == value
    assert done.read_bytes().endswith(before[-40:])


REFUSED_BY_FIX = [name for name in REFUSED if "alignment" not in name and "file type" not in name]


@pytest.mark.parametrize("name", REFUSED_BY_FIX)
def test_fix_refuses_whatever_is_broken(name: str, written: Path, tmp_path: Path) -> None:
    before = written.read_bytes()
    with pytest.raises(GGUFError) as refused:
        ggufbpe.fix(written, tmp_path / "out.gguf", set={"tokenizer.ggml.pre": "olmo"})
    with pytest.raises(GGUFError):
        ggufbpe.fix(written, in_place=True, set={"tokenizer.ggml.pre": "olmo"})
    assert (written.read_bytes(), os.listdir(tmp_path)) == (before, ["model.gguf"])
    if isinstance(refused.value, TensorError):
        ggufbpe.fix(written, tmp_path / "out.gguf", set={"tokenizer.ggml.pre": "olmo"}, force=True)
        assert error_of(tmp_path / "out.gguf") is not None


def test_the_inventory_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whatever it said of a sound file with the same metadata, whose verdict is cached."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GGUFBPE_CACHE_DIR", str(tmp_path / "cache"))
    for name in list(os.environ):
        if name.startswith(("HF_", "HUGGING", "LLAMA_", "OLLAMA_", "XDG_")):
            monkeypatch.delenv(name)
    folder = tmp_path / ".lmstudio" / "models" / "owner" / "repo"
    folder.mkdir(parents=True)
    (folder / "model.gguf").write_bytes(model_with())
    assert [model.verdict for model in ggufbpe.local_models()] != ["broken"]
    (folder / "model.gguf").write_bytes(model_with(cut=50))
    for verdicts in (True, False):
        (found,) = ggufbpe.local_models(verdicts=verdicts)
        assert (found.verdict, found.problem) == ("broken", CUT)
    assert main(["models"]) == 0
    assert CUT in one_line(capfd.readouterr().out)


# ---- a silly alignment ------------------------------------------------------------------------------------


@pytest.mark.parametrize("tail", [b"", b"x", b"x" * 5000])
@pytest.mark.parametrize("change", ["tokenizer.ggml.pre=olmo", f"general.name={'x' * 300}", "general.name=a"])
@pytest.mark.parametrize("in_place", [True, False])
def test_an_alignment_of_two_gigabytes_writes_no_padding(
    change: str, in_place: bool, tail: bytes, tmp_path: Path
) -> None:
    model, out = tmp_path / "model.gguf", tmp_path / "out.gguf"
    model.write_bytes(model_with([], alignment=1 << 31, tail=tail))
    command = ["fix", str(model), "--set", change, *(["--in-place"] if in_place else ["-o", str(out)])]
    assert main(command) == 0
    done = (model if in_place else out).read_bytes()
    assert len(done) < 10_000
    assert done.endswith(tail)


def test_padding_of_gigabytes_takes_no_memory(tmp_path: Path) -> None:
    """A sparse file whose tensors begin at 2 GB, as its alignment says, which llama.cpp opens."""
    import tracemalloc

    model = tmp_path / "model.gguf"
    with GGUFFile("small.gguf", model_with([], tail=b"x")) as file:
        start = file.metadata_end
    small = model_with([A], changes={ALIGNMENT: Field(T.UINT32, 1 << 31)})
    assert start < len(small) < 2000
    with model.open("wb") as target:
        target.write(small[: len(small) - 128])
        target.seek(1 << 31)
        target.write(bytes(range(128)))
    assert error_of(model) is None
    tracemalloc.start()
    ggufbpe.fix(model, in_place=True, set={"tokenizer.ggml.pre": "olmo"})
    ggufbpe.fix(model, in_place=True, set={"general.name": "a" * 300})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20_000_000
    assert error_of(model) is None
    with GGUFFile(model) as file:
        assert (file["general.name"], file["tokenizer.ggml.pre"]) == ("a" * 300, "olmo")
    with model.open("rb") as source:
        source.seek(1 << 31)
        assert source.read() == bytes(range(128))


@pytest.mark.parametrize(
    ("value", "code"), [("UINT32:64", 0), ("UINT32:48", 2), ("UINT32:0", 2), ("INT32:64", 2)]
)
def test_an_alignment_that_llama_cpp_refuses_is_not_set(value: str, code: int, tmp_path: Path) -> None:
    model = tmp_path / "model.gguf"
    model.write_bytes(model_with([]))
    assert (
        main(["fix", str(model), "--set", f"{ALIGNMENT}={value}", "-o", str(tmp_path / "out.gguf")]) == code
    )


# ---- split models -----------------------------------------------------------------------------------------

PARTS: dict[
    str, tuple[dict[str, Any], str]
] = {  # what is wrong with the parts of a split model, and the words for it
    "nothing": ({}, ""),
    "a part is missing": (
        {"without": 2},
        "part 2 of 3, 'model-00002-of-00003.gguf', is missing: there is no such",
    ),
    "a part is cut off": (
        {"cut": 2},
        "part 2 of 3, 'model-00002-of-00003.gguf', is broken: the file ends 1 byte",
    ),
    "a part is no GGUF": (
        {"empty": 3},
        "part 3 of 3, 'model-00003-of-00003.gguf', is broken: the file is empty",
    ),
    "parts in another order": (
        {"swapped": True},
        "part 2 of 3, 'model-00002-of-00003.gguf', is part 3 by its metadata",
    ),
    "a tensor twice": ({"twice": True}, "tensor 'one' is in an earlier part, too"),
    "a wrong number of tensors": ({"total": 7}, "the parts have 3 tensors together, and the first says 7"),
    "another name": ({"stem": "model.gguf"}, "does not end in -00001-of-00003.gguf"),
}


def split_model(
    folder: Path,
    *,
    without: int = 0,
    cut: int = 0,
    empty: int = 0,
    swapped: bool = False,
    twice: bool = False,
    total: int = 3,
    stem: str = "",
    keys: Mapping[int, Mapping[str, Field | None]] = {},
) -> Path:
    """A model in three parts, of which the first has no data but its metadata. Returns the path of the first.

    `keys` has other values of the keys of a part, by its number; None for a key that it lacks.
    """
    names = ["one", "one" if twice else "two", "three"]
    tensors = [[], [Tensor(names[0]), Tensor(names[1])], [Tensor(names[2])]]
    if twice:
        tensors = [[Tensor("one")], [Tensor("one")], [Tensor("three")]]
    for number in (1, 2, 3):
        at = {2: 3, 3: 2}.get(number, 1) if swapped else number
        changes = {"split.no": Field(T.UINT16, number - 1), "split.count": Field(T.UINT16, 3)}
        changes["split.tensors.count"] = Field(T.INT32, total)
        if number > 1:
            changes |= dict.fromkeys(("tokenizer.ggml.model", "tokenizer.ggml.tokens"))
        changes |= keys.get(number, {})
        data = model_with(tensors[number - 1], changes=changes, cut=number == cut)
        name = stem if stem and number == 1 else f"model-{at:05d}-of-00003.gguf"
        if number != without:
            (folder / name).write_bytes(b"" if number == empty else data)
    return folder / (stem or "model-00001-of-00003.gguf")


@pytest.mark.parametrize("name", PARTS)
def test_all_parts_of_a_split_model_are_checked(name: str, tmp_path: Path, oracle: Oracle) -> None:
    how, words = PARTS[name]
    first = split_model(tmp_path, **how)
    error, found = error_of(first), tensor_findings(first)
    assert isinstance(error, ShardError if words else type(None))
    assert [(finding.id, finding.severity, finding.what) for finding in found] == (
        [("parts", "error", error.problem)] if error else []
    )
    assert words in (error.problem if error else "")
    assert verdict(oracle, first) == ("refused" if words else "opened")


COUNT, NUMBER, TOTAL = "split.count", "split.no", "split.tensors.count"
ODD_KEYS: dict[str, tuple[int, str, Field | None, str, str]] = {
    # the part, its key and value, the problem, and llama.cpp's verdict
    "a count of UINT32": (1, COUNT, Field(T.UINT32, 3), "split.count is of type UINT32", "refused"),
    "a count of UINT8": (1, COUNT, Field(T.UINT8, 3), "split.count is of type UINT8", "refused"),
    "a negative count": (1, COUNT, Field(T.INT32, -1), "split.count is of type INT32", "refused"),
    "a count of 1 of UINT32": (1, COUNT, Field(T.UINT32, 1), "split.count is of type UINT32", "refused"),
    "a count in words": (1, COUNT, Field(T.STRING, "3"), "split.count is of type STRING", "refused"),
    "a broken count": (1, COUNT, Field(T.FLOAT32, 3.0), "split.count is of type FLOAT32", "refused"),
    "a true count": (1, COUNT, Field(T.BOOL, True), "split.count is of type BOOL", "refused"),
    "several counts": (1, COUNT, Field(T.ARRAY, [3], T.UINT16), "split.count is of type ARRAY", "refused"),
    "a number of UINT32": (1, NUMBER, Field(T.UINT32, 0), "split.no is of type UINT32", "refused"),
    "a number in words": (1, NUMBER, Field(T.STRING, "0"), "split.no is of type STRING", "refused"),
    "a broken number": (1, NUMBER, Field(T.FLOAT32, 0.0), "split.no is of type FLOAT32", "refused"),
    "no number": (1, NUMBER, None, "split.no is missing", "refused"),
    "tensors of UINT32": (1, TOTAL, Field(T.UINT32, 3), "split.tensors.count is of type UINT32", "refused"),
    "tensors of UINT64": (1, TOTAL, Field(T.UINT64, 3), "split.tensors.count is of type UINT64", "refused"),
    "no tensors": (1, TOTAL, None, "split.tensors.count is missing", "refused"),
    "part 2 of UINT32": (2, NUMBER, Field(T.UINT32, 1), "is broken: split.no is of type UINT32", "crashed"),
    "part 2 of BOOL": (2, NUMBER, Field(T.BOOL, True), "is broken: split.no is of type BOOL", "crashed"),
    "part 2 of FLOAT32": (
        2,
        NUMBER,
        Field(T.FLOAT32, 1.0),
        "is broken: split.no is of type FLOAT32",
        "crashed",
    ),
    "part 2 without a number": (2, NUMBER, None, "is broken: split.no is missing", "refused"),
}


@pytest.mark.parametrize("name", ODD_KEYS)
def test_keys_of_parts_have_the_types_that_llama_cpp_reads(name: str, tmp_path: Path, oracle: Oracle) -> None:
    number, key, value, words, expected = ODD_KEYS[name]
    first = split_model(tmp_path, keys={number: {key: value}})
    error, found = error_of(first), tensor_findings(first)
    assert isinstance(error, ShardError)
    assert words in error.problem
    assert [(finding.id, finding.what) for finding in found] == [("parts", error.problem)]
    assert verdict(oracle, first) == expected


@pytest.mark.parametrize("name", [name for name, odd in ODD_KEYS.items() if "UINT" in odd[3] and odd[0] == 1])
def test_the_remedy_for_a_key_of_another_type_mends_the_model(name: str, tmp_path: Path) -> None:
    first = split_model(tmp_path, keys={1: {ODD_KEYS[name][1]: ODD_KEYS[name][2]}})
    error = error_of(first)
    assert error is not None
    assert error.remedy is not None
    given = re.search(r"\((\S+)\)", error.remedy)
    assert given is not None
    assert main(["fix", str(first), "--set", given[1], "--in-place"]) == 0
    assert error_of(first) is None


def test_the_remedy_for_a_file_type_of_another_type_mends_the_model(tmp_path: Path, oracle: Oracle) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(model_with(changes={KEY_FILE_TYPE: Field(T.INT32, 7)}))
    error = error_of(path)
    assert isinstance(error, WrongTypeError)
    assert f"({KEY_FILE_TYPE}=UINT32:7)" in str(error.remedy)
    assert main(["fix", str(path), "--set", f"{KEY_FILE_TYPE}=UINT32:7", "--in-place"]) == 0
    assert error_of(path) is None
    assert verdict(oracle, path) == "opened"


def test_a_part_that_has_the_name_of_another_is_told_from_a_broken_one(tmp_path: Path) -> None:
    """Nothing needs to be downloaded if two parts have been exchanged."""
    error = error_of(split_model(tmp_path, swapped=True))
    assert error is not None
    assert error.remedy == "give all parts the names that they had, or download this one again"


def test_a_copy_of_the_first_part_that_llama_cpp_does_not_open_is_warned_of(
    tmp_path: Path, oracle: Oracle
) -> None:
    first, folder = split_model(tmp_path), tmp_path / "fixed"
    folder.mkdir()
    for out, words in (
        (tmp_path / "fixed.gguf", "does not end in -00001-of-00003"),
        (folder / first.name, "is missing"),
    ):
        with pytest.warns(ggufbpe.GGUFWarning, match=words):
            ggufbpe.fix(first, out, set={"tokenizer.ggml.pre": "olmo"})
        assert verdict(oracle, out) == "refused"
    for part in tmp_path.glob("model-0000[23]*"):
        shutil.copy(part, folder)
    ggufbpe.fix(
        first, folder / first.name, set={"tokenizer.ggml.pre": "olmo"}, force=True
    )  # without a warning
    assert verdict(oracle, folder / first.name) == "opened"


def test_the_command_for_a_split_model_gives_one_that_llama_cpp_opens(
    tmp_path: Path, oracle: Oracle, capfd: pytest.CaptureFixture[str]
) -> None:
    first = split_model(tmp_path, keys={1: {"tokenizer.ggml.add_bos_token": Field(T.UINT32, 0)}})
    found = ggufbpe.doctor(first)
    assert found.fix.endswith("--in-place")
    assert main(shlex.split(found.fix)[1:]) == 0
    assert ggufbpe.doctor(first).fix == ""
    assert verdict(oracle, first) == "opened"


def test_the_command_for_a_split_model_of_the_hubs_cache_gives_one_that_llama_cpp_opens(
    tmp_path: Path, oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = split_model(tmp_path, keys={1: {"tokenizer.ggml.add_bos_token": Field(T.UINT32, 0)}})
    for folder in ("blobs", "snapshot", "here", "here/fixed"):
        (tmp_path / folder).mkdir()
    for number, part in enumerate(sorted(tmp_path.glob("model-0000*"))):
        blob = part.rename(tmp_path / "blobs" / f"{number:064}")
        (tmp_path / "snapshot" / part.name).symlink_to(blob)
        if part != first:
            (tmp_path / "here" / "fixed" / part.name).symlink_to(blob)
    monkeypatch.chdir(tmp_path / "here")
    words, _, command = ggufbpe.doctor(tmp_path / "snapshot" / first.name).fix.partition("ggufbpe ")
    assert words == "link the other parts into a folder named fixed, then "
    assert main(shlex.split(command)) == 0
    assert verdict(oracle, tmp_path / "here" / "fixed" / first.name) == "opened"


def test_the_first_part_can_be_fixed_without_the_others(tmp_path: Path) -> None:
    first = split_model(tmp_path, without=2)
    ggufbpe.fix(first, in_place=True, set={"tokenizer.ggml.pre": "olmo"})
    assert Tokenizer.from_gguf(first).pre == "olmo"


# ---- remote models ----------------------------------------------------------------------------------------


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteServer]:
    monkeypatch.setenv("GGUFBPE_CACHE_DIR", str(tmp_path / "cache"))
    for name in list(os.environ):
        if name.upper().endswith("_PROXY"):
            monkeypatch.delenv(name)
    with remote_server() as server:
        yield server


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SOUND, *REFUSED])
def test_a_remote_model_is_checked_against_the_length_that_its_host_reports(
    name: str, server: RemoteServer
) -> None:
    """Read the first time and from the cache."""
    words = "" if name in SOUND else REFUSED[name][1]
    url = server.put("/model.gguf", SOUND.get(name) or REFUSED[name][0])
    for _ in range(2):
        found = tensor_findings(url)
        assert [finding.severity for finding in found] == ["error"] * bool(words)
        assert all(words in finding.what and "tell its owner" in finding.fix for finding in found)
        assert Tokenizer.from_gguf(url).encode("hello")


def test_a_large_remote_model_is_read_up_to_its_tensor_infos(server: RemoteServer) -> None:
    """The bytes that are missing are told from the length alone."""
    tensors = [
        Tensor(f"blk.{number}.ffn_gate_exps.weight", (32, 1 << 20), size=0) for number in range(20_000)
    ]
    tensors = [each._replace(offset=number << 27) for number, each in enumerate(tensors)]
    data = model_with(tensors)
    whole = len(data) + (20_000 << 27)
    assert tensor_findings(server.put("/whole.gguf", data, size=whole)) == []
    assert server.asked < 1.1 * len(data) + range_stream.BLOCK
    assert len(server.requests) < 16
    (finding,) = tensor_findings(server.put("/cut.gguf", data, size=whole - (3 << 27) - 5))
    assert finding.what.startswith(
        f"the file ends {(3 << 27) + 5} bytes too early: tensor 'blk.19996.ffn_gate_exps"
    )


def test_metadata_that_an_earlier_version_kept_is_read_again(
    server: RemoteServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended before the tensor infos."""
    url = server.put("/model.gguf", model_with(cut=1))
    with monkeypatch.context() as patch:
        patch.setattr(metadata_cache, "_FORM", "")
        patch.setattr(forecast.ArrivingFile, "infos_end", lambda file: file.metadata_end)
        assert tensor_findings(url) == []
    assert len(tensor_findings(url)) == 1
